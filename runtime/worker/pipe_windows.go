package worker

import "os"

func standardPipe(f *os.File) (*os.File, error) { return f, nil }

// Command hutch-worker is a worker process and nothing else: it runs one module
// for a parent that speaks to it over standard input and output.
//
// hutch can be its own worker; this one carries none of hutch's other parts, so
// it starts faster and needs less memory.
package main

import (
	"os"

	"github.com/hutch-run/hutch/runtime/worker"
)

func main() { os.Exit(worker.Main()) }

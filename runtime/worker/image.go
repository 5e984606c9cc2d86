package worker

import (
	"io"
	"log/slog"
	"os"
)

// starter knows how to start a worker: from a program in memory if there is one
// and the system can, else by the command. It belongs to one goroutine.
type starter struct {
	command []string
	image   func() (io.ReadCloser, error) // nil: none, or it could not be used
	memory  *os.File                      // what image became at the first start
	log     *slog.Logger
}

func (s *starter) start() (*child, error) {
	if s.image == nil {
		return startChild(s.command)
	}
	c, err := s.startImage()
	if err == nil {
		return c, nil
	}
	s.log.Warn("embedded worker cannot be started; hutch itself is, which needs more memory", "err", err)
	s.image = nil
	s.close()
	return startChild(s.command)
}

func (s *starter) startImage() (_ *child, err error) {
	if s.memory == nil {
		if s.memory, err = programInMemory(s.image); err != nil {
			return nil, err
		}
	}
	return startChild(startOf(s.memory))
}

// close gives the memory back once the last worker started from it has ended.
func (s *starter) close() {
	if s.memory != nil {
		_ = s.memory.Close() // it was only read
		s.memory = nil
	}
}

package main

import (
	"fmt"
	"sync"

	"github.com/hutch-run/hutch/host/capability"
)

// signatures keep which modules are signed with which keys: every listing asks, and
// an answer takes a look at all of a module's bytes.
type signatures struct {
	fetch func(digest string) ([]byte, error)

	mu   sync.Mutex
	kept map[[2]string]error
}

// maxSignatures bounds what is kept; there are fewer modules and keys at once.
const maxSignatures = 4096

// check implements [capability.Options].Signed.
func (s *signatures) check(digest, key string) error {
	asked := [2]string{digest, key}
	s.mu.Lock()
	err, known := s.kept[asked]
	s.mu.Unlock()
	if known {
		return err
	}
	body, err := s.fetch(digest)
	if err != nil { // which may not last
		return fmt.Errorf("its bytes cannot be read: %w", withoutPath(err))
	}
	err = capability.CheckSignature(body, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || len(s.kept) >= maxSignatures {
		s.kept = map[[2]string]error{}
	}
	s.kept[asked] = err
	return err
}

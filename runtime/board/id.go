package board

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"
)

// ids makes UUIDs of version 7 (RFC 9562, 5.7), each greater than those before, so that
// the order of ids is the order of what they name.
type ids struct {
	mu   sync.Mutex
	last uint64 // milliseconds, and a counter in the lower 12 bits
}

func (i *ids) next(now time.Time) string {
	i.mu.Lock()
	i.last = max(i.last+1, uint64(now.UnixMilli())<<12)
	at := i.last
	i.mu.Unlock()

	var b [16]byte
	_, _ = rand.Read(b[8:]) // it never fails: crypto/rand ends the program instead
	binary.BigEndian.PutUint64(b[:8], at>>12<<16|0x7000|at&0xfff)
	b[8] = b[8]&0x3f | 0x80
	t := hex.EncodeToString(b[:])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

// isID reports whether text is an id as next makes them.
func isID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

// seldom says when something is to be done that need not be done often.
type seldom struct {
	mu   sync.Mutex
	last time.Time
}

const seldomEvery = 10 * time.Minute

func (s *seldom) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.last) < seldomEvery {
		return false
	}
	s.last = now
	return true
}

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/kv"
)

// Each note is kept by itself under note/ and its number, so that it can end by
// itself. Numbers are given once: a note that is gone must not become another.
const (
	prefix  = "note/"
	lastKey = "last"
	// maxNotes leaves room for a call that reads all of them: a call may ask its host
	// 1,000 times.
	maxNotes = 900
)

// keyOf has leading zeros, so that keys are in the order of numbers.
func keyOf(id int) string { return fmt.Sprintf("%s%09d", prefix, id) }

// noteIDs returns the numbers of all notes, the newest first.
func noteIDs(c *sdk.Call) (ids []int, err error) {
	keys, err := kv.Keys(c, prefix)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if id, err := strconv.Atoi(strings.TrimPrefix(key, prefix)); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Reverse(ids)
	return ids, nil
}

// nextID takes a number. Calls that run side by side take different ones.
func nextID(c *sdk.Call) (int, error) {
	const tries = 20
	for range tries {
		last, err := kv.Read[int](c, lastKey)
		if err != nil {
			return 0, err
		}
		taken, err := kv.Replace(c, lastKey, last.Value+1, last.Version, 0)
		if err != nil || taken {
			return last.Value + 1, err
		}
	}
	return 0, errors.New("too many notes are added at the same time: try again")
}

func load(c *sdk.Call, id int) (n note, found bool, err error) {
	n, found, err = kv.Get[note](c, keyOf(id))
	n.ID = id
	return n, found, err
}

// eachNote hands over notes, the newest first, until more returns false; before is a
// number that they are older than, or 0. One that ends meanwhile is left out.
func eachNote(c *sdk.Call, before int, more func(note) bool) error {
	ids, err := noteIDs(c)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if before > 0 && id >= before {
			continue
		}
		n, found, err := load(c, id)
		if err != nil {
			return err
		}
		if found && !more(n) {
			break
		}
	}
	return nil
}

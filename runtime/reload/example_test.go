package reload_test

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hutch-run/hutch/runtime/reload"
)

// More bytes than allowed are refused, and nothing of them is kept.
func ExampleBlobs_Put_limit() {
	dir, err := os.MkdirTemp("", "modules")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Println(err)
		}
	}()
	blobs, err := reload.OpenBlobs(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _, err = blobs.Put(strings.NewReader("0123456789"), 9)
	fmt.Println(err, errors.Is(err, reload.ErrTooLarge))
	// Output: too large: more than 9 bytes true
}

package store_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/runtime/store"
)

// asWriter makes the test program write to the database that is its next argument,
// in the name of the round after that, until it is killed.
const asWriter = "__writer"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == asWriter {
		fmt.Println("stopped:", writeUntilKilled(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	if len(os.Args) > 3 && os.Args[1] == asKeeper {
		fmt.Println("stopped:", runUntilKilled(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	if len(os.Args) > 3 && os.Args[1] == asTracker {
		fmt.Println("stopped:", trackUntilKilled(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	if len(os.Args) > 3 && os.Args[1] == asAgent {
		fmt.Println("stopped:", routeUntilKilled(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}

// The writer's load: so many at once, and a hundred values of each size up to some
// pages, so that groups differ and the log is folded into the file while they write.
const (
	crashWriters = 16
	crashSpace   = "crash"
)

// noon keeps a test that runs at midnight from counting on two days.
func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// writeUntilKilled makes changes of two halves each and acknowledges every one, on
// a line of its own, once it is durable. Each change counts a call, too.
func writeUntilKilled(path, round string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := open(ctx, path, store.Options{Now: noon})
	if err != nil {
		return err
	}
	ended := make(chan error)
	for w := range crashWriters {
		go func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%s-%d-%d", round, w, i)
				if err := db.Update(ctx, func(tx store.Tx) error { return writeHalves(tx, name, i) }); err != nil {
					ended <- err
					return
				}
				if _, err := os.Stdout.WriteString(name + "\n"); err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	return <-ended
}

func writeHalves(tx store.Tx, name string, i int) error {
	for _, half := range []string{"left", "right"} {
		w := store.KVWrite{
			Space: crashSpace, Key: name + "/" + half, Writer: "crash", Value: contentOf(name, i),
			IfVersion: 0, MaxBytes: 1 << 40,
		}
		if _, _, err := tx.KVPut(w); err != nil {
			return err
		}
	}
	_, _, err := tx.Count(crashSpace, store.Use{Calls: 1}, store.Use{})
	return err
}

// contentOf is what must be found under a name: some bytes up to some pages.
func contentOf(name string, i int) []byte {
	sum := sha256.Sum256([]byte(name))
	return bytes.Repeat(sum[:], 1+i%100*4)
}

// What was acknowledged is there after the process is killed while it writes, and
// no change is there by half. It says nothing about a power cut, which takes what
// was written and not synced: that every commit syncs, [TestDurability] holds.
func TestKilledUnderLoad(t *testing.T) { everywhere(t, testKilledUnderLoad) }

func testKilledUnderLoad(t *testing.T, path string) {
	acknowledged := map[string]int{} // the change's name, and its number
	for round := range 3 {
		names := killedAfter(t, asWriter, path, fmt.Sprint("round", round), 1000)
		for _, name := range names {
			var w, i int
			if _, err := fmt.Sscanf(name[strings.IndexByte(name, '-'):], "-%d-%d", &w, &i); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			acknowledged[name] = i
		}
		verifyHalves(t, path, acknowledged)
	}
}

// killedAfter runs this program as one that writes, kills it when it has acknowledged so
// many lines, and returns all that it acknowledged.
func killedAfter(t *testing.T, as, path, round string, acks int) (acknowledged []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], as, path, round)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n') // what is cut short was not acknowledged
		if err != nil {
			break
		}
		if strings.HasPrefix(line, "stopped:") {
			t.Fatal(line)
		}
		acknowledged = append(acknowledged, strings.TrimSuffix(line, "\n"))
		if len(acknowledged) == acks {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || len(acknowledged) < acks {
		t.Fatalf("ended with %v after %d lines", err, len(acknowledged))
	}
	return acknowledged
}

func verifyHalves(t *testing.T, path string, acknowledged map[string]int) {
	t.Helper()
	db, err := open(t.Context(), path, store.Options{Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	err = db.View(t.Context(), func(tx store.Tx) error {
		for name, i := range acknowledged {
			for _, half := range []string{"left", "right"} {
				e, ok, err := tx.KVGet(crashSpace, name+"/"+half)
				if !ok || !bytes.Equal(e.Value, contentOf(name, i)) {
					t.Errorf("%s of %s was acknowledged: found %t, %d bytes, %v", half, name, ok, len(e.Value), err)
				}
			}
		}
		return verifyWhole(t, tx, len(acknowledged))
	})
	if err != nil {
		t.Error(err)
	}
}

// verifyWhole looks at all there is: each change has its other half, and has been
// counted once.
func verifyWhole(t *testing.T, tx store.Tx, least int) error {
	t.Helper()
	var changes int64
	for after := ""; ; {
		keys, err := tx.KVKeys(crashSpace, "", after, 1000)
		if err != nil {
			return err
		}
		for _, key := range keys {
			after = key
			other := strings.TrimSuffix(key, "/left") + "/right"
			if name, ok := strings.CutSuffix(key, "/right"); ok {
				changes++
				other = name + "/left"
			}
			if _, ok, err := tx.KVGet(crashSpace, other); err != nil || !ok {
				t.Errorf("%s is there, and %s is not: %v", key, other, err)
			}
		}
		if len(keys) == 0 {
			break
		}
	}
	used, err := tx.Used(crashSpace)
	if used.Calls != changes || changes < int64(least) {
		t.Errorf("%d changes are there, %d were counted, at least %d were acknowledged", changes, used.Calls, least)
	}
	total, values, err2 := tx.KVUsage(crashSpace)
	t.Logf("%d changes, %d of them acknowledged, %d bytes", changes, least, total)
	if values != 2*changes {
		t.Errorf("%d values of %d changes", values, changes)
	}
	return errors.Join(err, err2)
}

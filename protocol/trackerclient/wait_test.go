package trackerclient_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
)

// failing is how to reach a tracker that fails until it was asked so often, and asks to be
// left alone for so many seconds. It notes when it was asked.
func failing(times int, wait string, at *[]time.Time) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }() // it ends with this answer
			if _, err := http.ReadRequest(bufio.NewReader(theirs)); err != nil {
				return
			}
			*at = append(*at, time.Now())
			status := "503 Service Unavailable"
			if len(*at) > times {
				status = "200 OK"
			}
			_, _ = fmt.Fprintf(theirs, "HTTP/1.1 %s\r\nRetry-After: %s\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", status, wait)
		}()
		return ours, nil
	}
}

// Between tries passes some time of up to 200 ms and then of up to 400 ms, which is not the
// same for all, or what the tracker asks for; and never more than a call may take.
func TestH_12_WaitsBetweenTries(t *testing.T) {
	waits := func(wait string, timeout time.Duration) (all []time.Duration, err error) {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Time
			c := client(t, "http://localhost", "token", trackerclient.Options{Timeout: timeout, DialContext: failing(2, wait, &at)})
			_, err = c.GetTask(t.Context(), "T-1")
			c.Close()
			synctest.Wait()
			for i, asked := range at[1:] {
				all = append(all, asked.Sub(at[i]))
			}
		})
		return all, err
	}
	seen := map[time.Duration]bool{}
	var longest time.Duration
	for range 100 {
		all, err := waits("", time.Minute)
		if err != nil || len(all) != 2 || all[0] > 200*time.Millisecond || all[1] > 400*time.Millisecond {
			t.Fatalf("waited %v, %v", all, err)
		}
		seen[all[0]], seen[all[1]], longest = true, true, max(longest, all[1])
	}
	if len(seen) < 150 || longest < 250*time.Millisecond {
		t.Errorf("of 200 waits %d are different, and the longest has %v", len(seen), longest)
	}
	if all, err := waits("2", time.Minute); err != nil || len(all) != 2 || all[0] != 2*time.Second || all[1] != 2*time.Second {
		t.Errorf("asked for two seconds, it waited %v, %v", all, err)
	}
	if all, err := waits("2", 3*time.Second); err == nil || len(all) != 1 {
		t.Errorf("of three seconds it waited %v, %v", all, err)
	}
}

// A tracker that cannot be reached is called later and later, half a minute apart at most,
// and not by all at the same times.
func TestE0_07_LaterAndLater(t *testing.T) {
	var runs [2][]time.Duration
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			var lost []time.Time
			c := client(t, "http://localhost", "token", trackerclient.Options{
				DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") },
			})
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := c.Subscribe(trackerclient.Subscriber{
				Agent:  tracker.AuthAgent{Slug: "coder"},
				Accept: func(context.Context, tracker.EventFrame) error { return nil },
				Lost:   func(error) { lost = append(lost, time.Now()) },
			}).Run(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
			for n, at := range lost[1:] {
				runs[i] = append(runs[i], at.Sub(lost[n]))
			}
		})
	}
	for _, waits := range runs {
		for n, wait := range waits {
			most := 100*time.Millisecond + min(500*time.Millisecond<<min(n, 10), 30*time.Second)
			if wait < 100*time.Millisecond || wait > most {
				t.Errorf("wait %d is %v, at most %v", n+1, wait, most)
			}
		}
		if len(waits) < 120 || slices.Max(waits) < 20*time.Second {
			t.Errorf("%d waits in an hour, the longest of %v", len(waits), slices.Max(waits))
		}
	}
	if slices.Equal(runs[0], runs[1]) {
		t.Error("two agents wait alike")
	}
}

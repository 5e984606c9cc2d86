package main

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What help says about a limit is what is checked: its bounds can be set, what is
// outside cannot, and is told the same bounds.
func TestLimitsHelpIsWhatIsChecked(t *testing.T) {
	help := limitsHelp()
	for _, key := range limitKeys {
		row := regexp.MustCompile(`(?m)^  ` + key.name + ` +` + key.fallback + ` +(\w+, )?(\w+) to (\w+)(, whole seconds)?  +` + regexp.QuoteMeta(key.means) + `$`).FindStringSubmatch(help)
		if row == nil {
			t.Errorf("no row for %s in\n%s", key.name, help)
			continue
		}
		word, least, most := strings.TrimSuffix(row[1], ", "), row[2], row[3]
		for _, value := range []string{key.fallback, least, most, word} {
			if err := key.set(&Limits{}, value); err != nil && value != "" {
				t.Errorf("%s: %v", key.name, err)
			}
		}
		for _, value := range outside(t, least, most) {
			if err := key.set(&Limits{}, value); err == nil || !strings.HasPrefix(err.Error(), value+": allowed are ") {
				t.Errorf("%s: %s: %v", key.name, value, err)
			} else if row[4] == "" && !strings.HasSuffix(err.Error(), ": allowed are "+row[1]+least+" to "+most) {
				t.Errorf("%s: help says %s to %s, the error %v", key.name, least, most, err)
			}
		}
	}
}

// outside is a little less than least, and a little more than most.
func outside(t *testing.T, least, most string) []string {
	t.Helper()
	if n, err := strconv.Atoi(most); err == nil {
		return []string{"0", strconv.Itoa(n + 1)}
	}
	if d, err := time.ParseDuration(most); err == nil {
		shortest, err := time.ParseDuration(least)
		must(t, err)
		return []string{(shortest - time.Microsecond).String(), (d + time.Second).String()}
	}
	low, err := parseSize(least)
	must(t, err)
	high, err := parseSize(most)
	must(t, err)
	return []string{fmt.Sprintf("%dB", low-1), fmt.Sprintf("%dB", high+1)}
}

// limited starts a server with one limit set as an operator writes it.
func limited(t *testing.T, name, value string) *served {
	t.Helper()
	return startServe(t, func(cfg *Config) { must(t, cfg.Limits.set(name, value)) })
}

// What a limit of a call is set to is what a tool runs into.
func TestCallLimitsAreThoseConfigured(t *testing.T) {
	large := strings.Repeat("x", 3000)
	for _, c := range []struct {
		name, value string
		do          dialecttest.Step
		text, want  string
	}{
		{"timeout", "1s", dialecttest.Loop(), "", "longer than 1s"},
		{"memory", "2MiB", dialecttest.Grow(100), "", "no memory"},
		{"input", "2KiB", dialecttest.Echo(), large, "2048"},
		{"output", "2KiB", dialecttest.Output(4 << 10), "", "2048"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := limited(t, c.name, c.value)
			defer s.end(t)
			s.drop(t, "hi.wasm", dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec("hi")}, Do: []dialecttest.Step{c.do}}.Bytes())
			if m := s.awaitModule(t, "hi.wasm"); m.Status != tool.Ready {
				t.Fatalf("%s: %s", m.Status, m.Reason)
			}
			session, _ := s.connect(t)
			defer closeSession(t, session)
			r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "hi", Arguments: map[string]any{"text": c.text}})
			if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, c.want) {
				t.Errorf("got %v, %v, want %s", r, err, c.want)
			}
		})
	}
}

// A count may be written as in a policy.
func TestCountsWithZeros(t *testing.T) {
	for text, want := range map[string]int64{"5e9": 5_000_000_000, "1e15": 1e15, "7e0": 7, "100": 100} {
		var got int64
		if err := setCount(&got, text, 1e15); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

func TestBodyLimitIsTheOneConfigured(t *testing.T) {
	s := limited(t, "body", "1KiB")
	defer s.end(t)
	for size, want := range map[int]int{1 << 10: http.StatusBadRequest, 1<<10 + 1: http.StatusRequestEntityTooLarge} {
		r, err := http.Post(s.url+"/mcp", "application/json", strings.NewReader(strings.Repeat(" ", size)))
		must(t, err)
		must(t, r.Body.Close())
		if r.StatusCode != want {
			t.Errorf("%d bytes: %s, want %d", size, r.Status, want)
		}
	}
}

func TestConnectionLimitIsTheOneConfigured(t *testing.T) {
	s := limited(t, "connections", "1")
	defer s.end(t)
	addr, err := net.ResolveTCPAddr("tcp", strings.TrimPrefix(s.url, "http://"))
	must(t, err)
	first := get(t, addr)
	if second, err := tryGet(addr); err == nil {
		t.Error("a second connection is open")
		must(t, second.Close())
	}
	must(t, first.Close())
}

// Workers that are idle make room for one that is wanted.
func TestWorkerLimitEndsIdleWorkers(t *testing.T) {
	s := limited(t, "workers", "16MiB")
	defer s.end(t)
	session, changed := s.connect(t)
	defer closeSession(t, session)
	for _, name := range []string{"one", "two", "three"} {
		s.drop(t, name+".wasm", greeter(name, name))
		await(t, changed)
		if got := callText(t, session, name); got != name {
			t.Errorf("%s says %q", name, got)
		}
	}
	deadline := time.After(patientFor)
	for tick := time.Tick(5 * time.Millisecond); s.app.pool.Stats().Ends["evicted"] == 0; {
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("none ended: %+v", s.app.pool.Stats())
		}
	}
}

// defaultLimits returns the limits of someone who configured nothing.
func defaultLimits() (Limits, error) {
	var l Limits
	for _, key := range limitKeys {
		if err := key.set(&l, key.fallback); err != nil {
			return Limits{}, fmt.Errorf("default of %s: %w", key.name, err)
		}
	}
	return l, nil
}

// set sets the limit called name.
func (l *Limits) set(name, text string) error {
	for _, key := range limitKeys {
		if key.name == name {
			return key.set(l, text)
		}
	}
	return fmt.Errorf("no limit %s", name)
}

//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lineClient is an MCP host with a "hutch mcp" of its own, which it talks to by
// bare lines, so that every answer is seen: a library would drop a second one.
type lineClient struct {
	t    *testing.T
	p    *process
	gone chan struct{} // closed when the process's output ends
	said *transcript   // its standard error

	mu      sync.Mutex
	next    int
	waiting map[int]chan json.RawMessage
	settled map[int]bool
}

// outcome is what became of one call.
type outcome struct {
	structured json.RawMessage
	text       string // of the first block, or of the error
	failed     bool
}

var errProcessGone = errors.New("the client's own process has ended")

// startLines starts "hutch mcp" in dir and greets it.
func startLines(t *testing.T, dir string, args ...string) *lineClient {
	t.Helper()
	c := &lineClient{
		t: t, p: prepared(t, dir, append([]string{"mcp"}, args...)...), gone: make(chan struct{}), said: &transcript{},
		waiting: map[int]chan json.RawMessage{}, settled: map[int]bool{},
	}
	c.p.Stderr = c.said
	stdout, err := c.p.StdoutPipe()
	must(t, err)
	must(t, c.p.Start())
	t.Cleanup(func() {
		_ = c.p.Process.Kill() // most have ended
		<-c.gone
		_ = c.p.Wait() // how it ended was looked at, or does not matter
		if t.Failed() {
			t.Logf("hutch mcp, process %d, said:\n%s", c.p.Process.Pid, c.said)
		}
	})
	go c.read(stdout)
	c.write(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"lines","version":"1"}}}`)
	c.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *lineClient) write(line string) bool {
	_, err := io.WriteString(c.p.stdin, line+"\n")
	return err == nil
}

func (c *lineClient) read(from io.Reader) {
	defer close(c.gone)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			ID     *int            `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			c.t.Errorf("no message: %q", lines.Text())
			continue
		}
		if m.Method == "" && m.ID != nil {
			c.deliver(*m.ID, json.RawMessage(strings.Clone(lines.Text())))
		}
	}
}

func (c *lineClient) deliver(id int, line json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled[id] {
		c.t.Errorf("request %d was answered twice: %s", id, line)
	}
	c.settled[id] = true
	if w := c.waiting[id]; w != nil {
		w <- line
	}
}

// send sends a request and returns what waits for its answer.
func (c *lineClient) send(method, params string) (wait func() (outcome, error)) {
	arrived := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.waiting[id] = arrived
	c.mu.Unlock()
	sent := c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	return func() (outcome, error) {
		if !sent {
			return outcome{}, errProcessGone
		}
		select {
		case line := <-arrived:
			return readAnswer(line)
		case <-c.gone:
			select {
			case line := <-arrived:
				return readAnswer(line)
			default:
				return outcome{}, errProcessGone
			}
		case <-time.After(4 * patientFor):
			return outcome{}, fmt.Errorf("request %d (%s) is never answered", id, method)
		}
	}
}

func (c *lineClient) call(name, args string) (outcome, error) {
	return c.send("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))()
}

func readAnswer(line json.RawMessage) (outcome, error) {
	var m struct {
		Result struct {
			Content           []struct{ Text string }
			StructuredContent json.RawMessage
			IsError           bool
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return outcome{}, err
	}
	a := outcome{structured: m.Result.StructuredContent, failed: m.Result.IsError || m.Error != nil}
	if m.Error != nil {
		a.text = m.Error.Message
	} else if len(m.Result.Content) > 0 {
		a.text = m.Result.Content[0].Text
	}
	return a, nil
}

// end closes the client's side, and holds that its process ends well.
func (c *lineClient) end() {
	c.t.Helper()
	must(c.t, c.p.stdin.Close())
	c.ended()
	if code := c.p.ProcessState.ExitCode(); code != exitOK {
		c.t.Errorf("hutch mcp ended with %d", code)
	}
}

// kill ends the process as nothing inside it can notice.
func (c *lineClient) kill() {
	c.t.Helper()
	c.p.signal(c.t, syscall.SIGKILL)
	c.ended()
}

// ended waits for the process.
func (c *lineClient) ended() {
	c.t.Helper()
	select {
	case <-c.gone:
	case <-time.After(4 * patientFor):
		c.t.Fatalf("process %d does not end", c.p.Process.Pid)
	}
	_ = c.p.Wait() // the state says it better
}

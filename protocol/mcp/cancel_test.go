package mcp

import (
	"context"
	"errors"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client that gives up ends the tool, in each era in its own way: by
// notifications/cancelled, or by leaving.
func TestClientsThatGiveUpEndTheTool(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		started, ended := make(chan string, 1), make(chan error, 1)
		f := newFakeTools()
		f.call = waitForEnd(started, ended)
		c := newClient(within(t), t, connect(t, newServer(t, f, Options{})), version, nil)
		ctx, cancel := context.WithCancel(within(t))
		failed := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "slow"})
			failed <- err
		}()
		<-started
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("the client got %v", err)
		}
		wasCancelled(t, ended)
		f.mu.Lock()
		f.call = nil
		f.mu.Unlock()
		if res, err := c.CallTool(within(t), &sdk.CallToolParams{Name: "echo"}); err != nil || res.IsError {
			t.Errorf("after it: %+v, %v", res, err)
		}
	})
}

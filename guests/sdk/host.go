package sdk

import "github.com/hutch-run/hutch/protocol/abi"

// Host is what a tool can reach while it runs. In a guest it is the imports
// of hutch:host; in a test, sdktest.Host. It may grow, so it is not meant to be
// implemented elsewhere.
type Host interface {
	// Log takes one line.
	Log(level abi.LogLevel, text string)
	// Progress tells how far the call has come.
	Progress(p Progress)
	// Config returns what the operator configured for this module under key.
	Config(key string) (value string, ok bool)
	// Gated does an operation that a policy decides about. The body is JSON as the
	// operation defines it.
	Gated(op Gated, body []byte) abi.Response
}

// Call is one running call of a tool: what the host offers it. It is valid
// until the tool's function returns.
type Call struct {
	tool string
	host Host
}

// Tool returns the name the tool was called by.
func (c *Call) Tool() string { return c.tool }

// Debug logs text for whoever develops the tool.
func (c *Call) Debug(text string) { c.host.Log(abi.Debug, text) }

// Info logs text. Lines over the host's limits (100 a call, 8 KiB each, unless
// configured otherwise) are dropped or cut.
func (c *Call) Info(text string) { c.host.Log(abi.Info, text) }

// Warn logs text that an operator should see.
func (c *Call) Warn(text string) { c.host.Log(abi.Warn, text) }

// Error logs text that an operator should act on. To tell the model that the
// call failed, return an error.
func (c *Call) Error(text string) { c.host.Log(abi.Error, text) }

// Progress tells whoever waits how far the call has come: done of total, in
// any unit; total is zero if unknown, message may be empty. The host may skip
// reports that come too fast.
func (c *Call) Progress(done, total float64, message string) {
	c.host.Progress(Progress{Progress: done, Total: total, Message: message})
}

// Config returns the value that the operator configured for this module, and
// whether there is one.
func (c *Call) Config(key string) (string, bool) { return c.host.Config(key) }

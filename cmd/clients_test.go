package cmd_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestMCPClients calls a shipped tool with clients that we did not write: the
// MCP inspector in both eras and in the mode that finds out which to speak, and
// the 1.x SDK that is inside many hosts. Over HTTP and over stdio.
func TestMCPClients(t *testing.T) {
	node, clients, ok := mcpClients(t)
	if !ok {
		t.Skip("the MCP clients are not installed: npm install in testdata/conformance/mcp")
	}
	p := newProgram(t)
	p.serve(t)
	url := "http://" + p.addr + "/mcp"
	stdio := []string{p.binary(), "mcp"}

	run := func(name, want, script string, args ...string) {
		t.Run(name, func(t *testing.T) {
			out, err := p.command(t, node, append([]string{filepath.Join(clients, script)}, args...)...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("got %v, want %s\n%s", err, want, out)
			}
		})
	}
	const words = `"words":3`
	for _, era := range []string{"legacy", "auto", "modern"} {
		call := []string{"--cli", "--protocol-era", era, "--format", "json", "-q", "--method", "tools/call",
			"--tool-name", "text_stats", "--tool-args-json", `{"text":"one two three"}`}
		run("inspector/http/"+era, words, inspector, append(call, "--transport", "http", url)...)
		run("inspector/stdio/"+era, words, inspector, append(append(call, "--"), stdio...)...)
	}
	lint := []string{"--cli", "--method", "tools/list", "--strict", "--transport", "http", url}
	run("inspector/strict", "0 errors", inspector, lint...)
	run("sdk1/http", "text_stats", "sdk1-list.mjs", url)
	run("sdk1/stdio", "text_stats", "sdk1-list.mjs", stdio...)
}

package cmd_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// block is a fenced block of the README. The comment before it, which nobody
// sees in the rendered page, says what these tests do with it: "run" runs it,
// "run inspector" runs it if the MCP inspector is installed, "prints" looks for
// each of its lines in what the block before it printed.
type block struct {
	mark, language, text string
	line                 int
}

var fence = regexp.MustCompile("(?ms)^(?:<!-- ([a-z ]+) -->\n)?```([a-z]*)\n(.*?)^```$")

func readmeBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	body, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range fence.FindAllSubmatchIndex(body, -1) {
		part := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return string(body[at[2*i]:at[2*i+1]])
		}
		blocks = append(blocks, block{part(1), part(2), part(3), 1 + bytes.Count(body[:at[0]], []byte("\n"))})
	}
	return blocks
}

// TestReadmeMarks holds that a misspelt mark does not switch a command off.
func TestReadmeMarks(t *testing.T) {
	for _, b := range readmeBlocks(t) {
		if !slices.Contains([]string{"", "run", "run inspector", "prints"}, b.mark) {
			t.Errorf("README.md:%d: no such mark: %q", b.line, b.mark)
		}
	}
}

// TestReadmeMake holds that each make target in the README exists, and that no
// other command in it goes untested.
func TestReadmeMake(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := 0
	for _, b := range readmeBlocks(t) {
		if b.language != "sh" || b.mark != "" {
			continue
		}
		for command := range strings.Lines(b.text) {
			target, ok := strings.CutPrefix(strings.TrimSpace(command), "make ")
			if !ok {
				t.Errorf("README.md:%d: %q is neither make nor marked to be run", b.line, command)
				continue
			}
			targets++
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).Match(makefile) {
				t.Errorf("README.md:%d: no target %s in the Makefile", b.line, target)
			}
		}
	}
	if targets == 0 {
		t.Error("README.md: no make command found")
	}
}

// TestReadme types the README's commands into one shell, beside a server
// started as `make run` starts it.
func TestReadme(t *testing.T) {
	p := newProgram(t)
	p.serve(t)
	outputs := typeBlocks(t, p)
	var last string
	for _, b := range readmeBlocks(t) {
		switch b.mark {
		case "run", "run inspector":
			last = outputs[b.line]
		case "prints":
			for line := range strings.Lines(b.text) {
				if !strings.Contains(last, strings.TrimSpace(line)) {
					t.Errorf("README.md:%d: promises %q, got\n%s", b.line, line, last)
				}
			}
		}
	}
}

// typeBlocks runs the marked blocks in one shell and returns what each printed,
// by its line.
func typeBlocks(t *testing.T, p program) map[int]string {
	t.Helper()
	const cut = "==> README.md:"
	node, clients, installed := mcpClients(t)
	// The pinned inspector stands in for the one that npx would fetch.
	script := fmt.Sprintf("set -euo pipefail\nnpx() { shift; %s %s \"$@\"; }\n", node, filepath.Join(clients, inspector))
	for _, b := range readmeBlocks(t) {
		if b.mark == "run" || b.mark == "run inspector" && installed {
			script += fmt.Sprintf("echo '%s%d'\n%s\n", cut, b.line, strings.ReplaceAll(b.text, "127.0.0.1:8420", p.addr))
		}
	}
	if !installed {
		t.Log("left out: the commands for the MCP inspector, which is not installed")
	}
	out, err := p.command(t, "bash", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	outputs := map[int]string{}
	for _, part := range strings.Split(string(out), cut)[1:] {
		var line int
		if _, err := fmt.Sscan(part, &line); err != nil {
			t.Fatal(err)
		}
		outputs[line] = part
	}
	return outputs
}

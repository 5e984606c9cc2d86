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

const (
	readme = "README.md"
	agents = "docs/agents.md"
)

// block is a fenced block of a document. The comment before it, which nobody
// sees in the rendered page, says what these tests do with it: "run" runs it,
// "run inspector" runs it if the MCP inspector is installed, "prints" looks for
// each of its lines in what the block before it printed, "policy" is the policy
// of the server that they run beside, "page" serves the page of the document, and
// "session" is played on the socket of the tracker.
type block struct {
	mark, language, text string
	line                 int
}

var fence = regexp.MustCompile("(?ms)^(?:<!-- ([a-z ]+) -->\n)?```([a-z]*)\n(.*?)^```$")

func blocksOf(t *testing.T, document string) (blocks []block) {
	t.Helper()
	body, err := os.ReadFile("../" + document)
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

// TestReadmeMarks holds that a misspelt mark, or none, does not switch a command off.
func TestReadmeMarks(t *testing.T) {
	for _, document := range []string{readme, agents, trackerPage} {
		for _, b := range blocksOf(t, document) {
			if !slices.Contains([]string{"", "run", "run inspector", "prints", "policy", "page", "session"}, b.mark) {
				t.Errorf("%s:%d: no such mark: %q", document, b.line, b.mark)
			}
			if b.mark == "" && strings.Contains(b.text, "curl ") {
				t.Errorf("%s:%d: nothing runs this: write <!-- run --> before it", document, b.line)
			}
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
	for _, b := range blocksOf(t, readme) {
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
	keepsPromises(t, p, readme)
}

// keepsPromises runs the marked blocks of a document, and looks for what they are
// said to print.
func keepsPromises(t *testing.T, p program, document string) {
	t.Helper()
	outputs := typeBlocks(t, p, document)
	var last string
	for _, b := range blocksOf(t, document) {
		switch b.mark {
		case "run", "run inspector":
			last = outputs[b.line]
		case "prints":
			for line := range strings.Lines(b.text) {
				if !strings.Contains(last, strings.TrimSpace(line)) {
					t.Errorf("%s:%d: promises %q, got\n%s", document, b.line, line, last)
				}
			}
		}
	}
}

// typeBlocks runs the marked blocks in one shell and returns what each printed,
// by its line.
func typeBlocks(t *testing.T, p program, document string) map[int]string {
	t.Helper()
	const cut = "==> line "
	node, clients, installed := mcpClients(t)
	// The pinned inspector stands in for the one that npx would fetch.
	script := fmt.Sprintf("set -euo pipefail\nnpx() { shift; %s %s \"$@\"; }\n", node, filepath.Join(clients, inspector))
	for _, b := range blocksOf(t, document) {
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

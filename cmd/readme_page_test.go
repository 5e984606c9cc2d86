package cmd_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/event/eventtest"
)

// The README's page talks to serve with the client that pages use.
func TestReadmePage(t *testing.T) {
	folder := eventtest.Clients(t, "..")
	p := newProgram(t)
	p.serve(t)
	pages := 0
	for _, b := range blocksOf(t, readme) {
		if b.language != "js" {
			continue
		}
		pages++
		page := "globalThis.document = {body: {append: (text) => process.stdout.write(text)}};\n" + strings.ReplaceAll(b.text, "127.0.0.1:8420", p.addr)
		cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", page)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "(Europe/Berlin).") {
			t.Errorf("README.md:%d: %v\n%s", b.line, err, out)
		}
	}
	if pages == 0 {
		t.Error("README.md has no page")
	}
}

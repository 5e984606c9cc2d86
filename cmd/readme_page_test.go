package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The README's page talks to serve with the client that pages use.
func TestReadmePage(t *testing.T) {
	folder, err := filepath.Abs("../testdata/conformance/agui")
	if err != nil {
		t.Fatal(err)
	}
	missing := ""
	if _, err := exec.LookPath("node"); err != nil {
		missing = "node is not there"
	} else if _, err := os.Stat(filepath.Join(folder, "node_modules/@ag-ui/client")); err != nil {
		missing = "the AG-UI clients are not there: npm install in testdata/conformance/agui"
	}
	switch {
	case missing == "":
	case os.Getenv("HUTCH_REQUIRE") == "all":
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
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

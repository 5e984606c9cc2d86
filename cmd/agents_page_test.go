//go:build unix

package cmd_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// docs/page.html does what it is for in a browser, served as docs/agents.md says: without
// tokens, and with one.
func TestAgentsPage(t *testing.T) {
	folder, chromium := browserTools(t)
	p := newProgram(t)
	p.decide(t, agents)
	at := freeAddr(t)
	p.env = append(p.env, "HUTCH_ORIGINS=http://"+at, "HUTCH_CONFIG=hutch.yaml")
	for name, text := range map[string]string{
		"hutch.yaml": "agents:\n  demo: {default: true, model: {kind: script}}\n  slow: {model: {script: slow.yaml}}\n",
		"slow.yaml":  "- match: {text: broken}\n  say: \"I begin, \"\n  fail: {as: cut, text: the line went dead}\n- match: {text: slow}\n  delay: 60s\n- say: hello\n",
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.serve(t)
	p.servePage(t, folder, at)
	drive := func(more ...string) {
		t.Helper()
		args := append([]string{"drive.mjs", "http://" + at + "/", "http://" + p.addr + "/agui", "http://" + p.addr + "/agents/slow/agui"}, more...)
		cmd := exec.CommandContext(t.Context(), "node", args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "CHROMIUM="+chromium)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	var picture []string
	if file := os.Getenv("PICTURE"); file != "" { // to look at what the page looks like
		picture = []string{"--picture", file}
	}
	drive(picture...)
	out, err := p.command(t, p.binary(), "tokens", "create", "page").Output()
	if err != nil {
		t.Fatal(err)
	}
	drive("--token", strings.TrimSpace(string(out)))
}

// servePage types what docs/agents.md says in order to serve the page, at another address.
// What is installed stands in for what npm would fetch.
func (p program) servePage(t *testing.T, folder, at string) {
	t.Helper()
	text, err := os.ReadFile("../docs/page.html")
	if err != nil {
		t.Fatal(err)
	}
	// The page looks for hutch where it is by default.
	if err := os.Mkdir(filepath.Join(p.dir, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "docs", "page.html"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\nnpm() { ln -s " + filepath.Join(folder, "node_modules") + " node_modules; }\nnpx() { node_modules/.bin/\"$@\"; }\n"
	typed := 0
	for _, b := range blocksOf(t, agents) {
		if b.mark == "page" {
			typed++
			script += strings.ReplaceAll(b.text, "127.0.0.1:8000", at)
		}
	}
	if typed == 0 {
		t.Fatalf("%s does not say how to serve the page", agents)
	}
	p.background(t, "http://"+at+"/ag-ui.js", script)
}

// background runs a script that serves url until the test ends.
func (p program) background(t *testing.T, url, script string) {
	t.Helper()
	var said strings.Builder
	cmd := p.command(t, "bash", "-c", script)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	open, err := cmd.StdinPipe() // the bundler ends with its input
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		<-ended
		_ = open.Close() // nobody reads it
	})
	for tick := time.Tick(50 * time.Millisecond); !answers(t.Context(), url); <-tick {
		select {
		case <-ended:
			t.Fatalf("nothing is served at %s:\n%s", url, said.String())
		default:
		}
	}
}

// answers reports whether there is something at url.
func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// browserTools returns the folder of what the page is bundled and driven with, and a
// browser.
func browserTools(t *testing.T) (folder, chromium string) {
	t.Helper()
	folder, err := filepath.Abs("../testdata/conformance/page")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "puppeteer-core")); err != nil {
		skipUnlessRequired(t, "the tools for the page are not there: npm install in testdata/conformance/page")
	}
	if _, err := exec.LookPath("node"); err != nil {
		skipUnlessRequired(t, "node is not there")
	}
	chromium, err = exec.LookPath("chromium")
	if err != nil {
		skipUnlessRequired(t, "chromium is not there, which the Debian package of that name has")
	}
	return folder, chromium
}

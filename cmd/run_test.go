//go:build unix

package cmd_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestMakeServe types make serve in a copy of the tree that nothing was built in,
// and then whatever it says to try. make run, typed there too, shows a task.
func TestMakeServe(t *testing.T) {
	if !required() {
		t.Skip("builds everything once more: HUTCH_REQUIRE=all runs it")
	}
	p := program{dir: copyTree(t), addr: freeAddr(t)}
	p.env = append(goEnv(t), "HOME="+p.dir, "XDG_STATE_HOME=", "HUTCH_STATE=", "HUTCH_TOOLS=", "HUTCH_ADDR=")
	suggested := makeServe(t, p)
	if !p.isReady(t) {
		t.Error("it is not ready when it says what to try")
	}
	if len(suggested) < 3 || !slices.ContainsFunc(suggested, func(line string) bool { return strings.Contains(line, "tools call") }) {
		t.Errorf("suggested: %q", suggested)
	}
	for _, line := range suggested {
		out, err := p.command(t, "bash", "-c", standIns(t)+line).CombinedOutput()
		if asks := strings.Contains(line, " tools grant ") || strings.Contains(line, " tools call fetch "); asks {
			if err == nil || !strings.Contains(string(out), "terminal") {
				t.Errorf("%s: no person decided, and it says: %v\n%s", line, err, out)
			}
		} else if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	if out, err := p.command(t, "make", "run").CombinedOutput(); err != nil || !strings.Contains(string(out), "in_review") {
		t.Errorf("make run: %v\n%s", err, out)
	}
}

// TestMakeRunShowsATask types what make run does once everything is built: an agent is
// given a task, and the trail is shown until the task is in review.
func TestMakeRunShowsATask(t *testing.T) {
	p := newProgram(t)
	tmp := t.TempDir()
	demo := func(args ...string) *exec.Cmd {
		script, err := filepath.Abs(filepath.Join("..", "examples", "team", "run"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := p.command(t, "sh", append([]string{script}, args...)...)
		cmd.Env = append(cmd.Env, "HUTCH="+p.binary(), "TMPDIR="+tmp)
		return cmd
	}
	cmd := demo()
	shown, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, shown, stderrOf(err))
	}
	for _, want := range []string{"in_progress", "Read the task", "Write the report", "report.md", "in_review"} {
		if !strings.Contains(string(shown), want) {
			t.Errorf("nothing of %q in\n%s", want, shown)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	if out, err := demo("--addr", "no address").CombinedOutput(); err == nil || !strings.Contains(string(out), "hutch: error: ") {
		t.Errorf("a server that does not start: %v\n%s", err, out)
	}
}

func stderrOf(err error) string {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(exit.Stderr)
	}
	return ""
}

// makeServe starts make serve, and returns the commands it suggests once it is
// ready. The end of the test stops it, as Ctrl-C does.
func makeServe(t *testing.T, p program) (suggested []string) {
	t.Helper()
	cmd := p.command(t, "make", "serve", "ARGS=--addr "+p.addr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	t.Cleanup(func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
		_ = cmd.Wait() // make says that it was interrupted
		if c, err := net.Dial("tcp", p.addr); err == nil {
			t.Errorf("after make serve something listens at %s: %v", p.addr, c.Close())
		}
	})
	var seen []string
	for lines.Scan() {
		seen = append(seen, lines.Text())
		command, indented := strings.CutPrefix(lines.Text(), "  ")
		switch {
		case indented:
			suggested = append(suggested, command)
		case len(suggested) > 0:
			if want := "hutch: serving http://" + p.addr + "/mcp"; !slices.Contains(seen, want) {
				t.Errorf("no line %q in\n%s", want, strings.Join(seen, "\n"))
			}
			return suggested
		}
	}
	t.Fatalf("make serve suggests nothing:\n%s", strings.Join(seen, "\n"))
	return nil
}

// standIns are shell functions for programs that are not ours: claude starts the
// server that it is told of, npx is the pinned inspector.
func standIns(t *testing.T) string {
	t.Helper()
	script := "set -euo pipefail\nclaude() { while [ $# -gt 0 ] && [ \"$1\" != -- ]; do shift; done; [ $# = 0 ] || { shift; \"$@\" </dev/null; }; }\n"
	node, clients, ok := mcpClients(t)
	if !ok {
		t.Log("npx does nothing: the MCP inspector is not installed")
		return script + "npx() { :; }\n"
	}
	return script + "npx() { shift; " + node + " " + filepath.Join(clients, inspector) + " \"$@\"; }\n"
}

// copyTree copies what a clone would have into a folder of its own.
func copyTree(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-coz", "--exclude-standard")
	list.Dir = ".."
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		body, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

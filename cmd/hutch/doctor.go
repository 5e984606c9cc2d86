package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/reload"
)

func doctorCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "check that this machine has what hutch needs",
		UsageText: "hutch doctor [flags]",
		Flags:     append(folderFlags(), addrFlag(), jsonFlag("the checks")),
		Action:    func(c *cli.Context) error { return runDoctor(c, p) },
		Description: `Each check says ok, warn or fail, and what to do. The exit code is 1 if one failed.

examples:
  $ hutch doctor
  $ hutch doctor --json`,
	}
}

// verdict is how a check came out.
type verdict string

const (
	verdictOK   verdict = "ok"
	verdictWarn verdict = "warn"
	verdictFail verdict = "fail"
)

// finding is one line of "hutch doctor".
type finding struct {
	Check  string  `json:"check"`
	Status verdict `json:"status"`
	Found  string  `json:"found"`
	Do     string  `json:"do,omitempty"`
}

// patient is what checks look at.
type patient struct {
	cfg Config
	p   program
}

// checks in the order they are shown; a later one may rely on an earlier one
// having said what is wrong.
var checks = []struct {
	name string
	run  func(context.Context, patient) []finding
}{
	{"state folder", checkStateFolder},
	{"cache folder", checkCache},
	{"worker", checkWorker},
	{"tool folders", checkToolFolders},
	{"policy", checkPolicy},
	{"secrets", checkSecrets},
	{"address", checkAddress},
	{"tokens", checkTokens},
	{"certificate", checkCertificate},
	{"agents", checkAgents},
	{"go toolchain", checkGo},
	{"platform", checkPlatform},
}

func runDoctor(c *cli.Context, p program) error {
	if err := wantArgs(c, 0, 0, ""); err != nil {
		return err
	}
	cfg, err := loadJoined(c, p)
	if err != nil {
		return err
	}
	findings, failed := examineAll(c.Context, patient{cfg, p}, &voice{w: c.App.ErrWriter})
	if c.Bool(flagJSON) {
		err = printJSON(c.App.Writer, findings)
	} else {
		err = printFindings(c.App.Writer, findings)
	}
	if err == nil && failed {
		return errReported
	}
	return err
}

func examineAll(ctx context.Context, who patient, say *voice) (findings []finding, failed bool) {
	defer say.done()
	for _, check := range checks {
		if isTerminal(say.w) {
			say.working("checking: %s", check.name)
		}
		for _, f := range check.run(ctx, who) {
			failed = failed || f.Status == verdictFail
			findings = append(findings, f)
		}
	}
	return findings, failed
}

func printFindings(w io.Writer, findings []finding) error {
	var b bytes.Buffer
	for _, f := range findings {
		fmt.Fprintf(&b, "%-4s  %-14s  %s\n", f.Status, f.Check, oneLine(f.Found))
		if f.Do != "" {
			fmt.Fprintf(&b, "%22s-> %s\n", "", oneLine(f.Do))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// verdictOf turns an error with a hint into a finding.
func verdictOf(check string, err error, found string) finding {
	if err != nil {
		return finding{check, verdictFail, err.Error(), hintOf(err)}
	}
	return finding{check, verdictOK, found, ""}
}

func checkStateFolder(_ context.Context, who patient) []finding {
	_, err := openState(who.cfg.State)
	if err == nil {
		err = tryWriting(who.cfg.State)
	}
	return []finding{verdictOf("state folder", err, who.cfg.State)}
}

// checkCache says how much can be won by deleting what can be computed again.
func checkCache(_ context.Context, who patient) []finding {
	files, size := 0, int64(0)
	err := filepath.WalkDir(state{who.cfg.State}.cache(), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) { // another hutch tidied up
			return nil
		}
		if err == nil {
			files++
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return []finding{{"cache folder", verdictFail, err.Error(), "rm -r " + shellWord(state{who.cfg.State}.cache())}}
	}
	return []finding{{"cache folder", verdictOK, plural(files, "file", "files") + ", " + formatSize(size), ""}}
}

func tryWriting(dir string) (err error) {
	f, err := os.CreateTemp(dir, ".doctor-*.tmp")
	if err != nil {
		return hinted(err, "name a folder you may write to with --state DIR")
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString("doctor")
	return errors.Join(err, f.Close())
}

func checkToolFolders(ctx context.Context, who patient) []finding {
	modules := loadedModules(ctx, who)
	var out []finding
	for _, dir := range who.cfg.Tools {
		f := checkToolFolder(dir)
		if f.Status == verdictOK {
			f = f.graded(dir, modules, who.cfg)
		}
		out = append(out, f)
	}
	return out
}

// maxLoading bounds how long the modules are waited for that are not known yet.
const maxLoading = 30 * time.Second

// loadedModules are the modules of all folders as serve would have them; none if
// they cannot be loaded, which other checks say, or not in time.
func loadedModules(ctx context.Context, who patient) []registry.Module {
	ctx, cancel := context.WithTimeout(ctx, maxLoading)
	defer cancel()
	app, err := NewApp(who.cfg, who.p, slog.New(slog.DiscardHandler), false)
	if err != nil {
		return nil
	}
	err = app.Load(ctx)
	modules := app.modules.Modules()
	if errors.Join(err, app.Close()) != nil {
		return nil
	}
	return modules
}

// graded adds what became of the modules in a folder: files that nobody can use are
// worth a warning.
func (f finding) graded(dir string, modules []registry.Module, cfg Config) finding {
	count := map[tool.Status]int{}
	for _, m := range modules {
		if m.Source == dir {
			count[m.Status]++
		}
	}
	var parts []string
	for _, s := range []tool.Status{tool.Ready, tool.Held, tool.Rejected} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	f.Found += prefixed(": ", strings.Join(parts, ", "))
	if count[tool.Held]+count[tool.Rejected] > 0 {
		f.Status, f.Do = verdictWarn, "hutch tools list"+cfg.flags()
	}
	return f
}

func checkToolFolder(dir string) finding {
	f := finding{Check: "tool folder"}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Status, f.Found, f.Do = verdictWarn, dir+" does not exist", "mkdir "+shellWord(dir)
	case err != nil:
		f.Status, f.Found, f.Do = verdictFail, err.Error(), "name a readable folder with --tools DIR"
	default:
		modules := 0
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".wasm") {
				modules++
			}
		}
		f.Status, f.Found = verdictOK, dir+", "+plural(modules, "file", "files")
		if modules > reload.MaxFiles {
			f.Status, f.Do = verdictWarn, "move some of them to a folder of their own, with another --tools DIR"
			f.Found = reload.Crowded{Folder: dir, Files: modules, Most: reload.MaxFiles}.String()
		}
		if info, err := os.Stat(dir); err == nil && exposed(info) {
			f.Status, f.Do = verdictWarn, "chmod go-w "+shellWord(dir)
			f.Found += ", and others may write to it"
		}
	}
	return f
}

func checkAddress(ctx context.Context, who patient) []finding {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", who.cfg.Addr)
	if err != nil {
		if url, ok := hutchServes(ctx, who.cfg.Addr); ok {
			return []finding{{"address", verdictOK, "hutch already serves there: " + url + "/mcp", ""}}
		}
		return []finding{{"address", verdictWarn, err.Error(), "stop what listens there, or use another with --addr HOST:PORT"}}
	}
	return []finding{verdictOf("address", l.Close(), who.cfg.Addr+" is free")}
}

func checkGo(ctx context.Context, _ patient) []finding {
	const name = "go toolchain"
	path, err := findGo()
	if err != nil {
		return []finding{{name, verdictWarn, "none: tools run, but \"hutch build\" and \"hutch test\" need one", hintOf(err)}}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "env", "GOVERSION").Output()
	if err != nil {
		return []finding{{name, verdictWarn, path + ": " + err.Error(), "install Go 1.26 or later from https://go.dev/dl"}}
	}
	return []finding{{name, verdictOK, strings.TrimSpace(string(out)) + " at " + path, ""}}
}

// shellWord quotes s where a shell would take it apart.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:,@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

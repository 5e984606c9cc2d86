package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// version is set by the linker (-X main.version=...); a plain go build has
// what the toolchain recorded instead.
var version string

// buildInfo is what "hutch version --json" prints.
type buildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	Wazero  string `json:"wazero"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

const wazeroPath = "github.com/tetratelabs/wazero"

func readBuildInfo() buildInfo {
	b := buildInfo{Version: version, Go: runtime.Version(), Wazero: "unknown", OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.fill(info)
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "dev"
	}
	return b
}

func (b *buildInfo) fill(info *debug.BuildInfo) {
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value + b.Commit
		case "vcs.modified":
			if s.Value == "true" {
				b.Commit += " (modified)"
			}
		}
	}
	for _, dep := range info.Deps {
		if dep.Path == wazeroPath {
			b.Wazero = dep.Version
		}
	}
}

func versionCommand(program) *cli.Command {
	return &cli.Command{
		Name:      "version",
		Usage:     "say which version this is",
		UsageText: "hutch version [--json]",
		Flags:     []cli.Flag{jsonFlag("the version")},
		Action: func(c *cli.Context) error {
			if err := wantArgs(c, 0, 0, ""); err != nil {
				return err
			}
			return printVersion(c.App.Writer, c.Bool(flagJSON))
		},
		Description: `
examples:
  $ hutch version
  $ hutch version --json`,
	}
}

func printVersion(w io.Writer, asJSON bool) error {
	b := readBuildInfo()
	if asJSON {
		return printJSON(w, b)
	}
	_, err := fmt.Fprintln(w, b)
	return err
}

func (b buildInfo) String() string {
	commit := b.Commit
	if commit == "" {
		commit = "commit unknown"
	}
	return fmt.Sprintf("hutch %s (%s), %s, wazero %s, %s/%s", b.Version, commit, b.Go, b.Wazero, b.OS, b.Arch)
}

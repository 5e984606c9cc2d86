package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"
)

func newCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "new",
		Usage:     "make a folder with a tool to start from",
		UsageText: "hutch new NAME [--json]",
		Flags:     []cli.Flag{jsonFlag("what was made")},
		Action:    func(c *cli.Context) error { return runNew(c, p) },
		Description: `NAME is a letter followed by up to 47 letters, digits, "-" or "_". The folder NAME must not exist
yet. It holds a Go module with one working tool, its test, example calls and the SDK, so that it
builds outside of any repository and offline.

examples:
  $ hutch new greet
  $ hutch test greet
  $ hutch build greet -o tools/greet.wasm`,
	}
}

// newReport is what "hutch new --json" prints.
type newReport struct {
	Name  string   `json:"name"`
	Tool  string   `json:"tool"`
	Dir   string   `json:"dir"`
	Files []string `json:"files"` // below Dir, with slashes
	Next  []string `json:"next"`  // commands to try, in this order
}

var scaffoldName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,47}$`)

func runNew(c *cli.Context, _ program) error {
	if err := wantArgs(c, 1, 1, "a NAME"); err != nil {
		return err
	}
	name := c.Args().First()
	if !scaffoldName.MatchString(name) {
		return usagef("name %s: a letter, then up to 47 letters, digits, - or _", quoted(name)).
			withHint("hutch new greet")
	}
	s := scaffold{Name: name, Tool: strings.ReplaceAll(strings.ToLower(name), "-", "_")}
	files, err := s.write(name)
	if err != nil {
		return err
	}
	report := newReport{Name: name, Tool: s.Tool, Dir: name, Files: files, Next: []string{
		"hutch test " + name,
		fmt.Sprintf("hutch build %s -o %s", name, filepath.Join("tools", name+".wasm")),
		fmt.Sprintf(`hutch tools call %s '{"name":"World"}'`, s.Tool),
	}}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, report)
	}
	_, err = fmt.Fprintf(c.App.Writer, "made %s%c with the tool %s; start with main.go\n\n  %s\n",
		name, filepath.Separator, s.Tool, strings.Join(report.Next, "\n  "))
	return err
}

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"
)

const flagLang = "lang"

func newCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "new",
		Usage:     "make a folder with a tool to start from",
		UsageText: "hutch new NAME [flags]",
		Flags: append(someFlags(flagTools, flagState, flagConfig), jsonFlag("what was made"),
			&cli.StringFlag{Name: flagLang, Value: langGo, Usage: "`LANGUAGE` of the tool: " + langGo + ", or " + langJS + " for JavaScript, which needs no compiler"}),
		Action: func(c *cli.Context) error { return runNew(c, p) },
		Description: `NAME is a letter followed by up to 47 letters, digits, "-" or "_". The folder NAME must not exist
yet. It holds a Go module with one working tool, its test, example calls and the SDK, so that it
builds outside of any repository and offline; or with --lang js the same tool in one JavaScript file, and
example calls. The commands it prints use the folder of modules that is set.

examples:
  $ hutch new greet
  $ hutch new greet --lang js
  $ hutch new greet --tools ~/tools`,
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

func runNew(c *cli.Context, p program) error {
	if err := wantArgs(c, 1, 1, "a NAME"); err != nil {
		return err
	}
	name := c.Args().First()
	if !scaffoldName.MatchString(name) {
		return usagef("name %s: a letter, then up to 47 letters, digits, - or _", quoted(name)).
			withHint("hutch new greet")
	}
	lang := c.String(flagLang)
	if scaffoldPaths[lang] == nil {
		return usagef("--%s %s: allowed are %s and %s", flagLang, quoted(lang), langGo, langJS).
			withHint("hutch new %s --%s %s; hutch build FILE.wasm takes what a compiler of another language made", name, flagLang, langJS)
	}
	cfg, err := loadJoined(c, p)
	if err != nil {
		return err
	}
	s := scaffold{Name: name, Tool: strings.ReplaceAll(strings.ToLower(name), "-", "_"), Lang: lang}
	names, err := p.reservedNames()
	if err != nil {
		return err
	}
	if names.tools[s.Tool] != "" || names.files[name+moduleSuffix] != "" {
		return usagef("name %s: it belongs to a module that comes with hutch", quoted(name)).
			withHint("choose another name: hutch new my-%s", name)
	}
	s.Build, s.Call = cfg.recipe(s.Tool)
	files, err := s.write(name)
	if err != nil {
		return err
	}
	report := newReport{Name: name, Tool: s.Tool, Dir: name, Files: files, Next: []string{
		"cd " + name, "hutch test", s.Build, s.Call,
	}}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, report)
	}
	_, err = fmt.Fprintf(c.App.Writer, "made %s%c with the tool %s; start with %s\n\n  %s\n",
		name, filepath.Separator, s.Tool, s.main(), strings.Join(report.Next, "\n  "))
	return err
}

// recipe are the commands that build a module into the folder that is in force
// and call its tool there, typed in the module's own folder.
func (cfg Config) recipe(tool string) (build, call string) {
	dir, flag := cfg.Tools[0], ""
	switch {
	case cfg.toolsFrom == envTools && len(cfg.Tools) == 1 && filepath.IsAbs(dir):
		dir = `"$` + envTools + `/"` // the call finds it by itself
	default:
		if !filepath.IsAbs(dir) {
			dir = filepath.Join("..", dir)
		}
		flag, dir = " --tools "+shellWord(dir), shellWord(dir+string(filepath.Separator))
	}
	return "hutch build -o " + dir, fmt.Sprintf(`hutch tools call%s %s '{"name":"World"}'`, flag, tool)
}

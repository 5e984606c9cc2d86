package main

import (
	"strings"
	"testing"
)

func TestArrange(t *testing.T) {
	app := newCLI(program{})
	for line, want := range map[string]string{
		"":                                 "HELP",
		"help":                             "HELP",
		"help tools call":                  "HELP tools call",
		"tools":                            "HELP tools",
		"tools call x -h":                  "HELP tools call",
		"--version":                        "--version",
		"serve --tools a --addr b":         "serve --tools a --addr b",
		"tools call n {} --json":           "tools call --json -- n {}",
		"tools call n --state s {} --json": "tools call --state s --json -- n {}",
		"tools call n --state=s {}":        "tools call --state=s -- n {}",
		"tools call n -":                   "tools call -- n -",
		"tools call n -- --json -h":        "tools call -- n --json -h",
		"tools call --json --unknown n":    "tools call --json --unknown -- n",
		"build d -o out.wasm":              "build -o out.wasm -- d",
		"tools call help":                  "tools call -- help",
		"help nothing":                     "--  nothing",
		"tools lst --help":                 "tools -- lst",
		"serve --tools":                    "serve --tools",
		"tools grant n --kv":               "tools grant --kv",
		"tools grant n --json --kv":        "tools grant --json --kv",
		"tools grant n --kv 1KiB":          "tools grant --kv 1KiB -- n",
	} {
		got, help := arrange(app, strings.Fields(line))
		found := strings.Join(got, " ")
		if help {
			found = strings.TrimSpace("HELP " + found)
		}
		if found != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%q: %q, want %q", line, found, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"tools", "tols", 1}, {"serve", "sevre", 2}, {"new", "wen", 2}, {"abc", "xyz", 3}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func FuzzArrange(f *testing.F) {
	f.Add("tools call n {} --json -- x")
	f.Add("help -h --help help")
	app := newCLI(program{})
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		got, help := arrange(app, args)
		lacks := len(got) > 0 && strings.HasPrefix(got[len(got)-1], "-") // nothing else is read then
		if !help && len(got) < len(args)-3 && !lacks {
			t.Errorf("%q lost arguments: %q", args, got)
		}
	})
}

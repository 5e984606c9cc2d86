package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// page is what help says about the program or a command.
type page struct {
	name, about, usage, more string
	commands                 []*cli.Command
	flags                    []cli.Flag
}

// printHelp writes help about the command that path names, or about the
// program if it names none.
func printHelp(w io.Writer, app *cli.App, path []string) error {
	p := page{"hutch", app.Usage, app.UsageText, app.Description, app.Commands, app.Flags}
	for _, name := range path {
		cmd := commandNamed(p.commands, name)
		p = page{p.name + " " + name, cmd.Usage, cmd.UsageText, cmd.Description, cmd.Subcommands, cmd.Flags}
	}
	_, err := w.Write(p.render())
	return err
}

func (p page) render() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n\nusage: %s\n", p.name, p.about, p.usage)
	var commands, flags [][2]string
	for _, cmd := range p.commands {
		commands = append(commands, [2]string{cmd.Name, cmd.Usage})
	}
	for _, flag := range p.flags {
		flags = append(flags, flagLine(flag))
	}
	writeRows(&b, "commands", commands)
	writeRows(&b, "flags", flags)
	if p.more != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(p.more))
	}
	return b.Bytes()
}

func writeRows(b *bytes.Buffer, title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	width := 0
	for _, row := range rows {
		width = max(width, len(row[0]))
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, row := range rows {
		fmt.Fprintf(b, "  %-*s  %s\n", width, row[0], row[1])
	}
}

// flagLine returns how a flag is typed and what it does. The word in backquotes
// in its usage stands for its value; one that only stands there for that, with a
// colon after it, is left out of the text.
func flagLine(flag cli.Flag) [2]string {
	var names []string
	for _, name := range flag.Names() {
		dashes := "--"
		if len(name) == 1 {
			dashes = "-"
		}
		names = append(names, dashes+name)
	}
	typed, usage := strings.Join(names, ", "), ""
	if doc, ok := flag.(cli.DocGenerationFlag); ok {
		usage = doc.GetUsage()
	}
	if _, rest, ok := strings.Cut(usage, "`"); ok {
		word, _, _ := strings.Cut(rest, "`")
		typed += " " + word
		usage = strings.TrimPrefix(usage, "`"+word+"`: ")
	}
	return [2]string{typed, strings.ReplaceAll(usage, "`", "")}
}

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tracker"
)

const (
	flagMessage = "message"
	flagOutput  = "output"
)

func trackerFileCommand(p program) *cli.Command {
	return trackerGroup("file", "upload, list and download the files of tasks and messages", `A file has at most `+formatSize(tracker.MaxFile)+`.

examples:
  $ hutch tracker file upload report.pdf --task TB-1
  $ hutch tracker file list --task TB-1
  $ hutch tracker file download 01890a5d-ac96-774b-bcce-b302099a8057`,
		fileUploadCommand(p), fileListCommand(p), fileDownloadCommand(p))
}

func fileUploadCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "upload", Usage: "keep a file at a task or a message, and print its id", UsageText: "hutch tracker file upload FILE [flags]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagTask, Usage: "`TASK`: keep it at a task"},
			&cli.StringFlag{Name: flagMessage, Usage: "`MESSAGE`: keep it at a message"},
			&cli.StringFlag{Name: flagName, Usage: "`NAME`: what it is called there (default: as it is here)"},
		},
		Description: `FILE - is standard input, and needs a name.

examples:
  $ hutch tracker file upload report.pdf --task TB-1
  $ dmesg | hutch tracker file upload - --name dmesg.txt --task TB-1`,
	}, 1, 1, func(a trackerAsk) error {
		if _, err := a.oneOfFlags(flagTask, flagMessage); err != nil {
			return err
		}
		in := tracker.UploadFile{TaskID: a.String(flagTask), MessageID: a.String(flagMessage), Filename: a.String(flagName), IdempotencyKey: onceKey()}
		if in.Filename == "" {
			if a.arg(0) == stdinText {
				return usagef("standard input has no name: --%s NAME gives it one", flagName)
			}
			in.Filename = filepath.Base(a.arg(0))
		}
		var err error
		if in.Content, err = a.readUpload(a.arg(0)); err != nil {
			return err
		}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.AttachmentOut, error) {
			return s.UploadFile(ctx, in)
		},
			func(w io.Writer, f tracker.AttachmentOut) { printLine(w, f.ID) })
	})
}

// readUpload reads a file, or standard input, of at most [tracker.MaxFile].
func (a trackerAsk) readUpload(path string) (body []byte, err error) {
	from, in := "standard input", io.Reader(a.p.stdin)
	if path != stdinText {
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is no regular file")
		}
		if err != nil {
			return nil, fmt.Errorf("upload %s: %w", quoted(path), withoutPath(err))
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("upload %s: %w", quoted(path), withoutPath(err))
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		from, in = quoted(path), f
	}
	if body, err = io.ReadAll(io.LimitReader(in, tracker.MaxFile+1)); err != nil {
		return nil, fmt.Errorf("upload %s: %w", from, withoutPath(err))
	}
	if len(body) > tracker.MaxFile {
		return nil, usagef("upload %s: it has more than %s, the most that a file may have", from, formatSize(tracker.MaxFile))
	}
	return body, nil
}

func fileListCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "list", Usage: "list files: id, size, type, name", UsageText: "hutch tracker file list [flags]",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: flagTask, Usage: "`TASK`: those of a task and of its comments"},
			&cli.StringFlag{Name: flagMessage, Usage: "`MESSAGE`: those of a message"},
			&cli.StringFlag{Name: flagProject, Usage: "`PROJECT`: those of a project"},
		}, pageFlags()...),
		Description: `The oldest come first.

examples:
  $ hutch tracker file list --task TB-1
  $ hutch tracker file list --project team-board --json`,
	}, 0, 0, func(a trackerAsk) error {
		paging, err := a.paging()
		if err != nil {
			return err
		}
		if _, err := a.oneOfFlags(flagTask, flagMessage, flagProject); err != nil {
			return err
		}
		q := tracker.FileQuery{TaskID: a.String(flagTask), MessageID: a.String(flagMessage), ProjectID: a.String(flagProject), Paging: paging}
		return informPage(a, "no files", func(ctx context.Context, s trackerService) (tracker.Page[tracker.AttachmentOut], error) {
			return s.ListFiles(ctx, q)
		}, a.fileRows)
	})
}

func (a trackerAsk) fileRows(w io.Writer, all []tracker.AttachmentOut) {
	rows := make([][]string, len(all))
	for i, f := range all {
		rows[i] = []string{f.ID, formatSize(f.Size), f.MIME, f.Filename}
	}
	trackerTable(w, a.columns(), rows)
}

func fileDownloadCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "download", Usage: "write a file here, and print its name", UsageText: "hutch tracker file download FILE [flags]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagOutput, Usage: "`PATH`: where it goes; - is standard output (default: its name, in this folder)"},
			&cli.BoolFlag{Name: flagForce, Usage: "write over a file that is there"},
		},
		Description: `FILE is the id that "hutch tracker file list" tells. Of the name that somebody gave it stays what can be the
name of a file here. What is there already is left as it is.

examples:
  $ hutch tracker file download 01890a5d-ac96-774b-bcce-b302099a8057
  $ hutch tracker file download 01890a5d-ac96-774b-bcce-b302099a8057 --output - | less`,
	}, 1, 1, runFileDownload)
}

func runFileDownload(a trackerAsk) error {
	to := a.String(flagOutput)
	if a.Bool(flagJSON) && (to != "" || a.Bool(flagForce)) {
		return usagef("--%s prints the file: it goes with neither --%s nor --%s", flagJSON, flagOutput, flagForce)
	}
	var f tracker.FileOut
	err := a.do(func(ctx context.Context, s trackerService) (err error) {
		f, err = s.DownloadFile(ctx, a.arg(0))
		return err
	})
	if err != nil {
		return err
	}
	if found := sha256.Sum256(f.Content); f.SHA256 != hex.EncodeToString(found[:]) {
		return errors.New("the file arrived damaged: its digest is another")
	}
	switch {
	case a.Bool(flagJSON):
		return printJSON(a.App.Writer, f)
	case to == stdinText:
		return writeToOutput(a.App.Writer, f.Content)
	case to == "":
		to = safeName(f.Filename)
	}
	if err := writeDownload(to, f.Content, a.Bool(flagForce)); err != nil {
		return err
	}
	return rendered(a.App.Writer, func(w io.Writer) { printLine(w, to) })
}

// writeToOutput writes a file to standard output; a terminal gets text alone.
func writeToOutput(w io.Writer, body []byte) error {
	if isTerminal(w) {
		if bytes.IndexByte(body, 0) >= 0 {
			return usagef("the file is no text: it does not go to a terminal").withHint("name a file with --%s PATH", flagOutput)
		}
		body = []byte(printable(string(body)))
	}
	_, err := w.Write(body)
	return err
}

// writeDownload writes a file that is not there, or with force one that may be.
func writeDownload(path string, body []byte, force bool) (err error) {
	if force {
		return writeAtomic(path, body)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return hinted(fmt.Errorf("%s is there already", quoted(path)), "write over it with --%s, or name another file with --%s PATH", flagForce, flagOutput)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", quoted(path), withoutPath(err))
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // err says what went wrong
		return fmt.Errorf("write %s: %w", quoted(path), withoutPath(err))
	}
	return nil
}

// safeName is what of a foreign name can be the name of a file in this folder, and looks
// like what it is.
func safeName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if abi.Hidden(r) || strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	name = strings.TrimRight(name, " .")
	if base, _, _ := strings.Cut(name, "."); isDevice(base) {
		name = "_" + name
	}
	if trimmed := strings.TrimLeft(name, ".-~ "); trimmed != name {
		name = "_" + trimmed
	}
	if name == "" || name == "_" {
		return "file"
	}
	return cutName(name)
}

// cutName keeps the ending of a name that is too long.
func cutName(name string) string {
	ending := filepath.Ext(name)
	if len(name) <= tracker.MaxFilename || len(ending) > 20 {
		return abi.Cut(name, tracker.MaxFilename)
	}
	return abi.Cut(strings.TrimSuffix(name, ending), tracker.MaxFilename-len(ending)) + ending
}

// isDevice reports whether Windows takes a name for a device, whatever its ending.
func isDevice(name string) bool {
	name = strings.ToUpper(name)
	switch {
	case name == "CON", name == "PRN", name == "AUX", name == "NUL":
		return true
	case len(name) == 4 && (strings.HasPrefix(name, "COM") || strings.HasPrefix(name, "LPT")):
		return name[3] >= '0' && name[3] <= '9'
	}
	return false
}

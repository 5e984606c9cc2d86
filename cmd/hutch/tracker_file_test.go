package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// A file that somebody named is written in this folder and nowhere else, under a name that
// can be typed and says what it is.
func TestSafeNames(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range [][2]string{
		{"report.pdf", "report.pdf"}, {"Отчёт 1.txt", "Отчёт 1.txt"}, {"../../etc/passwd", "passwd"}, {`C:\Windows\system.ini`, "system.ini"},
		{"/etc/", "file"}, {"..", "file"}, {".", "file"}, {"", "file"}, {".bashrc", "_bashrc"}, {"-rf", "_rf"}, {"~root", "_root"}, {"...x", "_x"},
		{"a\nb\x1b[m.txt", "a_b_[m.txt"}, {"gpj.\u202eexe", "gpj._exe"}, {"a:b*c?.txt", "a_b_c_.txt"}, {"a.txt. . ", "a.txt"},
		{"con", "_con"}, {"NUL.txt", "_NUL.txt"}, {"com1.log", "_com1.log"}, {"LPT9", "_LPT9"}, {"com10", "com10"}, {"console.txt", "console.txt"},
		{"a\xffb", "a_b"},
	} {
		if got := safeName(c[0]); got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
	}
	for _, name := range []string{long + ".pdf", long, "x." + long, strings.Repeat("ж", 300) + ".txt"} {
		got := safeName(name)
		if len(got) > tracker.MaxFilename || strings.HasSuffix(name, ".pdf") && !strings.HasSuffix(got, ".pdf") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}

// A download writes over nothing unless it is told to, and through no link.
func TestDownloadsWriteOverNothing(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "here.txt"), filepath.Join(dir, "other.txt")
	must(t, os.WriteFile(other, []byte("other"), 0o644))
	must(t, writeDownload(path, []byte("one"), false))
	if err := writeDownload(path, []byte("two"), false); err == nil || !strings.HasSuffix(err.Error(), "is there already") || hintOf(err) == "" {
		t.Errorf("a file that is there: %v", err)
	}
	must(t, writeDownload(path, []byte("three"), true))
	link := filepath.Join(dir, "link.txt")
	must(t, os.Symlink(other, link))
	if err := writeDownload(link, []byte("four"), false); err == nil {
		t.Error("a link was written through")
	}
	must(t, writeDownload(link, []byte("five"), true))
	for path, want := range map[string]string{path: "three", other: "other", link: "five"} {
		if body, err := os.ReadFile(path); err != nil || string(body) != want {
			t.Errorf("%s: %q, %v, want %q", path, body, err, want)
		}
	}
}

// What is too large is refused before it is sent, and so is what is no file.
func TestUploadsAreBounded(t *testing.T) {
	w := newTrackerElsewhere(t)
	w.do("init")
	w.do("task", "create", "team", "First")
	large := filepath.Join(t.TempDir(), "large")
	must(t, os.WriteFile(large, nil, 0o600))
	must(t, os.Truncate(large, tracker.MaxFile+1))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{large, "--task", "TE-1"}, "it has more than 10MiB, the most that a file may have"},
		{[]string{t.TempDir(), "--task", "TE-1"}, "it is no regular file"},
		{[]string{filepath.Join(t.TempDir(), "none"), "--task", "TE-1"}, "no such file or directory"},
		{[]string{"-", "--task", "TE-1"}, "standard input has no name: --name NAME gives it one"},
		{[]string{large}, "tracker file upload where: it takes --task or --message"},
		{[]string{large, "--task", "TE-1", "--message", "x"}, "--task and --message: one of them says where"},
	} {
		if _, _, err := w.try(append([]string{"file", "upload"}, c.args...)...); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
	must(t, os.Truncate(large, tracker.MaxFile))
	w.do("file", "upload", large, "--task", "TE-1")
	w.do("file", "upload", "-", "--name", "in.txt", "--task", "TE-1")
}

// What a tracker elsewhere says of a file is not believed: neither its name nor that it is
// whole.
func TestDownloadsFromElsewhere(t *testing.T) {
	body, dir := []byte("all is well"), t.TempDir()
	digest := fmt.Sprintf("%x", sha256.Sum256(body))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := tracker.FileOut{Filename: "../../\u202etxt.evil", Content: body, AttachmentOut: tracker.AttachmentOut{SHA256: digest}}
		if r.URL.Path == "/attachments/damaged" {
			f.Content = body[1:]
		}
		_ = json.NewEncoder(w).Encode(f)
	}))
	t.Cleanup(server.Close)
	w := &trackerElsewhere{t: t, cfg: Config{State: filepath.Join(t.TempDir(), "state")}}
	w.cfg.Policy = state{w.cfg.State}.policy()
	w.env = map[string]string{envTrackerURL: server.URL, envTrackerToken: w.file("token", "token")}
	t.Chdir(dir)
	if got := w.do("file", "download", "whole"); got != "_txt.evil" {
		t.Errorf("written to %q", got)
	}
	if found, err := os.ReadFile(filepath.Join(dir, "_txt.evil")); err != nil || string(found) != string(body) {
		t.Errorf("%q, %v", found, err)
	}
	if _, _, err := w.try("file", "download", "whole"); err == nil || !strings.HasSuffix(err.Error(), "is there already") {
		t.Errorf("once more: %v", err)
	}
	w.do("file", "download", "whole", "--force")
	if out, _, err := w.try("file", "download", "whole", "--output", "-"); err != nil || out != string(body) {
		t.Errorf("to standard output: %q, %v", out, err)
	}
	if out, _, err := w.try("file", "download", "damaged", "--output", "-"); err == nil || out != "" || err.Error() != "the file arrived damaged: its digest is another" {
		t.Errorf("damaged: %q, %v", out, err)
	}
	if _, _, err := w.try("file", "download", "whole", "--json", "--force"); exitCode(err) != exitUsage {
		t.Errorf("as JSON and written: %v", err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("the folder has %v, %v", all, err)
	}
}

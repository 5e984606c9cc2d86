package main

import (
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

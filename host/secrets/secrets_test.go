package secrets_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/host/secrets"
)

func TestMain(m *testing.M) {
	if text := os.Getenv("SECRETS_TEST_PANIC"); text != "" {
		panic(secrets.Hide("token", text))
	}
	goleak.VerifyTestMain(m)
}

// put writes a file of secrets, and returns where.
func put(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secrets")
	rewrite(t, path, text)
	return path
}

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, o secrets.Options) *secrets.Vault {
	t.Helper()
	v, err := secrets.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// vault returns one with these lines in its file.
func vault(t *testing.T, lines ...string) *secrets.Vault {
	t.Helper()
	return open(t, secrets.Options{File: put(t, strings.Join(lines, "\n")+"\n")})
}

func set(t *testing.T, v *secrets.Vault, name, value string) {
	t.Helper()
	if err := v.Set(name, value); err != nil {
		t.Fatalf("Set(%s): %v", name, err)
	}
}

func wantValue(t *testing.T, v *secrets.Vault, name, want string) {
	t.Helper()
	got, ok := v.Get(name)
	if ok != (want != "") || got.Reveal() != want {
		t.Errorf("Get(%s) = %q, %t, want %q", name, got.Reveal(), ok, want)
	}
}

func TestSources(t *testing.T) {
	v := open(t, secrets.Options{
		Environ: []string{"HUTCH_SECRET_GITHUB_TOKEN=from-environment", "HUTCH_SECRET_UNUSED=", "HOME=/x", "SECRET=abcdefg"},
		File:    put(t, "# mine\n\ngithub-token=from-file\r\nfile_only = from file, with = and \\ and #\nquoted=\"line 1\\nline 2 \\u00e9\"\n"),
	})
	wantValue(t, v, "github_token", "from-environment")
	wantValue(t, v, "github-token", "from-environment")
	wantValue(t, v, "file_only", `from file, with = and \ and #`)
	wantValue(t, v, "quoted", "line 1\nline 2 é")
	wantValue(t, v, "unused", "")
	wantValue(t, v, "FILE_ONLY", "")
	want := []secrets.Listed{{"file_only", secrets.File}, {"github_token", secrets.Environment}, {"quoted", secrets.File}}
	if got := v.Names(); !slices.Equal(got, want) {
		t.Errorf("Names = %v, want %v", got, want)
	}
	if value, _ := v.Get("github-token"); value.Name() != "github-token" {
		t.Errorf("Name = %q", value.Name())
	}
}

func TestEmptyVault(t *testing.T) {
	v := open(t, secrets.Options{})
	wantValue(t, v, "any", "")
	if err := v.Set("any", "abcdef"); err == nil || !strings.Contains(err.Error(), "no file to keep secrets in") {
		t.Errorf("Set: %v", err)
	}
	if err := v.Remove("any"); !errors.Is(err, secrets.ErrUnset) {
		t.Errorf("Remove: %v", err)
	}
	if text, n := v.Redactor().Text("anything at all"); n != 0 || text != "anything at all" {
		t.Errorf("Text = %q, %d", text, n)
	}
}

// A file that is wrong in any line is not used, and what is said about it does not
// show what is in it.
func TestFilesThatAreWrong(t *testing.T) {
	many := strings.Repeat("x\n", 100)
	full := ""
	for i := range secrets.MaxSecrets + 1 {
		full += fmt.Sprintf("name%d=value-%d\n", i, i)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"no equals sign", "ok=abcdef\nhunter2hunter2\n", "line 2: no equals sign"},
		{"name", "hunter2 hunter2=abcdef\n", "line 1: a secret's name is letters"},
		{"export", "export token=hunter2hunter2\n", "line 1: a secret's name is letters"},
		{"name too long", strings.Repeat("n", 65) + "=hunter2\n", "line 1: a secret's name is letters"},
		{"name begins with a dash", "-n=hunter2\n", "line 1: a secret's name is letters"},
		{"empty", "token=\n", "line 1: the value is empty"},
		{"empty in quotes", `token=""`, "line 1: the value is empty"},
		{"short", "token=hunte\n", "line 1: the value has 5 bytes, allowed are 6 and more"},
		{"long", "token=" + strings.Repeat("h", secrets.MaxValue+1), "line 1: the value has 65537 bytes, at most 65536"},
		{"half a string", `token="hunter2`, "line 1: a value that begins with a double quote"},
		{"more behind a string", `token="hunter2" hunter2`, "line 1: a value that begins with a double quote"},
		{"single quotes", `token='hunter2'`, "line 1: a value that begins with a single quote"},
		{"space at the end", `token="hunter2 "`, "line 1: the value begins or ends with a space"},
		{"zero byte", `token="hunter2\u0000x"`, "line 1: the value is not text"},
		{"placeholder", "token=secret://hunter2\n", "line 1: the value has secret:// in it"},
		{"twice", "token=hunter2\n\ntoken=hunter3\n", "line 3: token is in line 1 already"},
		{"not UTF-8", "token=hunter2\xff\n", "the text is not UTF-8"},
		{"many", many, "line 20: no equals sign"},
		{"too many", full, fmt.Sprintf("%d secrets, at most %d", secrets.MaxSecrets+1, secrets.MaxSecrets)},
		{"too large", strings.Repeat("#", secrets.MaxFile+1), fmt.Sprintf("it has more than %d bytes", secrets.MaxFile)},
		{"a name", "token=hunter2\nhunter=hunter22\nother=unter2\nhunter2x=abcdefg", "its value is part of the name of a secret"},
		{"the marker", "token=redacted\n", "its value is part of the name of a secret, or of the word redacted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := secrets.Open(secrets.Options{File: put(t, tt.text)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Open: %v\nwant %q in it", err, tt.want)
			}
			if strings.Contains(err.Error(), "line 21") || strings.Contains(err.Error(), "hunter2hunter2") ||
				strings.Contains(err.Error(), "unter2 ") || strings.Contains(err.Error(), os.TempDir()) {
				t.Errorf("Open says too much: %v", err)
			}
		})
	}
	for _, tt := range []struct{ name, pair, want string }{
		{"short", "HUTCH_SECRET_TOKEN=hunt", "environment: HUTCH_SECRET_TOKEN: the value has 4 bytes"},
		{"name", "HUTCH_SECRET_A.B=hunter2", "environment: a variable that begins with HUTCH_SECRET_: a secret's name"},
	} {
		t.Run("environment, "+tt.name, func(t *testing.T) {
			_, err := secrets.Open(secrets.Options{Environ: []string{tt.pair}})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunt") {
				t.Errorf("Open: %v\nwant %q in it", err, tt.want)
			}
		})
	}
}

// At the limits everything fits.
func TestFilesAtTheirLimits(t *testing.T) {
	text := "token=abcdef\nlong=" + strings.Repeat("v", secrets.MaxValue) + "\n" + strings.Repeat("n", 64) + "=abcdefg\n"
	for i := range secrets.MaxSecrets - 3 {
		text += fmt.Sprintf("n%d=value-%d\n", i, i)
	}
	text += strings.Repeat("#", secrets.MaxFile-len(text))
	if got := len(open(t, secrets.Options{File: put(t, text)}).Names()); got != secrets.MaxSecrets {
		t.Errorf("%d secrets, want %d", got, secrets.MaxSecrets)
	}
}

func TestSetAndRemove(t *testing.T) {
	path := put(t, "# keep me\nfirst=one-one\n\n# and me\nlast=two-two\n")
	v := open(t, secrets.Options{File: path})
	set(t, v, "last", "2-2-2-2")
	set(t, v, "pem", "-----BEGIN\n\"x\"\n-----END")
	set(t, v, "quote", `'single`)
	set(t, v, "double", `"double`)
	if err := v.Remove("first"); err != nil {
		t.Fatal(err)
	}
	want := "# keep me\n\n# and me\nlast=2-2-2-2\npem=\"-----BEGIN\\n\\\"x\\\"\\n-----END\"\nquote=\"'single\"\ndouble=\"\\\"double\"\n"
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("file: %v\n%s\nwant\n%s", err, got, want)
	}
	for _, other := range []*secrets.Vault{v, open(t, secrets.Options{File: path})} {
		wantValue(t, other, "first", "")
		wantValue(t, other, "last", "2-2-2-2")
		wantValue(t, other, "pem", "-----BEGIN\n\"x\"\n-----END")
		wantValue(t, other, "quote", `'single`)
		wantValue(t, other, "double", `"double`)
	}
	if err := v.Remove("first"); !errors.Is(err, secrets.ErrUnset) || err.Error() != "first: the secret is not set" {
		t.Errorf("Remove again: %v", err)
	}
}

func TestSetRefuses(t *testing.T) {
	v := open(t, secrets.Options{File: put(t, "token=hunter2hunter2\n"), Environ: []string{"HUTCH_SECRET_HERE=abcdef"}})
	for _, tt := range []struct{ name, value, want string }{
		{"", "hunter22", "a secret's name"},
		{"a b", "hunter22", "a secret's name"},
		{"x", "hunte", "the value has 5 bytes"},
		{"x", "", "the value is empty"},
		{"x", "hunter22\n", "begins or ends with a space or a line break"},
		{"x", "hunter\xff", "not text"},
		{"here", "hunter22", "here comes from the environment: take HUTCH_SECRET_HERE out of it"},
		{"hunter2hunter2", "hunter22", "secret token: its value is part of the name"},
	} {
		if err := v.Set(tt.name, tt.value); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("Set(%q): %v\nwant %q in it", tt.name, err, tt.want)
		}
	}
	if err := v.Remove("here"); err == nil || !strings.Contains(err.Error(), "take HUTCH_SECRET_HERE out") {
		t.Errorf("Remove: %v", err)
	}
	if names := v.Names(); len(names) != 2 {
		t.Errorf("Names = %v, want here and token", names)
	}
}

// What other processes do with the file is seen at once, also when time stands
// still between two changes.
func TestChangesAreSeenWithoutRestart(t *testing.T) {
	path := put(t, "token=value-0\n")
	v := open(t, secrets.Options{File: path})
	past := time.Now().Add(-time.Hour)
	for i := range 20 {
		rewrite(t, path, fmt.Sprintf("token=value-%d\n", i%10)) // as long as before
		if i%2 == 0 {
			if err := os.Chtimes(path, past.Add(time.Duration(i)*time.Second), past.Add(time.Duration(i)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		wantValue(t, v, "token", fmt.Sprintf("value-%d", i%10))
	}
	set(t, open(t, secrets.Options{File: path}), "token", "by another")
	wantValue(t, v, "token", "by another")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantValue(t, v, "token", "")
	set(t, v, "token", "and back")
	wantValue(t, v, "token", "and back")
}

// Nor does a clock that ticks too slowly to tell two changes apart hide the second.
func TestChangeWithinATickIsSeen(t *testing.T) {
	path, tick := put(t, "token=value-1\n"), time.Now()
	stop := func() {
		if err := os.Chtimes(path, tick, tick); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	v := open(t, secrets.Options{File: path})
	wantValue(t, v, "token", "value-1")
	rewrite(t, path, "token=value-2\n")
	stop()
	wantValue(t, v, "token", "value-2")
}

// An old file that is replaced by another with the same size and time is another.
func TestReplacedFileIsSeen(t *testing.T) {
	path, past := put(t, "token=value-1\n"), time.Now().Add(-time.Hour)
	next := put(t, "token=value-2\n")
	for _, p := range []string{path, next} {
		if err := os.Chtimes(p, past, past); err != nil {
			t.Fatal(err)
		}
	}
	v := open(t, secrets.Options{File: path})
	wantValue(t, v, "token", "value-1")
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	wantValue(t, v, "token", "value-2")
}

// A file that is broken while the vault is in use gives nothing, says so once, and
// comes back when it is repaired.
func TestBrokenFileGivesNothing(t *testing.T) {
	var log bytes.Buffer
	path := put(t, "token=hunter2hunter2\n")
	v := open(t, secrets.Options{File: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	rewrite(t, path, "token=hunter2hunter2\nhunter3hunter3\n")
	for range 3 {
		wantValue(t, v, "token", "")
	}
	if err := v.Err(); err == nil || !strings.Contains(err.Error(), "secrets in the file: line 2: no equals sign") {
		t.Errorf("Err = %v", err)
	}
	if text, n := v.Redactor().Text("it was hunter2hunter2"); n != 1 {
		t.Errorf("Text = %q", text)
	}
	if err := v.Set("token", "hunter4hunter4"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("Set into a broken file: %v", err)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || strings.Contains(got, "hunter") {
		t.Errorf("log:\n%s", got)
	}
	rewrite(t, path, "token=hunter5hunter5\n")
	wantValue(t, v, "token", "hunter5hunter5")
	if err := v.Err(); err != nil {
		t.Errorf("Err = %v", err)
	}
}

// Readers never see half a file, and writers in several vaults lose nothing.
func TestWritersAndReadersAtOnce(t *testing.T) {
	const writers, each = 4, 8
	path := put(t, "stays=always-here\n")
	var group, readers sync.WaitGroup
	done := make(chan struct{})
	reading := open(t, secrets.Options{File: path})
	readers.Go(func() {
		for {
			wantValue(t, reading, "stays", "always-here")
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for w := range writers {
		group.Go(func() {
			v, err := secrets.Open(secrets.Options{File: path})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range each {
				if err := v.Set(fmt.Sprintf("s%d-%d", w, i), "abcdefgh"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	close(done)
	readers.Wait()
	if got := len(reading.Names()); got != 1+writers*each {
		t.Errorf("%d secrets, want %d", got, 1+writers*each)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestWriteThatFailsLeavesTheFile(t *testing.T) {
	path := put(t, "token=hunter2hunter2\n")
	v := open(t, secrets.Options{File: path})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	err := v.Set("other", "abcdefgh")
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Set: %v", err)
	}
	if err := secrets.WritePrivate(path, []byte("x")); err == nil {
		t.Error("a folder was replaced")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	gone := open(t, secrets.Options{File: filepath.Join(t.TempDir(), "no", "folder")})
	if err := gone.Set("other", "abcdefgh"); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "folder") {
		t.Errorf("Set: %v", err)
	}
}

func FuzzFile(f *testing.F) {
	for _, text := range []string{"# c\n\na=abcdef\r\n", "a = \"x\\ny z\"\nb='x'", "a=#abcdef\na=abcdefg", "é=abcdef", "a=\"abcdef\" x", "a=ab cdef\u2028"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		values, again, err := secrets.ReadLines(text)
		if err != nil {
			return
		}
		same, _, err := secrets.ReadLines([]byte(again))
		if err != nil || !maps.Equal(values, same) {
			t.Fatalf("%q was written as %q: %v", text, again, err)
		}
	})
}

// Everything that is wrong is told with its place, and nothing of a value.
func TestProblems(t *testing.T) {
	if got := vault(t, "token=hunter2hunter2").Problems(); got != nil {
		t.Errorf("nothing is wrong: %v", got)
	}
	o := secrets.Options{File: put(t, "token=hunter2hunter2\nempty=\n# ok\nhunter2hunter2\n"), AgeFile: put(t, "hunter2hunter2"), AgeIdentity: put(t, x25519(t).String())}
	v, err := secrets.Open(o)
	if v == nil || err == nil {
		t.Fatalf("Open: %v", err)
	}
	want := []secrets.Problem{
		{Source: secrets.File, Line: 2, Text: "the value is empty: leave the secret out, or remove it"},
		{Source: secrets.File, Line: 4, Text: "no equals sign: a line is name=value"},
		{Source: secrets.AgeFile, Text: "it is not encrypted with age"},
	}
	if got := v.Problems(); !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	v, _ = secrets.Open(secrets.Options{File: put(t, "a=redacted\n")})
	if got := v.Problems(); len(got) != 1 || got[0].Source != "" || !strings.HasPrefix(got[0].Text, "secret a: its value is part of ") {
		t.Errorf("files that do not go together: %+v", got)
	}
}

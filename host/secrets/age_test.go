package secrets_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/hutch-run/hutch/host/secrets"
)

func x25519(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// encrypted writes a file of secrets for these recipients.
func encrypted(t *testing.T, text string, armored bool, to ...age.Recipient) string {
	t.Helper()
	var b bytes.Buffer
	out := io.WriteCloser(nopCloser{&b})
	if armored {
		out = armor.NewWriter(&b)
	}
	w, err := age.Encrypt(out, to...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return put(t, b.String())
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func scrypt(t *testing.T, passphrase string) *age.ScryptRecipient {
	t.Helper()
	r, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		t.Fatal(err)
	}
	r.SetWorkFactor(10)
	return r
}

func TestAgeFileByIdentity(t *testing.T) {
	first := x25519(t)
	second, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	// Recipients that are not quantum-resistant cannot be mixed with those that are.
	for name, tt := range map[string]struct {
		keys string
		to   age.Recipient
	}{
		"X25519": {"# created\n" + first.String() + "\n", first.Recipient()},
		"hybrid": {second.String() + "\n", second.Recipient()},
	} {
		for _, armored := range []bool{false, true} {
			o := secrets.Options{AgeFile: encrypted(t, "token=hunter2hunter2\n", armored, tt.to), AgeIdentity: put(t, tt.keys)}
			v := open(t, o)
			wantValue(t, v, "token", "hunter2hunter2")
			set(t, v, "other", "hunter3hunter3")
			if err := v.Remove("token"); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(o.AgeFile)
			if err != nil || bytes.Contains(raw, []byte("other")) || bytes.HasPrefix(raw, []byte(armor.Header)) != armored {
				t.Errorf("%s, armored %t: %v, file begins %.40q", name, armored, err, raw)
			}
			again := open(t, o)
			wantValue(t, again, "other", "hunter3hunter3")
			wantValue(t, again, "token", "")
		}
	}
}

func TestAgeFileByPassphrase(t *testing.T) {
	o := secrets.Options{AgeFile: encrypted(t, "token=hunter2hunter2\n", false, scrypt(t, "correct horse")), Passphrase: secrets.Hide("", "correct horse")}
	v := open(t, o)
	v.Cheap()
	wantValue(t, v, "token", "hunter2hunter2")
	set(t, v, "other", "hunter3hunter3")
	wantValue(t, open(t, o), "other", "hunter3hunter3")
	o.Passphrase = secrets.Hide("", "wrong horse")
	if _, err := secrets.Open(o); err == nil || !strings.Contains(err.Error(), "the passphrase does not open it") {
		t.Errorf("Open: %v", err)
	}
}

// What a vault writes by a passphrase costs a guesser 256 MiB and a second each; the
// cost that is written is the vault's.
func TestPassphrasesAreStretched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new")
	v := open(t, secrets.Options{AgeFile: path, Passphrase: secrets.Hide("", "correct horse")})
	if work := v.Cheap(); work != 18 {
		t.Errorf("work factor %d, want 18", work)
	}
	set(t, v, "token", "hunter2hunter2")
	raw, err := os.ReadFile(path)
	if header, _, _ := strings.Cut(string(raw), "\n---"); err != nil || !strings.HasSuffix(strings.Split(header, "\n")[1], " 10") {
		t.Errorf("%v, header %s", err, header)
	}
}

func TestAgeFilesThatAreWrong(t *testing.T) {
	id, other := x25519(t), x25519(t)
	keys := put(t, id.String()+"\n")
	good := encrypted(t, "token=hunter2hunter2\n", false, id.Recipient())
	raw, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	costly, err := os.ReadFile(encrypted(t, "token=hunter2hunter2\n", false, scrypt(t, "correct horse")))
	if err != nil {
		t.Fatal(err)
	}
	passphrase := secrets.Hide("", "correct horse")
	shared := put(t, id.String()+"\n")
	if err := os.Chmod(shared, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, want string
		o          secrets.Options
	}{
		{"nothing to open it", "give one of them", secrets.Options{AgeFile: good}},
		{"two ways to open it", "give one of them", secrets.Options{AgeFile: good, AgeIdentity: keys, Passphrase: passphrase}},
		{"another key", "no key of the identity file opens it", secrets.Options{AgeFile: encrypted(t, "x", true, other.Recipient()), AgeIdentity: keys}},
		{"changed", "decrypt: ", secrets.Options{AgeFile: put(t, string(raw[:len(raw)-1])+"x"), AgeIdentity: keys}},
		{"cut", "decrypt: ", secrets.Options{AgeFile: put(t, string(raw[:len(raw)-20])), AgeIdentity: keys}},
		{"not encrypted", "it is not encrypted with age", secrets.Options{AgeFile: put(t, "token=hunter2hunter2\n"), AgeIdentity: keys}},
		{"a line", "line 1: a secret's name", secrets.Options{AgeFile: encrypted(t, "a b=hunter2hunter2", false, id.Recipient()), AgeIdentity: keys}},
		{"too large", "more than 4194304 bytes", secrets.Options{AgeFile: encrypted(t, strings.Repeat("#", secrets.MaxFile), true, id.Recipient()), AgeIdentity: keys}},
		{"no keys", "identity file: it is not one as age-keygen writes it", secrets.Options{AgeFile: good, AgeIdentity: put(t, "AGE-SECRET-KEY-HUNTER2HUNTER2\n")}},
		{"no identity file", "identity file: no such file", secrets.Options{AgeFile: good, AgeIdentity: filepath.Join(t.TempDir(), "none")}},
		{"large identity file", "identity file: it has more than 65536 bytes", secrets.Options{AgeFile: good, AgeIdentity: put(t, strings.Repeat("#\n", 40<<10))}},
		{"a passphrase that costs too much", "scrypt work factor too large: 21", secrets.Options{
			AgeFile: put(t, strings.Replace(string(costly), " 10\n", " 21\n", 1)), Passphrase: passphrase}},
		{"keys of all", "identity file: it has mode 0644, allowed is 0600", secrets.Options{AgeFile: good, AgeIdentity: shared}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := secrets.Open(tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(strings.ToLower(err.Error()), "hunter2") {
				t.Errorf("Open: %v\nwant %q in it", err, tt.want)
			}
		})
	}
}

// Whoever else can open the file would be left out by writing it anew.
func TestAgeFileOfSeveralPeopleIsNotWritten(t *testing.T) {
	mine, theirs := x25519(t), x25519(t)
	o := secrets.Options{
		AgeFile:     encrypted(t, "token=hunter2hunter2\n", true, mine.Recipient(), theirs.Recipient()),
		AgeIdentity: put(t, mine.String()+"\n"),
	}
	v := open(t, o)
	wantValue(t, v, "token", "hunter2hunter2")
	if err := v.Set("token", "hunter3hunter3"); err == nil || !strings.Contains(err.Error(), "encrypted to 2 keys, known are 1") {
		t.Errorf("Set: %v", err)
	}
	wantValue(t, v, "token", "hunter2hunter2")
	rewrite(t, o.AgeIdentity, mine.String()+"\n"+theirs.String()+"\n")
	set(t, v, "token", "hunter3hunter3")
	rewrite(t, o.AgeIdentity, theirs.String()+"\n")
	wantValue(t, v, "token", "hunter3hunter3")
}

// A secret is written where it is, else into the encrypted file; it is removed
// from both. Taking the keys away takes the secrets away.
func TestBothFiles(t *testing.T) {
	id := x25519(t)
	o := secrets.Options{
		File: put(t, "both=plain-one\nplain=plain-two\n"), AgeFile: filepath.Join(t.TempDir(), "new.age"),
		AgeIdentity: put(t, id.String()+"\n"),
	}
	v := open(t, o)
	set(t, v, "fresh", "encrypted-one")
	set(t, v, "plain", "plain-three")
	if raw, err := os.ReadFile(o.File); err != nil || string(raw) != "both=plain-one\nplain=plain-three\n" {
		t.Errorf("plain file: %q, %v", raw, err)
	}
	if got := v.Names(); len(got) != 3 || got[1] != (secrets.Listed{Name: "fresh", Source: secrets.AgeFile}) {
		t.Errorf("Names = %v", got)
	}
	rewrite(t, o.File, "fresh=plain-four\n")
	wantValue(t, v, "fresh", "plain-four")
	if text, n := v.Redactor().Text("encrypted-one plain-four"); n != 2 {
		t.Errorf("Text = %q: a value that another hides is no less secret", text)
	}
	if err := v.Remove("fresh"); err != nil {
		t.Fatal(err)
	}
	wantValue(t, v, "fresh", "")
	set(t, v, "fresh", "encrypted-two")
	if err := os.Remove(o.AgeIdentity); err != nil {
		t.Fatal(err)
	}
	wantValue(t, v, "fresh", "")
	rewrite(t, o.AgeIdentity, id.String()+"\n")
	wantValue(t, v, "fresh", "encrypted-two")
}

// A secret that is to be encrypted is nowhere else any more.
func TestEncrypt(t *testing.T) {
	identity := filepath.Join(t.TempDir(), "below", "identity")
	if err := secrets.NewIdentity(identity); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(identity)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Fatalf("%v, mode %v", err, info.Mode())
	}
	if err := secrets.NewIdentity(identity); err == nil || err.Error() != "identity file: it is there already" {
		t.Errorf("a key was replaced: %v", err)
	}
	o := secrets.Options{File: put(t, "# mine\ntoken=plain-one\nother=plain-two\n"), AgeFile: filepath.Join(t.TempDir(), "new.age"), AgeIdentity: identity}
	v := open(t, o)
	if err := v.Encrypt("token", "encrypted-one"); err != nil {
		t.Fatal(err)
	}
	wantValue(t, v, "token", "encrypted-one")
	if raw, err := os.ReadFile(o.File); err != nil || string(raw) != "# mine\nother=plain-two\n" {
		t.Errorf("plain file: %q, %v", raw, err)
	}
	wantValue(t, open(t, o), "token", "encrypted-one")
	if text, n := v.Redactor().Text("plain-one"); n != 1 {
		t.Errorf("Text = %q: what was there before is still redacted", text)
	}
	for name, value := range map[string]string{"": "encrypted-two", "token": "short", "redacted": "redacted"} {
		if err := v.Encrypt(name, value); err == nil {
			t.Errorf("Encrypt(%q, %q): accepted", name, value)
		}
	}
	plain := vault(t, "token=plain-one")
	if err := plain.Encrypt("token", "encrypted-one"); err == nil || !strings.Contains(err.Error(), "there is no encrypted file") {
		t.Errorf("Encrypt without a file: %v", err)
	}
	wantValue(t, plain, "token", "plain-one")
}

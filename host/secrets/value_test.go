package secrets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/secrets"
)

const hidden = "hunter2hunter2"

// wantHidden fails if a text has a form of the value in it.
func wantHidden(t *testing.T, what, text string) {
	t.Helper()
	for _, form := range []string{hidden, hex.EncodeToString([]byte(hidden)), fmt.Sprintf("%d", []byte(hidden)), fmt.Sprintf("%#v", []byte(hidden)),
		base64.StdEncoding.EncodeToString([]byte(hidden)), fmt.Sprintf("% x", hidden)} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
			t.Errorf("%s shows the value: %s", what, text)
		}
	}
}

func TestValueIsNeverShown(t *testing.T) {
	v := secrets.Hide("token", hidden)
	inside := struct {
		Open   secrets.Value
		closed secrets.Value
		list   []secrets.Value
		refs   map[string]*secrets.Value
	}{v, v, []secrets.Value{v}, map[string]*secrets.Value{"x": &v}}
	vaulted := vault(t, "token="+hidden)
	shown := []any{v, &v, inside, &inside, []secrets.Value{v}, map[string]secrets.Value{"a": v}, []any{v, &v},
		fmt.Errorf("wrapped %v: %w", v, errors.New("x")), secrets.Options{Passphrase: v}, vaulted, *vaulted.Redactor(),
		vaulted.Redactor(), reflect.ValueOf(v)}
	for _, flags := range []string{"", "+", "#", " ", "-", "0", "#+", "5", ".3", "# "} {
		for verb := '!'; verb <= 'z'; verb++ {
			if verb == '*' || strings.ContainsRune("%+#-0123456789.[", verb) {
				continue
			}
			for _, x := range shown {
				format := "%" + flags + string(verb)
				wantHidden(t, fmt.Sprintf("%s of %T", format, x), fmt.Sprintf(format, x))
			}
		}
	}
	if got := fmt.Sprintf("%s %v %d %q %x", v, v, v, v, &v); got != strings.TrimSpace(strings.Repeat("[secret:token] ", 5)) {
		t.Errorf("shown as %s", got)
	}
	if v.Reveal() != hidden || v.Name() != "token" {
		t.Errorf("Reveal = %q, Name = %q", v.Reveal(), v.Name())
	}
	if zero := (secrets.Value{}); zero.Reveal() != "" || zero.String() != "[secret]" {
		t.Errorf("zero value: %q, %s", zero.Reveal(), zero)
	}
}

func TestValueIsNeverEncoded(t *testing.T) {
	v := secrets.Hide("token", hidden)
	body := struct{ V, P any }{v, &v}
	raw, err := json.Marshal(body)
	if err != nil || string(raw) != `{"V":"[secret:token]","P":"[secret:token]"}` {
		t.Errorf("json: %s, %v", raw, err)
	}
	raw, err = json.Marshal(map[string]secrets.Value{"x": v})
	if err != nil {
		t.Error(err)
	}
	wantHidden(t, "json", string(raw))
	type document struct{ V secrets.Value }
	raw, err = xml.Marshal(document{v})
	if err != nil {
		t.Error(err)
	}
	wantHidden(t, "xml", string(raw))
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(document{v}); err != nil {
		wantHidden(t, "gob's error", err.Error())
	}
	wantHidden(t, "gob", b.String())
	b.Reset()
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		slog.New(h).Info("x", "v", v, "p", &v, "s", []secrets.Value{v}, slog.Group("g", "v", v), "any", slog.AnyValue(body))
	}
	if !strings.Contains(b.String(), "[secret:token]") {
		t.Errorf("slog: %s", b.String())
	}
	wantHidden(t, "slog", b.String())
}

func TestValueIsNotInAPanic(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "SECRETS_TEST_PANIC="+hidden)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "[secret:token]") {
		t.Fatalf("%v: %s", err, out)
	}
	wantHidden(t, "panic", string(out))
}

package secrets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
)

// forms are the ways in which a value comes back, by name.
func forms(value, before, behind string) map[string]string {
	lower := func(s string) string { // the digits of percent escapes
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] == '%' && i+2 < len(s) {
				b.WriteString("%" + strings.ToLower(s[i+1:i+3]))
				i += 2
			} else {
				b.WriteByte(s[i])
			}
		}
		return b.String()
	}
	all := map[string]string{
		"plain": value, "query": url.QueryEscape(value), "path": url.PathEscape(value), "query, lower": lower(url.QueryEscape(value)),
		"json": quoted(value, true), "json, plain html": quoted(value, false), "json, ascii": ascii(value),
		"json, solidus": strings.ReplaceAll(quoted(value, false), "/", `\/`), "html": html.EscapeString(value),
		"hex": hex.EncodeToString([]byte(value)), "HEX": fmt.Sprintf("%X", value), "log": abi.OneLine(value, 1<<20),
		"percent all": percentAll(value), "Go": fmt.Sprintf("%+q", value),
	}
	for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "raw std": base64.RawStdEncoding, "url": base64.URLEncoding, "raw url": base64.RawURLEncoding} {
		for i := range 4 {
			all[fmt.Sprintf("base64 %s, %d before", name, i)] = enc.EncodeToString([]byte("xyz"[:i] + value))
		}
		all["base64 "+name+", between"] = enc.EncodeToString([]byte(before + value + behind))
	}
	for name, form := range maps.Clone(all) {
		if strings.HasPrefix(name, "base64") || name == "plain" || name == "query" {
			all[name+" in json"] = strings.ReplaceAll(quoted(form, true), "/", `\/`)
			all[name+" in a query"] = url.QueryEscape(form)
		}
	}
	all["json in json"] = quoted(quoted(value, true), true)
	all["json in json in json"] = quoted(quoted(quoted(value, true), true), true)
	all["query in query"] = url.QueryEscape(url.QueryEscape(value))
	all["query in json in query"] = url.QueryEscape(ascii(url.QueryEscape(value)))
	return all
}

func quoted(s string, escapeHTML bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return strings.Trim(b.String(), "\n")
}

// ascii is a JSON string with everything escaped that can be.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		} else {
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	return b.String()
}

func percentAll(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func samples() []string {
	return []string{
		"abcdef", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "xoxb-123456789012-abcdefABCDEF", "pass word+with spaces&more=1?",
		`back\slash"quote'<tag>/path`, "пароль-пароль", "emoji 🔑 key", "100%25 %41%42", "-----BEGIN KEY-----\nMIIE\tx\n-----END KEY-----",
		"a+b/c=d==", "\\u0041\\u0042", "~!@#$^*()_`{}|[]:;,.", strings.Repeat("a", 300), "line\u2028separator", "bell\aend", "a&amp;b&lt;",
	}
}

// Wherever and however a value stands, it is taken out, and what stands around it
// is not.
func TestS18_EveryFormIsRedacted(t *testing.T) {
	for _, value := range samples() {
		v := open(t, secrets.Options{File: put(t, "")})
		set(t, v, "key", value)
		for name, form := range forms(value, "before-", "-behind") {
			for _, around := range [][2]string{{"", ""}, {"see: ", " and so on"}, {"<", ">"}, {strings.Repeat("x ", 50), "."}} {
				text, n := v.Redactor().Text(around[0] + form + around[1])
				if want := around[0] + "[redacted:key]" + around[1]; n != 1 || !strings.HasPrefix(name, "base64") && strings.Trim(text, `"`) != strings.Trim(want, `"`) && !unquotes(text, want) {
					t.Errorf("%q as %s: %d times: %q", value, name, n, text)
				}
				if strings.Contains(text, form) || strings.Contains(text, value) {
					t.Errorf("%q as %s survives: %q", value, name, text)
				}
			}
		}
	}
}

// unquotes reports whether the texts differ in quotes alone.
func unquotes(text, want string) bool {
	bare := strings.NewReplacer(`"`, "", `\`, "", "%22", "", "%5C", "", "u0022", "")
	return bare.Replace(text) == bare.Replace(want)
}

func TestRedact(t *testing.T) {
	v := vault(t, "secret=correct-horse", "github_token=ghp_0123456789", "other=ghp_01234567890123", "word=sesame")
	b64 := base64.StdEncoding.EncodeToString
	for _, tt := range []struct {
		name, text, want string
		count            int
	}{
		{"nothing", "Secretary of the secret Secretariat, secret=", "Secretary of the secret Secretariat, secret=", 0},
		{"near misses", "correct-hors correct_horse Correct-horse SESAME", "correct-hors correct_horse Correct-horse SESAME", 0},
		{"short text", "sesam", "sesam", 0},
		{"the whole text", "sesame", "[redacted:word]", 1},
		{"a word's part", "opensesameplease", "open[redacted:word]please", 1},
		{"several", "sesame sesame\ncorrect-horse", "[redacted:word] [redacted:word]\n[redacted:secret]", 3},
		{"side by side", "sesamesesame", "[redacted:word][redacted:word]", 2},
		{"the longer one", "ghp_01234567890123", "[redacted:other]", 1},
		{"the shorter one", "ghp_0123456789-", "[redacted:github_token]-", 1},
		{"basic auth", "Basic " + b64([]byte("user:correct-horse")), "Basic dXNlcj[redacted:secret]", 1},
		{"data around", b64([]byte("ab:sesame:cd")) + ".", "YWI6[redacted:word]OmNk.", 1},
		{"data behind", b64([]byte("correct-horse!!")) + " " + b64([]byte("correct-horse")) + "=", "[redacted:secret]Eh [redacted:secret]", 2},
		{"in JSON", `{"a":"x\\sesame","sesame":[1,"\u0073esam\u0065\n"]}`, `{"a":"x\\[redacted:word]","[redacted:word]":[1,"[redacted:word]\n"]}`, 3},
		{"in a URL", "https://x/?a=correct%2Dhorse&b=%73%65%73%61%6D%65", "https://x/?a=[redacted:secret]&b=[redacted:word]", 2},
		{"bad escapes", `%7 %zz \u12 \ud800\u0041 \ sesame \`, `%7 %zz \u12 \ud800\u0041 \ [redacted:word] \`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, n := v.Redactor().Text(tt.text); got != tt.want || n != tt.count {
				t.Errorf("Text = %q, %d, want %q, %d", got, n, tt.want, tt.count)
			}
			raw := []byte(tt.text)
			got, n := v.Redactor().Bytes(raw)
			if string(got) != tt.want || n != tt.count || string(raw) != tt.text {
				t.Errorf("Bytes = %q, %d, and %q, want %q, %d", got, n, raw, tt.want, tt.count)
			}
		})
	}
}

// A value that ends in, or begins within, an escape takes the whole escape along.
func TestRedactedJSONStaysJSON(t *testing.T) {
	for _, tt := range []struct{ value, text, want string }{
		{`ends in\`, `{"a":"it ends in\\"}`, `{"a":"it [redacted:key]"}`},
		{`\begins`, `["x\\begins y"]`, `["x[redacted:key] y"]`},
		{`0041bcdef`, `["x \u0041bcdef y"]`, `["x [redacted:key] y"]`},
		{`nothing`, `["a\nothing"]`, `["a[redacted:key]"]`},
	} {
		v := open(t, secrets.Options{File: put(t, "")})
		set(t, v, "key", tt.value)
		got, _ := v.Redactor().Text(tt.text)
		if got != tt.want || !json.Valid([]byte(got)) {
			t.Errorf("%q in %s: %s", tt.value, tt.text, got)
		}
	}
}

// The names of hosts and of header fields come in another case than they were sent in.
func TestNamesAreSearchedInAnyCase(t *testing.T) {
	r := vault(t, "token=ghp_AbCdEf0123").Redactor()
	encoded := base64.RawURLEncoding.EncodeToString([]byte("ghp_AbCdEf0123"))
	for text, want := range map[string]bool{
		"ghp_AbCdEf0123": true, "x.ghp_abcdef0123.test": true, "X-Github-Ghp_abcdef0123": true, strings.ToLower(encoded): true,
		"X-Github-Request-Id": false, "ghp_abcdef012": false, "": false,
	} {
		if got := r.Names(text); got != want {
			t.Errorf("Names(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestRedactJSON(t *testing.T) {
	v := vault(t, "pin=12345678", `object="{\"a\":1,"`, "word=sesame")
	for _, tt := range []struct {
		text, want string
		count      int
	}{
		{`{"a": [1.50, "x"]}`, `{"a": [1.50, "x"]}`, 0},
		{`{"a":"sesame","b":1.50}`, `{"a":"[redacted:word]","b":1.50}`, 1},
		{`{"a":"12345678"}`, `{"a":"[redacted:pin]"}`, 1},
		{`{"a":12345678,"b":"sesame"}`, `"[redacted:pin]"`, 2},
		{`[{"a":1,"b":2}]`, `"[redacted:object]"`, 1},
	} {
		got, n := v.Redactor().JSON([]byte(tt.text))
		if string(got) != tt.want || n != tt.count || !json.Valid(got) {
			t.Errorf("%s: got %s, %d, want %s, %d", tt.text, got, n, tt.want, tt.count)
		}
	}
}

// An answer that is under way when a secret is set, replaced or removed.
func TestRedactorFollowsTheVault(t *testing.T) {
	v := open(t, secrets.Options{File: put(t, "")})
	r := v.Redactor()
	for i := range 3 {
		set(t, v, "token", fmt.Sprintf("value-%d", i))
	}
	if err := v.Remove("token"); err != nil {
		t.Fatal(err)
	}
	if got, n := r.Text("value-0 value-1 value-2 value-3"); n != 3 || got != "[redacted:token] [redacted:token] [redacted:token] value-3" {
		t.Errorf("Text = %q, %d", got, n)
	}
}

// Of what is gone, so many values are remembered and no more.
func TestRemovedValuesAreBounded(t *testing.T) {
	path := put(t, "")
	v := open(t, secrets.Options{File: path})
	for i := range 2 {
		text := ""
		for n := range 200 {
			text += fmt.Sprintf("n%d=value-%d-%d!\n", n, i, n)
		}
		rewrite(t, path, text)
		v.Names()
	}
	rewrite(t, path, "")
	v.Names()
	known := 0
	for i := range 2 {
		for n := range 200 {
			_, hits := v.Redactor().Text(fmt.Sprintf("value-%d-%d!", i, n))
			known += hits
		}
	}
	if known != 256 {
		t.Errorf("%d values are remembered, want 256", known)
	}
}

// An echo server gives back whatever it got, in whatever form it likes.
func TestS18_EchoedSecretsAreRedacted(t *testing.T) {
	v := vault(t, "github_token=ghp_16C7e42F292c6912E7710c838347Ae178B4a")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		w.Header().Set("X-Echo", got)
		fmt.Fprintf(w, `{"plain":%q,"b64":%q,"hex":"%x","url":%q,"text":"Secretary"}`, got,
			base64.StdEncoding.EncodeToString([]byte(got)), got, url.QueryEscape(got))
	}))
	defer server.Close()
	body, header := call(t, v, server, rule(server, "Authorization", "Bearer "))
	for _, text := range []string{body, header.Get("X-Echo")} {
		clean, n := v.Redactor().Text(text)
		if n == 0 || strings.Contains(clean, "ghp_") || strings.Contains(clean, hex.EncodeToString([]byte("ghp_"))) {
			t.Errorf("%d redacted: %s", n, clean)
		}
		if strings.Contains(text, "{") && (!strings.Contains(clean, `"text":"Secretary"`) || n != 4 || !json.Valid([]byte(clean))) {
			t.Errorf("%d redacted: %s", n, clean)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for i, value := range samples() {
		f.Add(value, "before", "be\\hind", uint8(i))
	}
	f.Fuzz(func(t *testing.T, value, before, behind string, which uint8) {
		if len(value) > 4<<10 || len(before)+len(behind) > 4<<10 {
			return
		}
		v, err := secrets.Open(secrets.Options{Environ: []string{"HUTCH_SECRET_KEY=" + value}})
		if err != nil || len(v.Names()) == 0 {
			return
		}
		r := v.Redactor()
		all := forms(value, before, behind)
		for name, form := range all {
			for _, text := range []string{form, "\x01" + form + "\x01"} {
				got, n := r.Text(text)
				// What stands in for values is no part of the text.
				if rest := strings.ReplaceAll(got, "[redacted:key]", "\x00"); n == 0 || strings.Contains(rest, form) || strings.Contains(rest, value) {
					t.Fatalf("%q as %s survives in %q: %q", value, name, text, got)
				}
			}
		}
		mixed := before + all["json"] + behind + all["query"] + before + value
		got, _ := r.Text(mixed)
		if rest := strings.ReplaceAll(got, "[redacted:key]", "\x00"); strings.Contains(rest, value) {
			t.Fatalf("%q survives in %q: %q", value, mixed, got)
		}
		if utf8.ValidString(mixed) && !utf8.ValidString(got) {
			t.Fatalf("%q in %q: no longer UTF-8: %q", value, mixed, got)
		}
		if again, n := r.Text(before + behind); n == 0 && again != before+behind {
			t.Fatalf("changed %q to %q", before+behind, again)
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	for _, secretsThere := range []int{1, 20, 256} {
		var lines strings.Builder
		for i := range secretsThere {
			fmt.Fprintf(&lines, "name%d=ghp_16C7e42F292c6912E7710c838347Ae178B%d\n", i, 100+i)
		}
		path := b.TempDir() + "/secrets"
		v, err := secrets.Open(secrets.Options{File: path})
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(lines.String()) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if err := v.Set(name, value); err != nil {
				b.Fatal(err)
			}
		}
		for name, unit := range map[string]string{
			"text": "The quick brown fox jumps over the lazy dog, 0123456789 times. ",
			"json": `{"id":42,"text":"a \"quoted\" line\n","url":"https:\/\/example.org\/?q=a%20b"},`,
			"near": "ghp_16C7e42F292c6912E7710c838347Ae178_ ",
		} {
			text := []byte(strings.Repeat(unit, 1<<20/len(unit)+1)[:1<<20])
			b.Run(fmt.Sprintf("%d/%s", secretsThere, name), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					v.Redactor().Bytes(text)
				}
			})
		}
	}
}

func BenchmarkGet(b *testing.B) {
	path := b.TempDir() + "/secrets"
	v, err := secrets.Open(secrets.Options{File: path})
	if err != nil {
		b.Fatal(err)
	}
	if err := v.Set("token", "hunter2hunter2"); err != nil {
		b.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, past, past); err != nil {
		b.Fatal(err)
	}
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			v.Get("token")
		}
	})
	b.Run("redact an error", func(b *testing.B) {
		for b.Loop() {
			v.Redactor().Text("host \"api.github.com\": granted are GET and HEAD, and this is a POST")
		}
	})
}

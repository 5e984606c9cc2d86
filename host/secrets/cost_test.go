package secrets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hutch-run/hutch/host/secrets"
)

const costly = "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789abcdefghijklmnopqrstuvwxyz"

// units make texts that are all escapes, inside each other.
func units() []string {
	return []string{"plain text of a page ", "%41", "%2525", `\\`, `%5c\\&#37;`, "&#37;25", "%26%2337;", `\\%5c&amp;`, "&amp;", "&amp", "&lt;aaaaaaa", "a: ", "0:1-", "&#00", "\\u00e9"}
}

func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// S18: whatever a server answers with, looking through it takes as much memory again
// as the answer has, and what was found twice that for each depth.
func TestS18_RedactionTakesLittleMemory(t *testing.T) {
	r := vault(t, "token="+costly).Redactor()
	for _, unit := range units() {
		text := bytes.Repeat([]byte(unit), 1<<20/len(unit))
		if got, most := allocated(func() { r.Bytes(text) }), int64(len(text))*5/4; got > most {
			t.Errorf("%q: %d bytes for a text of %d, want at most %d", unit, got, len(text), most)
		}
		holds := append(bytes.Clone(text), costly...)
		if got, most := allocated(func() { r.Bytes(holds) }), int64(len(text))*9; got > most {
			t.Errorf("%q: %d bytes for a text of %d with a value, want at most %d", unit, got, len(text), most)
		}
	}
}

// Of a text with more values than are taken out one by one, nothing is left.
func TestATextFullOfValuesIsTakenOutAsAWhole(t *testing.T) {
	v := vault(t, "word=sesame")
	for _, value := range []string{"sesame ", "%73esame ", `\u0073esam%65 `, "73:65:73:61:6d:65 "} {
		text, n := v.Redactor().Text(strings.Repeat(value, 10_000))
		if want := strings.TrimSuffix(strings.Repeat("[redacted:word] ", 10_000), " "); n != 10_000 || strings.TrimSuffix(text, " ") != want {
			t.Errorf("%q: %d, %.100s", value, n, text)
		}
		if text, n := v.Redactor().Text(strings.Repeat(value, 10_001)); n != 1 || text != "[redacted:word]" {
			t.Errorf("%q: %d, %.100s", value, n, text)
		}
		if raw, _ := v.Redactor().JSON([]byte(`["` + strings.Repeat(value, 10_001) + `"]`)); string(raw) != `"[redacted:word]"` {
			t.Errorf("%q: %.100s", value, raw)
		}
	}
}

// What is looked through at the same time waits for room, and gets it.
func TestRedactionWaitsForRoom(t *testing.T) {
	r := vault(t, "word=sesame").Redactor()
	var wg sync.WaitGroup
	for _, size := range []int{secrets.MaxAtOnce + 1, secrets.MaxAtOnce, 1, secrets.MaxAtOnce / 2} {
		wg.Go(func() {
			if _, n := r.Bytes(append(make([]byte, size), "sesame"...)); n != 1 {
				t.Errorf("%d bytes: %d found", size, n)
			}
		})
	}
	wg.Wait()
	if secrets.Free(r) != secrets.MaxAtOnce {
		t.Errorf("%d bytes are free, want all", secrets.Free(r))
	}
	synctest.Test(t, func(t *testing.T) {
		r := vault(t, "word=sesame").Redactor()
		leave := secrets.Enter(r, secrets.MaxAtOnce-6)
		found := make(chan int, 1)
		for _, text := range []string{"sesame", "sesame!"} { // the second waits
			go func() {
				_, n := r.Text(text)
				found <- n
			}()
			synctest.Wait()
			if got := len(found); got != map[string]int{"sesame": 1}[text] {
				t.Errorf("%q: %d answers", text, got)
			}
			for range len(found) {
				<-found
			}
		}
		leave()
		if n := <-found; n != 1 {
			t.Errorf("%d found", n)
		}
	})
}

// broken puts sep behind each n characters.
func broken(text string, n int, sep string) string {
	var b strings.Builder
	for i, c := range []byte(text) {
		if i > 0 && i%n == 0 {
			b.WriteString(sep)
		}
		b.WriteByte(c)
	}
	return b.String()
}

func each(format, value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

// S18: an encoding that is broken into lines or groups, and references that browsers
// read though they are not as they should be.
func TestS18_BrokenEncodingsAreRedacted(t *testing.T) {
	for _, value := range []string{costly, "abcDEF123456!x", "sesame"} {
		r := vault(t, "key="+value).Redactor()
		digits, b64 := hex.EncodeToString([]byte(value)), base64.StdEncoding.EncodeToString([]byte("Bearer "+value+" and more"))
		url := base64.URLEncoding.EncodeToString([]byte("??>" + value + "??>"))
		wide := each("%c\x00", value)
		for name, text := range map[string]string{
			"mime": broken(b64, 76, "\r\n"), "pem": broken(b64, 64, "\n"), "indented": broken(b64, 8, "\n          "),
			"mime in json": broken(b64, 76, `\r\n`), "mime in json in json": broken(b64, 10, `\\r\\n`), "mime in a query": broken(b64, 64, "%0D%0A"),
			"base64url": broken(url, 5, "\n"), "every one": broken(b64, 1, " "),
			"hex, spaced": broken(digits, 2, " "), "hex, colons": strings.ToUpper(broken(digits, 2, ":")), "hex, dashes": broken(digits, 2, "-"),
			"hex, list": broken(digits, 2, ", "), "hex, lines": broken(digits, 32, "\n"),
			"long reference": each("&#%08d;", value), "long hexadecimal reference": each("&#x%020x;", value),
			"references without their end": each("&#%d", value),
			"little-endian":                wide, "big-endian": "\x00" + wide[:len(wide)-1],
		} {
			got, n := r.Text("<" + text + ">")
			if n != 1 || !strings.Contains(got, "[redacted:key]") || strings.Contains(got, text) {
				t.Errorf("%q as %s: %d times: %q", value, name, n, got)
			}
		}
	}
}

// Gaps in an encoding that nobody would leave.
func TestGapsAreBounded(t *testing.T) {
	r := vault(t, "key=sesame").Redactor()
	for size, want := range map[int]int{64: 1, 65: 0} {
		for at := range 11 {
			digits := "736573616d65"
			if _, n := r.Text(digits[:at+1] + strings.Repeat(" ", size) + digits[at+1:]); n != want {
				t.Errorf("a gap of %d behind %d: %d found, want %d", size, at+1, n, want)
			}
		}
	}
}

func BenchmarkRedactEscapes(b *testing.B) {
	v, err := secrets.Open(secrets.Options{Environ: []string{"HUTCH_SECRET_TOKEN=" + costly}})
	if err != nil {
		b.Fatal(err)
	}
	for _, unit := range units() {
		text := bytes.Repeat([]byte(unit), 8<<20/len(unit))
		b.Run(fmt.Sprintf("%q", unit), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				v.Redactor().Bytes(text)
			}
		})
	}
}

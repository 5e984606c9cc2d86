package dialect

import (
	"context"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
)

// E12: a guest that rewrites a request while the host looks at it, as one with a
// second thread could, changes its own copy alone: what was checked is what is
// made. The host here is one that checks, lets the guest rewrite, and reads again.
func TestE12_TheRequestThatWasCheckedIsMade(t *testing.T) {
	const checked, rewritten = "https://allowed.test/", "https://another.test/"
	for _, extism := range []bool{false, true} {
		var rewrite func()
		var first, second string
		w := newWall(t, extism, abi.Invocation{Host: func(_ context.Context, r abi.Request) abi.Response {
			first = string(r.Body)
			rewrite()
			second = string(r.Body)
			return abi.Response{Body: []byte(`{"status":200,"url":"","headers":{},"body":""}`)}
		}}, "")
		request := `{"url":"` + checked + `"}`
		other := strings.Replace(request, checked, rewritten, 1)
		if extism {
			at := w.block(request)
			rewrite = func() {
				for i, b := range []byte(other) {
					w.call("store_u8", at+int64(i), int64(b))
				}
			}
			w.call("http_request", at, w.block("body"))
			if got := w.text(at); got != other {
				t.Errorf("nothing was rewritten: %s", got)
			}
		} else {
			ptr, n := w.put(request)
			rewrite = func() { w.put(other) }
			w.call(string(abi.OpHTTP), ptr, n)
			if got, _ := w.in.Read(uint32(ptr), uint32(n)); string(got) != other {
				t.Errorf("nothing was rewritten: %s", got)
			}
		}
		if !strings.Contains(first, checked) || second != first {
			t.Errorf("extism %t: checked was %s, made would be %s", extism, first, second)
		}
	}
}

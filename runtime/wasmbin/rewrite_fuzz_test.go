package wasmbin_test

import (
	"bytes"
	"testing"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// Whatever is accepted and valid is valid once it is rewritten, and stays within the
// format as Check has it.
func FuzzRewrite(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	for _, s := range metered() {
		f.Add(s)
	}
	engine := judge(f, 0)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wasmbin.Check(b, wasmbin.Budget{})
		if err != nil || m.Reserved() != nil {
			return
		}
		before := bytes.Clone(b)
		out, err := m.Rewrite(wasmbin.Rewriting{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, before) {
			t.Fatal("the input was changed")
		}
		again, err := wasmbin.Check(out.Wasm, wide)
		if err != nil {
			t.Fatalf("rewritten: %v", err)
		}
		if again.Reserved() == nil {
			t.Fatal("what was added is not reserved")
		}
		if engine(b) != nil {
			return // of types, Check says nothing
		}
		if err := engine(out.Wasm); err != nil {
			t.Fatalf("rewritten: %v", err)
		}
	})
}

package dialect

import (
	"context"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// What the host moves costs 64 bytes a unit, in a guest's memory as in Extism's, and of
// a log line no more than is looked at.
func TestHostCallsCostWhatTheyMove(t *testing.T) {
	const size, firstBlock = 64 << 10, arenaStart
	line := int64(abi.Limits{}.WithDefaults().LogLineBytes+1) / 64
	native := func(name, params, results string, args ...int64) dialecttest.Step {
		return dialecttest.Import(nativeModule, name, params, results, args...)
	}
	extism := func(name, params, results string, args ...int64) dialecttest.Step {
		return dialecttest.Import(extismModule, name, params, results, args...)
	}
	for _, tt := range []struct {
		name string
		v1   bool
		do   func(n int64) []dialecttest.Step
		want int64
	}{
		{"output", false, func(n int64) []dialecttest.Step { return steps(native("output_write", "ii", "i", 0, n)) }, size / 64},
		{"log", false, func(n int64) []dialecttest.Step { return steps(native("log", "iii", "", int64(abi.Info), 0, n)) }, line},
		{"request", false, func(n int64) []dialecttest.Step { return steps(native(string(abi.OpKVGet), "ii", "l", 0, n)) }, size / 64},
		{"alloc", true, func(n int64) []dialecttest.Step { return steps(extism("alloc", "l", "l", n)) }, size / 64},
		{"alloc and log", true, func(n int64) []dialecttest.Step {
			return steps(extism("alloc", "l", "l", n), extism("log_info", "l", "", firstBlock))
		}, size/64 + line},
		{"alloc and a variable's name", true, func(n int64) []dialecttest.Step {
			return steps(extism("alloc", "l", "l", n), extism("var_get", "l", "l", firstBlock))
		}, 2 * size / 64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var burned []int64
			for _, n := range []int64{0, size} {
				g := loaded(t, mod{V1: tt.v1, Do: append(tt.do(n), dialecttest.Trap())}, Options{})
				in := abi.Invocation{Host: func(context.Context, abi.Request) abi.Response { return abi.Response{} }}
				_, usage, _ := g.Call(t.Context(), 1, in) // it traps, whatever came of it
				burned = append(burned, usage.Fuel)
			}
			if more := burned[1] - burned[0]; more != tt.want {
				t.Errorf("64 KiB cost %d more than nothing, want %d", more, tt.want)
			}
		})
	}
}

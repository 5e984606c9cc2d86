package dialect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// call loads a guest that does these steps, calls it once and prints what came
// of it.
func call(in abi.Invocation, steps ...dialecttest.Step) {
	ctx := context.Background()
	guest, err := dialect.Load(ctx, dialecttest.Module{Do: steps}.Bytes(), dialect.Options{Limits: in.Limits})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := guest.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}()
	out, usage, err := guest.Call(ctx, 1, in)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %+v\n", out, usage)
}

// A result may have so many bytes. Nothing is cut off: half a JSON text is none.
func ExampleLimits_output() {
	call(abi.Invocation{Limits: abi.Limits{OutputBytes: 10_000}}, dialecttest.Output(20_000))
	// Output: limit: result: more than 10000 bytes (limits.output)
}

// A call that is too large is refused before the guest is started.
func ExampleLimits_input() {
	arguments := json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
	call(abi.Invocation{Tool: "echo", Arguments: arguments, Limits: abi.Limits{InputBytes: 500}}, dialecttest.Echo())
	// Output: limit: input of 1063 bytes, at most 500 (limits.input)
}

// Log lines are cut, and more than so many are counted and dropped.
func ExampleLimits_logLines() {
	in := abi.Invocation{
		Limits: abi.Limits{LogLines: 2, LogLineBytes: 12},
		Log:    func(level abi.LogLevel, line string) { fmt.Println(level, line) },
	}
	call(in, dialecttest.Log(abi.Info, 1000, "still working, still working"), dialecttest.Write("{}"))
	// Output:
	// 2 still wor…
	// 2 still wor…
	// 3 ... 998 more lines dropped: at most 2 are kept of one call (limits.log_lines)
	// {} {LogLines:1000 HostCalls:0 Fuel:63120 Anew:}
}

// Gated operations over their number are not done. The guest reads why, and may
// still answer.
func ExampleLimits_hostCalls() {
	done := 0
	in := abi.Invocation{
		Limits: abi.Limits{HostCalls: 3},
		Host: func(context.Context, abi.Request) abi.Response {
			done++
			return abi.Response{Body: []byte(`{}`)}
		},
	}
	call(in, dialecttest.Op(abi.OpKVGet, 50, `{"key":"a"}`))
	fmt.Println(done, "done")
	// Output:
	// {"content":[],"structuredContent":{"error":{"code":"limit","message":"kv_get: host calls are used up: at most 3 in one call (limits.host_calls)"}}} {LogLines:0 HostCalls:50 Fuel:3564 Anew:}
	// 3 done
}

// Memory grows to its limit and no further; what a guest makes of that is its
// own affair.
func ExampleLimits_memory() {
	call(abi.Invocation{Limits: abi.Limits{MemoryBytes: 4 << 20}}, dialecttest.Grow(1000), dialecttest.Write("{}"))
	// Output: guest: no memory
}

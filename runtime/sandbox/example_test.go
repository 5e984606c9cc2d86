package sandbox_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// start runs a guest that does these steps, with output_write of hutch:host
// for its only import.
func start(ctx context.Context, limits abi.Limits, steps ...dialecttest.Step) error {
	i32 := wasmbin.I32
	host := sandbox.HostModule{Name: "hutch:host", Funcs: []sandbox.HostFunc{{
		Name: "output_write",
		Type: wasmbin.FuncType{Params: []wasmbin.ValueType{i32, i32}, Results: []wasmbin.ValueType{i32}},
		Call: func(_ context.Context, in *sandbox.Instance, stack []uint64) {
			text, _ := in.Read(uint32(stack[0]), uint32(stack[1]))
			fmt.Printf("guest: %s\n", text)
			stack[0] = 0
		},
	}}}
	checked, err := wasmbin.Check(dialecttest.Module{Do: steps}.Bytes(), wasmbin.Budget{})
	if err != nil {
		return err
	}
	module, err := sandbox.Compile(ctx, checked, sandbox.Options{Limits: limits, Hosts: []sandbox.HostModule{host}})
	if err != nil {
		return err
	}
	defer module.Close(ctx) //nolint:errcheck // an example
	in, err := module.Instantiate(ctx, sandbox.Config{})
	if err != nil {
		return err
	}
	defer in.Close(ctx) //nolint:errcheck // an example
	_, err = in.Call(ctx, "call")
	return err
}

// Memory grows to its limit and no further.
func ExampleLimits_memory() {
	limits := abi.Limits{MemoryBytes: 4 << 20}
	fmt.Println(start(context.Background(), limits, dialecttest.Grow(1000)))
	// Output:
	// guest: no memory
	// <nil>
}

// Recursion ends where its part of the stack does.
func ExampleLimits_stack() {
	fmt.Println(start(context.Background(), abi.Limits{}, dialecttest.Recurse()))
	// Output: limit: stack overflow: calls are nested too deeply (the engine's stack limit)
}

// A guest that computes for ever ends where its fuel does.
func ExampleLimits_fuel() {
	fmt.Println(start(context.Background(), abi.Limits{Fuel: 10_000_000}, dialecttest.Loop()))
	// Output: limit: more than 10000000 units of fuel were burned (limits.fuel)
}

// A guest that sleeps, and then computes for ever, ends soon after nobody waits for
// it any more.
func ExampleInstance_Call_deadline() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	fmt.Println(start(ctx, abi.Limits{}, dialecttest.Sleep(time.Hour), dialecttest.Loop()))
	// Output: timeout: the time for this call is over
}

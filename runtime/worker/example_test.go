package worker_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/worker"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

// withPool runs f with a pool of real workers and a module that does these
// steps.
func withPool(o worker.Options, f func(*worker.Pool, worker.Module), steps ...dialecttest.Step) {
	program, err := workertest.Program()
	if err != nil {
		fmt.Println(err)
		return
	}
	o.Command = []string{program}
	pool, err := worker.NewPool(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	wasm := dialecttest.Module{Do: steps}.Bytes()
	sum := sha256.Sum256(wasm)
	f(pool, worker.Module{Name: "example.wasm", Digest: hex.EncodeToString(sum[:]),
		Bytes: func() ([]byte, error) { return wasm, nil }})
	if err := pool.Close(); err != nil {
		fmt.Println(err)
	}
}

func call(pool *worker.Pool, m worker.Module, l abi.Limits) error {
	_, _, err := pool.Call(context.Background(), m, abi.Invocation{Tool: "echo", Arguments: []byte(`{}`), Limits: l})
	return err
}

// A call has so much time, waiting included. A guest that nothing else reaches
// is ended with its worker.
func ExampleLimits_timeout() {
	withPool(worker.Options{}, func(pool *worker.Pool, m worker.Module) {
		fmt.Println(call(pool, m, abi.Limits{Wall: 300 * time.Millisecond}))
	}, dialecttest.Exponential())
	// Output: timeout: the call took longer than 300ms, its limit (limits.timeout)
}

// Endless recursion ends where the engine's stack does, and costs no worker.
func ExampleLimits_stack() {
	withPool(worker.Options{}, func(pool *worker.Pool, m worker.Module) {
		fmt.Println(call(pool, m, abi.Limits{}))
		fmt.Println(pool.Stats().Workers, "worker alive")
	}, dialecttest.Recurse())
	// Output:
	// limit: stack overflow: calls are nested too deeply (the engine's stack limit)
	// 1 worker alive
}

// So many calls of a module run at once, and so many wait. One more is refused
// at once, so that whoever asks can turn to something else.
func ExampleLimits_queue() {
	withPool(worker.Options{Calls: 1, Queue: 2}, func(pool *worker.Pool, m worker.Module) {
		var calls sync.WaitGroup
		refused := make(chan error, 10)
		for range 4 {
			calls.Go(func() {
				if err := call(pool, m, abi.Limits{}); err != nil {
					refused <- err
				}
			})
		}
		calls.Wait()
		fmt.Println(<-refused)
		fmt.Println(len(refused), "more refused")
	}, dialecttest.Sleep(300*time.Millisecond), dialecttest.Write("{}"))
	// Output:
	// busy: 1 calls of its module run and 2 wait already, try again in a moment (limits.queue)
	// 0 more refused
}

// So many calls of a module begin in a second.
func ExampleLimits_callsPerSecond() {
	withPool(worker.Options{Rate: 2}, func(pool *worker.Pool, m worker.Module) {
		var err error
		for err == nil {
			err = call(pool, m, abi.Limits{})
		}
		f := err.(*abi.Failure) //nolint:errorlint // an example
		fmt.Println(f.Class, f.Limit)
	}, dialecttest.Write("{}"))
	// Output: busy calls_per_second
}

// So many calls of a module run at once. The next ones wait, within their own
// time.
func ExampleLimits_callsAtOnce() {
	withPool(worker.Options{Calls: 1}, func(pool *worker.Pool, m worker.Module) {
		var first sync.WaitGroup
		first.Go(func() {
			if err := call(pool, m, abi.Limits{}); err != nil {
				fmt.Println(err)
			}
		})
		for pool.Stats().Workers == 0 {
			time.Sleep(time.Millisecond) // until the first is in
		}
		fmt.Println(call(pool, m, abi.Limits{Wall: 50 * time.Millisecond}))
		first.Wait()
	}, dialecttest.Sleep(time.Second), dialecttest.Write("{}"))
	// Output: timeout: the call took longer than 50ms, its limit: other calls of the tool were running (limits.timeout)
}

// Compiling has a time limit of its own.
func ExampleLimits_compile() {
	withPool(worker.Options{}, func(pool *worker.Pool, m worker.Module) {
		m.Limits.Compile = time.Microsecond
		fmt.Println(call(pool, m, abi.Limits{}))
	}, dialecttest.Write("{}"))
	// Output: timeout: compiling the module took longer than 1µs, the limit (limits.compile)
}

// A process whose tables, stacks or engine use up its memory is ended; memory of
// its own a guest is refused before that.
func ExampleLimits_memory() {
	withPool(worker.Options{}, func(pool *worker.Pool, m worker.Module) {
		fmt.Println(call(pool, m, abi.Limits{}))
		fmt.Println(pool.Stats().Workers, "worker alive")
	}, dialecttest.Grow(10_000))
	// Output:
	// guest: no memory
	// 1 worker alive
}

package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// defaultSlice is how much fuel an instance gets at a time. A unit takes a third of a
// nanosecond to one, but 100 to 200 where each is a load that waits for the machine's
// memory: so a guest asks for more after 20 ms at the latest, and mostly every 100 us,
// of which asking takes a five hundredth.
const defaultSlice = 100_000

// bytesUnit is how many bytes that a host function copies cost a unit, as a power
// of two.
const bytesUnit = 6

// meter is what an instance may still burn. The guest counts down what it was
// given, in a global of its own; see [wasmbin.Module.Rewrite].
type meter struct {
	on     bool
	slice  int64
	budget int64
	left   int64 // of the budget, less what was given
	// moved are the bytes that the running host function copied, debt what host
	// functions burned since that was last settled.
	moved uint64
	debt  int64
	calls uint              // of host functions
	fuel  api.MutableGlobal // nil until the instance has started
}

// stop unwinds a guest that may not go on.
type stop struct{ failure *abi.Failure }

func (s *stop) Error() string { return s.failure.Error() }

// registerMeter makes the function importable that a rewritten module asks for fuel.
func (m *Module) registerMeter(ctx context.Context) error {
	t := wasmbin.MeterType()
	builder := m.runtime.NewHostModuleBuilder(wasmbin.MeterModule)
	builder.NewFunctionBuilder().
		WithGoFunction(api.GoFunc(refuel), valueTypes(t.Params), valueTypes(t.Results)).
		Export(wasmbin.MeterFunction)
	if _, err := builder.Instantiate(ctx); err != nil {
		return fmt.Errorf("host module %q: %w", wasmbin.MeterModule, err)
	}
	return nil
}

func refuel(ctx context.Context, stack []uint64) {
	if int64(stack[1]) < 0 {
		panic(&stop{stackFailure("")})
	}
	stack[0] = uint64(calling(ctx).refuel(ctx, int64(stack[0])))
}

// refuel takes back what is left of a slice, below zero or not, and returns the next
// one. It does not return if there is none to be had.
func (in *Instance) refuel(ctx context.Context, fuel int64) int64 {
	m := &in.meter
	m.left += fuel
	m.holds(0) // if this is the end, all of it is known
	in.settle(ctx)
	slice := min(m.slice, m.left)
	m.left -= slice
	m.holds(slice)
	return slice
}

// holds notes what the guest has of its slice, which it may keep in a local variable
// and not in the global one while it computes.
func (m *meter) holds(fuel int64) {
	if m.fuel != nil {
		m.fuel.Set(uint64(fuel))
	}
}

// settle takes what host functions burned from the budget, and unwinds the guest if
// that is used up or nobody waits for it any more.
func (in *Instance) settle(ctx context.Context) {
	m := &in.meter
	m.left -= m.debt
	m.debt = 0
	if m.left < 0 {
		panic(&stop{abi.Exceeded(abi.ClassLimit, abi.LimitFuel, "more than %d units of fuel were burned", m.budget)})
	}
	if f := Ended(ctx); f != nil {
		panic(&stop{f})
	}
}

// burn charges what a host function did for the guest.
func (in *Instance) burn(ctx context.Context, units uint64) {
	m := &in.meter
	if !m.on {
		return
	}
	m.debt += int64(min(units, 1<<40))
	if m.debt >= m.slice {
		in.settle(ctx)
	}
}

// ask unwinds the guest if it may not go on, though there is fuel.
func (in *Instance) ask(ctx context.Context) {
	if in.meter.on {
		in.settle(ctx)
	}
}

// Moved charges a running host function for bytes that it copies besides those of
// [Instance.Read] and the like.
func (in *Instance) Moved(n int) { in.meter.moved += uint64(n) }

// askedEach is how many calls of host functions may go by until somebody asks whether
// the guest may go on. What such a call costs says little of how long it takes.
const askedEach = 16

// returned charges what the host function that returns copied, and asks.
func (in *Instance) returned(ctx context.Context) {
	m := &in.meter
	units := m.moved >> bytesUnit
	m.moved = 0
	in.burn(ctx, units)
	if m.calls++; m.calls%askedEach == 0 {
		in.ask(ctx)
	}
}

// restart gives an instance the budget of its next call, and the first slice of it.
func (m *meter) restart(fresh meter, budget int64) {
	fuel := m.fuel
	*m = fresh
	m.fuel = fuel
	if budget > 0 {
		m.budget, m.left = budget, budget
	}
	slice := min(m.slice, m.left)
	m.left -= slice
	fuel.Set(uint64(slice))
}

// Fuel returns how much the instance has burned since it was made, or since its call
// began if it comes from a checkpoint. The same module
// burns the same for the same input, clock and random numbers; after a trap what
// the guest had not yet reported is missing, which is at most a slice.
func (in *Instance) Fuel() int64 {
	m := &in.meter
	used := m.budget - m.left + m.debt
	if m.fuel != nil {
		used -= int64(m.fuel.Get())
	}
	return used
}

// Ended returns why nobody waits for what runs under ctx any more, or nil.
func Ended(ctx context.Context) *abi.Failure {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return abi.Failf(abi.ClassTimeout, "the time for this call is over")
	default:
		return abi.Failf(abi.ClassCancelled, "the call was cancelled")
	}
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero/api"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// Checkpoint is the state of an instance that has started, and instances that are
// in that state: memory, globals and what the system keeps for a guest. Its methods
// may be called concurrently.
//
// An instance is brought back when it is closed, so that what a call left in it
// waits for nobody. It is kept unless its guest left, grew its memory, changed a
// descriptor or ended in a way after which the engine is not trusted: then there
// will be another one.
type Checkpoint struct {
	owner   *Module
	bare    func() Config
	most    int
	image   *image
	globals []uint64 // in the order of Module.mutable

	mu     sync.Mutex
	idle   []*Instance // the one that was closed last at the end
	closed bool
}

// Uncovered says why a module can have no checkpoint, and is empty if it can.
func Uncovered(r *wasmbin.Rewritten) string {
	switch {
	case r.ChangesTables:
		return "its code changes tables"
	case r.DropsData:
		return "its code drops data segments"
	}
	for _, g := range r.Mutable {
		switch g.Type {
		case wasmbin.I32, wasmbin.I64, wasmbin.F32, wasmbin.F64:
		default: // the engine shows 64 bits of a global
			return fmt.Sprintf("global %d is mutable and of type %s", g.Index, g.Type)
		}
	}
	return ""
}

// NotCovered is the error of a module that can have no checkpoint: every call of it
// needs an instance of its own.
type NotCovered struct{ Reason string }

func (e *NotCovered) Error() string { return "no checkpoint: " + e.Reason }

// Checkpoint makes an instance with bare, has boot bring it to where calls begin,
// and keeps its state and at most that many instances. What boot does all calls have
// seen; it may return a [*NotCovered]. A module has one checkpoint at most, which is
// closed with it. The error is a [*NotCovered] or an [*abi.Failure].
func (m *Module) Checkpoint(ctx context.Context, most int, bare func() Config, boot func(context.Context, *Instance) error) (_ *Checkpoint, err error) {
	if m.uncovered != "" {
		return nil, &NotCovered{m.uncovered}
	}
	in, err := m.Instantiate(ctx, bare())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			in.discard(ctx)
		}
	}()
	if err := boot(ctx, in); err != nil {
		return nil, err
	}
	if in.altered || in.module.IsClosed() {
		return nil, &NotCovered{"it changes its descriptors while it starts"}
	}
	c := &Checkpoint{owner: m, bare: bare, most: most}
	if c.image, err = m.keepImage(in.bytes()); err != nil {
		m.logger.Error("image not kept", "error", err)
		return nil, abi.Failf(abi.ClassInternal, "the image of an instance was not kept; the log says why")
	}
	in.globals = in.mutableGlobals()
	for _, g := range in.globals {
		c.globals = append(c.globals, g.Get())
	}
	c.idle = append(c.idle, in) // before anybody else can see it
	if !m.keep(c) {
		return nil, abi.Failf(abi.ClassInternal, "the module is closed, or has a checkpoint")
	}
	return c, nil
}

// keep makes c the module's checkpoint, unless it is closed or has one.
func (m *Module) keep(c *Checkpoint) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.checkpoint != nil {
		return false
	}
	m.checkpoint = c
	return true
}

// mutableGlobals are those of the guest, and how much of its stack is left, which a
// trap does not give back.
func (in *Instance) mutableGlobals() (list []api.MutableGlobal) {
	names := []string{wasmbin.StackExport}
	for _, g := range in.owner.mutable {
		names = append(names, wasmbin.GlobalExport(g.Index))
	}
	for _, name := range names {
		list = append(list, in.module.ExportedGlobal(name).(api.MutableGlobal)) // as they were declared
	}
	return list
}

// bytes is all of the guest's memory.
func (in *Instance) bytes() []byte {
	memory := in.module.Memory()
	if memory == nil {
		return nil
	}
	b, _ := memory.Read(0, memory.Size())
	return b
}

// Lease is an instance for one call.
type Lease struct {
	*Instance
	from  *Checkpoint
	close sync.Once
}

// Instance returns an instance in the checkpoint's state. The error is an
// [*abi.Failure].
func (c *Checkpoint) Instance(ctx context.Context, config Config) (*Lease, error) {
	in := c.take()
	if in == nil {
		var err error
		if in, err = c.another(ctx); err != nil {
			return nil, err
		}
	}
	in.begin(ctx, config)
	return &Lease{Instance: in, from: c}, nil
}

func (c *Checkpoint) take() *Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.idle) - 1
	if last < 0 {
		return nil
	}
	in := c.idle[last]
	c.idle[last], c.idle = nil, c.idle[:last]
	return in
}

// another makes one more instance. What it does by itself to start has been done and
// looked at before, and is overwritten.
func (c *Checkpoint) another(ctx context.Context) (*Instance, error) {
	in, err := c.owner.Instantiate(ctx, c.bare())
	if err != nil {
		return nil, err
	}
	in.globals = in.mutableGlobals()
	if missing := len(c.image.bytes) - len(in.bytes()); missing > 0 {
		if _, ok := in.module.Memory().Grow(uint32(missing / abi.PageBytes)); !ok {
			in.discard(ctx)
			return nil, abi.Exceeded(abi.ClassLimit, abi.LimitMemory, "%s: fewer calls at a time, or less memory for each", errNoRoom)
		}
	}
	err = c.image.cover(in.bytes())
	if err == nil {
		err = c.restore(in)
	}
	if err != nil {
		c.owner.logger.Error("instance not brought to its image", "error", err)
		in.discard(ctx)
		return nil, abi.Failf(abi.ClassInternal, "the engine failed; the log says how")
	}
	return in, nil
}

// errChanged is about an instance that has what no image covers.
var errChanged = errors.New("it has what its image does not cover")

// restore brings an instance back, or returns why it cannot be used again.
func (c *Checkpoint) restore(in *Instance) error {
	if in.altered || in.broken || in.module.IsClosed() {
		return errChanged
	}
	b := in.bytes()
	if len(b) != len(c.image.bytes) {
		return errChanged
	}
	for i, g := range in.globals {
		g.Set(c.globals[i])
	}
	in.state, in.ctx = nil, nil
	for i := range in.output {
		in.output[i] = lineWriter{fd: i + 1, in: in}
	}
	return c.image.restore(b, in.memory)
}

// Close brings the instance back for the next call, or gives its memory back. Only
// the first Close does anything; the instance is not to be used afterwards.
func (l *Lease) Close(ctx context.Context) error {
	var closed error
	l.close.Do(func() {
		err := l.from.restore(l.Instance)
		if err == nil && l.from.put(l.Instance) {
			return
		}
		if err != nil && !errors.Is(err, errChanged) {
			l.from.owner.logger.Warn("instance not brought back", "error", err)
		}
		closed = l.Instance.Close(ctx)
	})
	return closed
}

// put keeps an instance, if there is room and somebody may want it.
func (c *Checkpoint) put(in *Instance) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= c.most {
		return false
	}
	c.idle = append(c.idle, in)
	return true
}

// makeRoom closes an instance that nobody has if there are more than may be kept, so
// that instances of the module's own and those that are kept are not too many together.
func (m *Module) makeRoom(ctx context.Context) {
	m.mu.Lock()
	c, alive := m.checkpoint, m.users-1
	m.mu.Unlock()
	if c == nil || alive <= c.most {
		return
	}
	if in := c.take(); in != nil {
		in.discard(ctx)
	}
}

// shut closes the instances that nobody has, and has the others closed when they are
// given back.
func (c *Checkpoint) shut(ctx context.Context) error {
	c.mu.Lock()
	idle := c.idle
	c.idle, c.closed = nil, true
	c.mu.Unlock()
	var errs []error
	for _, in := range idle {
		errs = append(errs, in.Close(ctx))
	}
	return errors.Join(errs...)
}

// begin gives an instance to a call.
func (in *Instance) begin(ctx context.Context, c Config) {
	in.state, in.ctx = c.State, ctx
	for i := range in.output {
		in.output[i].emit, in.output[i].most = in.owner.guardedLine(c.Line), c.LineBytes
	}
	in.meter.restart(in.owner.meter, c.Fuel)
	if in.memory != nil {
		in.memory.refused = 0
	}
}

package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/hutch-run/hutch/protocol/chat"
)

// Why a turn of ours ends.
var (
	errTotal = errors.New("total")
	errIdle  = errors.New("idle")
)

// A turn is one answer being fetched.
type turn struct {
	m      *OpenAI
	params openai.ChatCompletionNewParams
	taken  map[string]bool // ids of calls that are in use
	yield  func(chat.Delta, error) bool
	handed bool // a delta was handed over, so nothing may be repeated
	left   bool // whom it was handed to wants no more
}

// run is the one place that repeats anything: the library's own repetition is off.
func (t *turn) run(caller context.Context) error {
	o := t.m.o
	ctx, cancel := context.WithTimeoutCause(caller, o.Total, errTotal)
	defer cancel()
	for n := 1; ; n++ {
		f := t.attempt(ctx)
		if f == nil {
			return nil
		}
		if caller.Err() != nil {
			return caller.Err()
		}
		wait := f.wait(n)
		if !f.again || t.handed || t.left || n >= o.Attempts || !inTime(ctx, wait) {
			return f.after(n)
		}
		if o.OnRetry != nil {
			o.OnRetry(Retry{n, wait, f.err})
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// inTime reports whether there is time left when wait is over.
func inTime(ctx context.Context, wait time.Duration) bool {
	end, ok := ctx.Deadline()
	return !ok || time.Until(end) > wait
}

// sleep waits for as long as ctx is alive.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// attempt asks once and hands over what comes.
func (t *turn) attempt(ctx context.Context) *failure {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := newWatch(t.m.o.Idle, func() { cancel(errIdle) })
	defer quiet.stop()
	body, err := t.m.open(ctx, t.params, quiet)
	if err != nil {
		return t.m.explain(ctx, err)
	}
	defer body.Close() //nolint:errcheck // nothing is told when reading ends
	a := newAnswer(t.m, t.taken)
	if err := t.read(a, newEventReader(body, t.m.maxEvent()), quiet); err != nil {
		return t.m.explainCut(ctx, err)
	}
	if t.left {
		return nil
	}
	last, err := a.last()
	if err != nil {
		return &failure{err: err}
	}
	t.yield(last, nil)
	return nil
}

// tail is how long a connection is waited for when the answer is whole, for usage and
// its end.
const tail = 5 * time.Second

// maxSilent is how many events in a row may say nothing: a provider that sends no others is
// not silent, and could go on until the turn ends.
const maxSilent = 10_000

// read hands over what events say, until the answer is whole or nobody wants it.
func (t *turn) read(a *answer, events *eventReader, quiet *watch) error {
	for silent := 0; !a.done; silent++ {
		kind, data, err := events.next()
		if err != nil && a.ended() && !tooLong(err) {
			return nil // whole, though its end was not said
		}
		if err != nil {
			return err
		}
		size := a.size
		deltas, err := a.take(kind, data)
		if err != nil {
			return err
		}
		if a.size > size {
			silent = 0
		}
		if silent > maxSilent {
			if a.ended() {
				return nil
			}
			return fmt.Errorf("%w: more than %d events of its stream in a row say nothing", chat.ErrMalformed, maxSilent)
		}
		for _, d := range deltas {
			t.handed = true
			if t.left = !t.yield(d, nil); t.left {
				return nil
			}
		}
		if a.ended() {
			quiet.shorten(tail)
		}
	}
	return nil
}

func tooLong(err error) bool { return errors.Is(err, errLongEvent) || errors.Is(err, errLongStream) }

// maxEvent bounds one event of the stream: a whole answer may come in one, with each
// character escaped.
func (m *OpenAI) maxEvent() int { return 64<<10 + 2*m.o.MaxAnswer }

// maxWire bounds the stream: a token of four bytes comes in three hundred, and beside
// comments.
func (m *OpenAI) maxWire() int64 { return 1<<20 + 128*int64(m.o.MaxAnswer) }

// open makes the request and returns the stream that answers it.
func (m *OpenAI) open(ctx context.Context, params openai.ChatCompletionNewParams, quiet *watch) (io.ReadCloser, error) {
	options := []option.RequestOption{}
	key, err := m.key.get()
	if err != nil {
		return nil, &failure{err: fmt.Errorf("%w: %w", chat.ErrRefused, err)}
	}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	var res *http.Response
	options = append(options,
		option.WithResponseBodyInto(&res), // the library's own reader takes no bounds
		option.WithMiddleware(func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			return m.checked(next(req))
		}))
	quiet.start()
	defer quiet.pause()
	if err := m.service.NewStreaming(ctx, params, options...).Err(); err != nil {
		return nil, err
	}
	return &watchedBody{res.Body, m.maxWire(), quiet}, nil
}

// checked passes on a response that is an event stream; of every other it tells why it
// is none. The library would read an error of any size, and lose the status of one that
// is not JSON.
func (m *OpenAI) checked(res *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if f := m.explainResponse(res); f != nil {
		_ = res.Body.Close()
		return nil, f
	}
	return res, nil
}

// A watch calls a function when nothing came for a while. It runs while somebody waits
// for the provider, and not while the reader of the answer is at work.
type watch struct {
	limit time.Duration
	timer *time.Timer
}

func newWatch(limit time.Duration, bark func()) *watch {
	w := &watch{limit: limit, timer: time.AfterFunc(limit, bark)}
	w.pause()
	return w
}

func (w *watch) start()                      { w.timer.Reset(w.limit) }
func (w *watch) pause()                      { w.timer.Stop() }
func (w *watch) stop()                       { w.timer.Stop() }
func (w *watch) shorten(limit time.Duration) { w.limit = min(w.limit, limit) }

// errLongStream is a stream that is larger than is allowed.
var errLongStream = errors.New("the stream is too large")

// watchedBody is a stream with bounds: how much comes, and how long nothing does.
type watchedBody struct {
	io.ReadCloser
	left  int64
	quiet *watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongStream
	}
	b.quiet.start()
	defer b.quiet.pause()
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

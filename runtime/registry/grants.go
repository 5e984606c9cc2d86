package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// Grants says what calls may use. It is asked about tools that Policy has let
// through, and may be asked from any goroutine.
type Grants interface {
	// Limits are those of each call of a module; zero fields leave the registry's.
	// It must answer quickly.
	Limits(tool.Module) abi.Limits
	// Begin is asked for each call, with the arguments that were checked; the tool
	// is named as published. Its error is the call's.
	Begin(ctx context.Context, c tool.Caller, m tool.Module, toolName string, args json.RawMessage) (Grant, error)
}

// A Grant is what one call may use; nil fields are nothing.
type Grant struct {
	Host   abi.Host
	Config map[string]string
	// AskConfig is as in [abi.Invocation].
	AskConfig bool
	// Log takes what the tool logs, as [abi.Invocation] says.
	Log func(abi.LogLevel, string)
	// End is called when the call has ended.
	End func()
}

func (g Grant) end() {
	if g.End != nil {
		g.End()
	}
}

// Redactor takes secrets out of texts and of JSON, which stays JSON, and says how
// many there were. It may be asked from any goroutine.
type Redactor interface {
	Text(string) (string, int)
	JSON([]byte) ([]byte, int)
}

type noGrants struct{}

func (noGrants) Limits(tool.Module) abi.Limits { return abi.Limits{} }

func (noGrants) Begin(context.Context, tool.Caller, tool.Module, string, json.RawMessage) (Grant, error) {
	return Grant{}, nil
}

type noRedactor struct{}

func (noRedactor) Text(text string) (string, int) { return text, 0 }
func (noRedactor) JSON(raw []byte) ([]byte, int)  { return raw, 0 }

func (r *Registry) redacted(text string) string {
	text, _ = r.o.Redactor.Text(text)
	return text
}

// renew gives up workers that were started under other limits on memory than their
// modules have now. Calls that run are finished.
func (r *Registry) renew(old, next *snapshot) {
	before := map[string]int64{}
	for _, e := range old.entries {
		if e.mount != nil {
			before[e.mount.def.digest] = e.mount.limits.MemoryBytes
		}
	}
	for _, e := range next.entries {
		if e.mount == nil {
			continue
		}
		// One that is new was described under the registry's limits.
		if m := e.mount; cmp.Or(before[m.def.digest], r.o.Limits.MemoryBytes) != m.limits.MemoryBytes {
			r.o.Workers.Retire(m.def.digest)
		}
	}
}

// Reconsider asks the policy again about everything there is, after it changed,
// and tells subscribers if what they see did. Calls that run are not disturbed.
func (r *Registry) Reconsider(ctx context.Context) {
	r.mu.Lock()
	if !r.closed.Load() {
		base := r.current.Load()
		if r.round != nil {
			base = r.round.base
		}
		r.publishLocked(base)
	}
	r.mu.Unlock()
	if over := r.beginPinned(ctx); over != nil {
		<-over
	}
}

// beginPinned finds out about versions that are accepted now and that nothing is
// known about; nil if there are none.
func (r *Registry) beginPinned(ctx context.Context) (over <-chan struct{}) {
	r.applying.Lock()
	defer r.applying.Unlock()
	wanted := r.lastWanted()
	if len(r.missingPins(wanted)) == 0 {
		return nil
	}
	return r.begin(ctx, wanted)
}

// missingPins returns the versions that were accepted for files, are not what the
// files are now, and that nothing is known about, though their bytes are there.
func (r *Registry) missingPins(wanted []tool.Candidate) (missing []tool.Candidate) {
	for _, c := range wanted {
		digest := r.o.Pinned(c)
		if digest == "" || digest == c.Digest {
			continue
		}
		r.mu.Lock()
		_, known := r.verdicts[digest]
		r.mu.Unlock()
		if known {
			continue
		}
		raw, err := r.o.Fetch(digest)
		if err != nil {
			r.o.Logger.Debug("the accepted version of a module is not kept", "module", c.Name, "digest", digest, "error", err)
			continue
		}
		missing = append(missing, tool.Candidate{Name: c.Name, Source: c.Source, Shipped: c.Shipped, Digest: digest, Size: int64(len(raw))})
	}
	return missing
}

// LearnPinned finds out what the versions say about themselves that were accepted
// for candidates and are not what these are now. Apply does so too, but decides
// about the candidates meanwhile.
func (r *Registry) LearnPinned(ctx context.Context, candidates []tool.Candidate) {
	unknown, known := r.recall(r.missingPins(candidates))
	r.mu.Lock()
	r.retain(known)
	r.mu.Unlock()
	for _, c := range unknown {
		if r.closed.Load() {
			return
		}
		r.decided(c.Digest, r.admit(ctx, c))
	}
}

// Described returns what the version of a digest says about itself, as exported.
func (r *Registry) Described(digest string) (tool.Description, error) {
	def, err := r.known(digest)
	if err != nil {
		return tool.Description{}, err
	}
	return def.exported, nil
}

// Requested returns what the version of a digest asks for: what it says, and what
// the functions that it imports would need.
func (r *Registry) Requested(digest string) (tool.Requests, error) {
	def, err := r.known(digest)
	if err != nil {
		return nil, err
	}
	return def.requests, nil
}

// known returns what came of admitting a digest, now or earlier.
func (r *Registry) known(digest string) (*definition, error) {
	r.mu.Lock()
	v, known := r.verdicts[digest]
	r.mu.Unlock()
	if !known {
		if v, known = r.cached(digest); known {
			v = r.note(digest, v)
		}
	}
	switch {
	case !known:
		return nil, fmt.Errorf("nothing is known about the version sha256:%.12s…", digest)
	case v.err != nil:
		return nil, v.err
	}
	return v.def, nil
}

// note keeps a verdict of an earlier run, for the digest is likely to be wanted next,
// and returns the one that counts: another may have come to one meanwhile.
func (r *Registry) note(digest string, earlier verdict) verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, there := r.verdicts[digest]; there {
		return v
	}
	r.verdicts[digest] = earlier
	return earlier
}

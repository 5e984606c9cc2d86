package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Jail says what confines a worker on this machine, as the worker itself found
// when it asked the system for it.
type Jail struct {
	Features []JailFeature `json:"features"`
}

// JailFeature is one of the things that confine a worker.
type JailFeature struct {
	// Name is one of the Jail... constants.
	Name string `json:"name"`
	// Held: it is in force, for every thread of the worker.
	Held bool `json:"held"`
	// Found says more in one line: a version, or why it is not in force.
	Found string `json:"found,omitempty"`
}

// What a jail is made of. The first layer is there before a module is looked at,
// the second before any of its code runs.
const (
	JailNoNewPrivs     = "no new privileges" // no program started later could have more rights
	JailOOMScore       = "oom score"         // short of memory, the system ends the worker, not us
	JailNotDumpable    = "not dumpable"      // other processes of the user cannot look into it
	JailLimits         = "resource limits"
	JailFiles          = "landlock"               // no files but the module's own cache folder
	JailCalls          = "seccomp"                // no system calls but those on a list
	JailNoFiles        = "landlock while running" // no files at all
	JailFewCalls       = "seccomp while running"  // a shorter list: no files, no new machine code
	JailNoNewOpenFiles = "no new descriptors"     // none can be opened any more
)

// walls are the features without which a jail does not hold. The first ones have
// to be there before a module is read.
const (
	allWalls   = 5
	firstWalls = 3
)

var walls = [allWalls]string{JailNoNewPrivs, JailFiles, JailCalls, JailNoFiles, JailFewCalls}

// ErrNoJail is what [Pool.Jail] and a pool with RequireJail report where workers
// cannot be confined.
var ErrNoJail = errors.New("workers cannot be jailed on this machine")

// Err returns nil if both layers hold, and else an [ErrNoJail] that names what is
// missing.
func (j Jail) Err() error {
	lack := j.missing(allWalls)
	if len(lack) == 0 {
		return nil
	}
	for i, name := range lack {
		lack[i] = j.feature(name).String()
	}
	return fmt.Errorf("%w: %s", ErrNoJail, strings.Join(lack, "; "))
}

// missing returns which of the first n walls are not there.
func (j Jail) missing(n int) (lack []string) {
	for _, name := range walls[:n] {
		if !j.feature(name).Held {
			lack = append(lack, name)
		}
	}
	return lack
}

// failure is what callers are told who may not know how this machine is set up.
func (j Jail) failure() *abi.Failure {
	return abi.Failf(abi.ClassInternal, "%v: it lacks %s; \"hutch doctor\" says more", ErrNoJail, strings.Join(j.missing(allWalls), ", "))
}

// feature returns what is known of the one called name.
func (j Jail) feature(name string) JailFeature {
	for _, f := range j.Features {
		if f.Name == name {
			return f
		}
	}
	return JailFeature{Name: name, Found: "not there"}
}

func (f JailFeature) String() string {
	if f.Found == "" {
		return f.Name
	}
	return f.Name + ": " + f.Found
}

// note writes down how it went with a feature.
func (j *Jail) note(name, found string, err error) {
	if err != nil {
		found = err.Error()
	}
	j.Features = append(j.Features, JailFeature{Name: name, Held: err == nil, Found: abi.OneLine(found, 200)})
}

// loadReport is the answer to a load.
type loadReport struct {
	Jail Jail `json:"jail"`
	// CacheStale: what the cache folder held was of no use.
	CacheStale bool `json:"cacheStale,omitempty"`
}

// maxReport bounds an encoded loadReport.
const maxReport = 8 << 10

// decodeReport accepts what a worker of ours could say. Nothing in it is trusted
// further than to be shown.
func decodeReport(body []byte) (loadReport, error) {
	var r loadReport
	if len(body) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return loadReport{}, fmt.Errorf("load report: %w", err)
	}
	for i, f := range r.Jail.Features {
		r.Jail.Features[i] = JailFeature{Name: abi.OneLine(f.Name, 64), Held: f.Held, Found: abi.OneLine(f.Found, 200)}
	}
	return r, nil
}

// observe keeps what a worker said about its jail, and says once what is missing.
func (p *Pool) observe(j Jail) {
	p.mu.Lock()
	first := p.jail == nil
	p.jail = &j
	p.mu.Unlock()
	if !first {
		return
	}
	var lack []string
	for _, f := range j.Features {
		if !f.Held {
			lack = append(lack, f.String())
		}
	}
	if len(j.Features) == 0 || len(lack) > 0 {
		p.o.Logger.Warn("workers are not confined as they should be; see hutch doctor", "missing", strings.Join(lack, "; "))
	}
}

// Jail says what confines this pool's workers: what the last one that loaded a
// module said, or else one that is started to be asked. The error is about
// starting it; [Jail.Err] says whether the jail holds.
func (p *Pool) Jail(ctx context.Context) (Jail, error) {
	p.mu.Lock()
	known := p.jail
	p.mu.Unlock()
	if known == nil {
		return p.probe(ctx)
	}
	return Jail{slices.Clone(known.Features)}, nil
}

// probeWait bounds what a worker takes that has nothing to compile.
const probeWait = 10 * time.Second

// probe starts a worker, which confines itself as for a module, and ends it.
func (p *Pool) probe(ctx context.Context) (Jail, error) {
	if !p.busy.enter() {
		return Jail{}, closedFailure()
	}
	defer p.busy.Done()
	head, err := encodeHead(loadHead{Probe: true, Calls: 1, MemoryBytes: p.ceiling(abi.Limits{}.WithDefaults())})
	if err != nil {
		return Jail{}, err
	}
	proc, err := p.spawn(newSlot(p, Module{Name: "(probe)", Digest: strings.Repeat("0", 64)}))
	if err != nil {
		return Jail{}, fmt.Errorf("start a worker: %w", err)
	}
	defer proc.end(endRetired)
	report, failure := proc.load(ctx, head, nil, probeWait)
	if failure != nil {
		return Jail{}, failure
	}
	p.observe(report.Jail)
	return report.Jail, nil
}

// Package secrets holds named secrets that guests may use and nobody sees, and
// redacts them from what comes back.
//
// A [Vault] reads them from the environment, from a file and from an encrypted
// file, in this order, and sees changes while it runs. A guest only ever holds
// the placeholder secret://NAME; an [Injection] puts the value in its place on
// the way out, where the policy says, and a [Redactor] takes values out of
// whatever comes back.
//
// A redactor tells a guest that sees its work whether it guessed a value. Those
// of a service, 20 random characters and more, cannot be guessed; a value of six
// letters can.
//
// All types may be used from any goroutine, but for an Injection, which belongs
// to one request. No goroutine is left running.
package secrets

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Source says where a secret comes from.
type Source string

// The sources, in the order in which they are asked.
const (
	Environment Source = "environment"
	File        Source = "file"
	AgeFile     Source = "age file"
)

// EnvPrefix stands before the names of environment variables that hold secrets:
// HUTCH_SECRET_GITHUB_TOKEN is github_token, and github-token too.
const EnvPrefix = "HUTCH_SECRET_"

// Options says where secrets are. The zero value is an empty vault that cannot
// be written to.
type Options struct {
	// Environ is the environment, as [os.Environ] returns it.
	Environ []string
	// File is the path of the plain file; it need not exist.
	File string
	// AgeFile is the path of the encrypted file, armored or not; it need not
	// exist. Set writes to it rather than to File.
	AgeFile string
	// AgeIdentity is the path of the file with the keys for AgeFile, as
	// age-keygen writes it. Passphrase is the other way; exactly one of them goes
	// with an AgeFile.
	AgeIdentity string
	Passphrase  Value
	// Logger gets what is wrong with a file that changed. Default: nothing is
	// logged, and [Vault.Err] says it.
	Logger *slog.Logger
}

// How long it is trusted that no file has changed: by a redactor, and by what puts
// values into requests, so that what another process sets or removes counts within
// that time. What this process writes counts at once. Everything else looks each time:
// a look is several system calls, more than the rest of a small request.
const (
	recheck       = time.Second
	recheckInject = 50 * time.Millisecond
)

// maxRetired is how many values that were removed or replaced are still redacted:
// an answer that is under way may have them.
const maxRetired = 256

// Vault holds secrets. It is made by [Open].
type Vault struct {
	logger *slog.Logger
	env    map[string]Value // by name in lower case with _ for -
	files  []*document      // in the order of sources
	target *document        // what Set writes to, nil if nothing

	editing sync.Mutex // held while a file is written; before mu

	mu      sync.Mutex // guards files' content, retired, and storing live
	retired []Value
	live    atomic.Pointer[snapshot]
	checked atomic.Int64 // when the files were looked at, in nanoseconds
	room    *room
}

// snapshot is what a vault holds at one moment. It is never changed.
type snapshot struct {
	values  map[string]held // those of files, by name
	matcher *matcher
	err     error
}

type held struct {
	value  Value
	source Source
}

// Open reads all sources. An error says which one is wrong, in which line, and
// nothing of a value.
func Open(o Options) (*Vault, error) {
	v := &Vault{logger: o.Logger, room: newRoom()}
	if v.logger == nil {
		v.logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if v.env, err = readEnvironment(o.Environ); err != nil {
		return nil, err
	}
	if o.File != "" {
		v.target = &document{source: File, path: o.File, codec: plain{}}
		v.files = append(v.files, v.target)
	}
	if o.AgeFile != "" {
		codec, err := newAgeCodec(o.AgeIdentity, o.Passphrase)
		if err != nil {
			return nil, err
		}
		v.target = &document{source: AgeFile, path: o.AgeFile, codec: codec}
		v.files = append(v.files, v.target)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range v.files {
		d.refresh()
	}
	return v, v.rebuild()
}

// readEnvironment takes the secrets out of an environment. An empty variable is
// as good as none.
func readEnvironment(environ []string) (map[string]Value, error) {
	env := map[string]Value{}
	for _, pair := range environ {
		key, text, _ := strings.Cut(pair, "=")
		rest, ok := strings.CutPrefix(key, EnvPrefix)
		if !ok || text == "" {
			continue
		}
		name := strings.ToLower(rest)
		if err := CheckName(name); err != nil {
			return nil, fmt.Errorf("environment: a variable that begins with %s: %w", EnvPrefix, err)
		}
		if err := checkValue(text); err != nil {
			return nil, fmt.Errorf("environment: %s: %w", envKey(name), err)
		}
		env[name] = Hide(name, text)
	}
	return env, nil
}

func envName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "_")) }
func envKey(name string) string  { return strings.ToUpper(EnvPrefix + envName(name)) }

// rebuild makes a new snapshot of what the documents hold, and returns what is
// wrong with it. The caller holds the lock.
func (v *Vault) rebuild() error {
	next := &snapshot{values: map[string]held{}}
	var wrong []error
	for _, d := range slices.Backward(v.files) {
		if d.err != nil {
			wrong = append(wrong, d.err)
		}
		for name, value := range d.values {
			next.values[name] = held{value, d.source}
		}
	}
	slices.Reverse(wrong)
	if err := checkMarkers(v.all(next.values)); err != nil {
		wrong = append(wrong, err)
		next.values = map[string]held{}
	}
	next.err = errors.Join(wrong...)
	v.retire(next)
	next.matcher = newMatcher(append(v.all(next.values), v.retired...))
	v.live.Store(next)
	v.checked.Store(time.Now().UnixNano())
	return next.err
}

// all returns the values of every source, shadowed ones too, those of the
// environment first.
func (v *Vault) all(values map[string]held) (all []Value) {
	for _, name := range slices.Sorted(maps.Keys(v.env)) {
		all = append(all, v.env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, values[name].value)
	}
	for _, d := range v.files { // what an earlier source hides
		for _, name := range slices.Sorted(maps.Keys(d.values)) {
			if h, ok := values[name]; ok && h.source != d.source {
				all = append(all, d.values[name])
			}
		}
	}
	return all
}

// retire remembers the values that next no longer has.
func (v *Vault) retire(next *snapshot) {
	before := v.live.Load()
	if before == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(before.values)) {
		old := before.values[name].value
		if now, ok := next.values[name]; !ok || now.value.Reveal() != old.Reveal() {
			v.retired = slices.DeleteFunc(v.retired, func(r Value) bool { return r.Reveal() == old.Reveal() })
			v.retired = append(v.retired, old)
		}
	}
	v.retired = slices.Clone(v.retired[max(0, len(v.retired)-maxRetired):])
}

// refresh looks whether files have changed, and reads those that have. What is
// wrong with a file leaves nothing of it: a secret that cannot be read is not
// used in the form it had before.
func (v *Vault) refresh() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refreshLocked()
}

// look refreshes what was not looked at for a while.
func (v *Vault) look() {
	age := time.Now().UnixNano() - v.checked.Load()
	if age < 0 || age >= int64(recheckInject) { // a clock may be set back
		v.refresh()
	}
}

func (v *Vault) refreshLocked() {
	began, changed := time.Now().UnixNano(), false
	for _, d := range v.files {
		changed = d.refresh() || changed
	}
	if !changed {
		v.checked.Store(began)
		return
	}
	before := v.live.Load().err
	if err := v.rebuild(); err != nil && (before == nil || before.Error() != err.Error()) {
		v.logger.Warn("secrets are not used", "error", err)
	}
}

// Get returns a secret as it is now.
func (v *Vault) Get(name string) (Value, bool) {
	if _, ok := v.env[envName(name)]; !ok {
		v.refresh()
	}
	return v.known(name)
}

// known returns a secret as it was when the files were looked at.
func (v *Vault) known(name string) (Value, bool) {
	if value, ok := v.env[envName(name)]; ok {
		return value.named(name), true
	}
	h, ok := v.live.Load().values[name]
	return h.value, ok
}

// Err says what is wrong with the files as they are now, nil if nothing is.
func (v *Vault) Err() error {
	v.refresh()
	return v.live.Load().err
}

// Problem is one thing that is wrong with the files.
type Problem struct {
	Source Source // empty if it is about several
	Line   int    // 0 if it is about no line
	Text   string
}

// Problems lists what [Vault.Err] says, one by one. It says nothing about values.
func (v *Vault) Problems() (all []Problem) {
	if v.Err() == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range v.files {
		all = append(all, d.problems()...)
	}
	if len(all) == 0 { // the files are right, and do not go together
		all = []Problem{{Text: v.live.Load().err.Error()}}
	}
	return all
}

func (d *document) problems() (all []Problem) {
	if d.err == nil {
		return nil
	}
	wrong := []error{errors.Unwrap(d.err)} // which says where, as the problem does
	if joined := (interface{ Unwrap() []error })(nil); errors.As(wrong[0], &joined) {
		wrong = joined.Unwrap()
	}
	for _, err := range wrong {
		p := Problem{Source: d.source, Text: err.Error()}
		if at := (*lineError)(nil); errors.As(err, &at) {
			p.Line, p.Text = at.line, at.err.Error()
		}
		all = append(all, p)
	}
	return all
}

// Listed is one secret of a list.
type Listed struct {
	Name   string
	Source Source
}

// Names lists what there is, sorted. It says nothing about values.
func (v *Vault) Names() (list []Listed) {
	v.refresh()
	for name := range v.env {
		list = append(list, Listed{name, Environment})
	}
	for name, h := range v.live.Load().values {
		if _, ok := v.env[envName(name)]; !ok {
			list = append(list, Listed{name, h.source})
		}
	}
	slices.SortFunc(list, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Package kv keeps a little private storage for each module: kv_get, kv_set and
// kv_delete.
//
// What the bodies look like is said in [abi.KVGet] and beside it. Whether a module
// may use them at all is decided before; how much it may keep, and for how long,
// comes with each call, so that a change of policy holds at once. A module names
// only keys: the space they are in is made from its own name and its tenant's, and
// no key leads out of it.
//
// A [Service] may be called from any goroutine.
package kv

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
)

// DefaultMaxBytes is what a module may keep if its grant does not say.
const DefaultMaxBytes = 1 << 20

// A Store keeps values in spaces, by key. Version 0 stands for no value; ifVersion
// is the version that must be there, or -1 for any. A ttl of 0 keeps a value for
// ever; a time of expiry that is zero means never.
//
// Put and Delete fail with an error that has CurrentVersion() int64 if another
// version is there, Put with one that has Quota() (used, most int64) if the space
// would hold more than maxBytes.
type Store interface {
	KVGet(ctx context.Context, space, key string) (value []byte, version int64, expires time.Time, err error)
	KVPut(ctx context.Context, space, key, writer string, value []byte, ttl time.Duration, ifVersion, maxBytes int64) (version int64, expires time.Time, err error)
	KVDelete(ctx context.Context, space, key string, ifVersion int64) (deleted bool, err error)
	KVKeys(ctx context.Context, space, prefix, after string, limit int) (keys []string, err error)
}

// Service serves the operations. The zero value has no store: use [New].
type Service struct {
	store  Store
	logger *slog.Logger

	mu   sync.Mutex
	told map[abi.Op]telling // what was logged since the store last served
}

// telling is why an operation failed, and when that was logged.
type telling struct {
	text string
	at   time.Time
}

// New returns a service on the store. The logger takes what a guest is not told;
// nil drops it.
func New(store Store, logger *slog.Logger) *Service {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Service{store: store, logger: logger, told: map[abi.Op]telling{}}
}

// tellAgain is how often it is logged that the store does not serve for the same
// reason: on a full disk every call finds it.
const tellAgain = time.Minute

// failed logs why the store did not serve.
func (s *Service) failed(a Access, op abi.Op, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if last := s.told[op]; last.text == err.Error() && now.Sub(last.at) < tellAgain {
		return
	}
	s.told[op] = telling{err.Error(), now}
	s.logger.Error("the store did not serve a module", "module", a.Module, "op", string(op), "err", err)
}

// changed takes note that the store made a change: one that is full goes on
// reading, so reading says nothing.
func (s *Service) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.told) > 0 {
		clear(s.told)
		s.logger.Info("the store serves modules again")
	}
}

// Access is whose values an operation is about, and what its grant allows. Nothing
// in it comes from the guest.
type Access struct {
	// Module is the module's bare file name.
	Module string
	// Tenant is on whose behalf: one tenant's values are not another's. It may be
	// empty.
	Tenant string
	// Writer is kept beside a value, for an operator: which call wrote it.
	Writer string
	// MaxBytes is how much the module may keep for the tenant: keys, values, and 64
	// bytes for each. 0 means [DefaultMaxBytes].
	MaxBytes int64
	// TTL is the longest a value is kept; 0 means for ever.
	TTL time.Duration
}

// space names where the values are. A file name has no slash, so two accesses that
// differ have two spaces.
func (a Access) space() (string, error) {
	if a.Module == "" || strings.Contains(a.Module, "/") {
		return "", fmt.Errorf("module %q is no bare file name", a.Module)
	}
	return a.Module + "/" + a.Tenant, nil
}

// Serve does one operation. It answers anything that is not one of the three with
// a refusal.
func (s *Service) Serve(ctx context.Context, a Access, r abi.Request) abi.Response {
	if a.MaxBytes == 0 {
		a.MaxBytes = DefaultMaxBytes
	}
	var serve func(context.Context, Access, string, []byte) (any, error)
	switch r.Op {
	case abi.OpKVGet:
		serve = s.get
	case abi.OpKVSet:
		serve = s.set
	case abi.OpKVDelete:
		serve = s.delete
	default:
		return abi.Refuse(abi.Invalid, "no operation on values")
	}
	space, err := a.space()
	if err != nil {
		return s.refuse(ctx, a, r.Op, err)
	}
	result, err := serve(ctx, a, space, r.Body)
	if err != nil {
		return s.refuse(ctx, a, r.Op, err)
	}
	body, err := json.Marshal(result)
	if err != nil {
		return s.refuse(ctx, a, r.Op, err)
	}
	if r.Op != abi.OpKVGet {
		s.changed()
	}
	return abi.Response{Body: body}
}

// A refusal is what the guest is told.
type refusal struct {
	code abi.Code
	text string
}

func (r *refusal) Error() string { return r.text }

func invalid(format string, args ...any) error {
	return &refusal{abi.Invalid, fmt.Sprintf(format, args...)}
}

// refuse tells the guest why, unless the reason is the host's own.
func (s *Service) refuse(ctx context.Context, a Access, op abi.Op, err error) abi.Response {
	var known *refusal
	switch {
	case errors.As(err, &known):
		return abi.Refuse(known.code, string(op)+": "+known.text)
	case ctx.Err() != nil:
		return abi.Refuse(abi.Cancelled, string(op)+": the call has ended")
	}
	s.failed(a, op, err)
	return abi.Refuse(abi.Unavailable, string(op)+": values cannot be reached now: try again later")
}

func (s *Service) get(ctx context.Context, _ Access, space string, body []byte) (any, error) {
	var in abi.KVGet
	given, err := decode(body, &in, "key", "base64", "prefix", "after", "limit")
	if err != nil {
		return nil, err
	}
	switch {
	case given("key") == given("prefix"):
		return nil, invalid("one of key and prefix must be there")
	case given("prefix"):
		return s.list(ctx, space, in, given)
	case given("after") || given("limit"):
		return nil, invalid("after and limit go with prefix, not with key")
	}
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	value, version, expires, err := s.store.KVGet(ctx, space, in.Key)
	if err != nil || version == 0 {
		return abi.KVValue{}, err
	}
	out := abi.KVValue{Found: true, Value: string(value), Version: version, Expires: timeText(expires)}
	if in.Base64 {
		out.Value = base64.StdEncoding.EncodeToString(value)
	} else if !utf8.Valid(value) {
		return nil, invalid("the value is not UTF-8: ask for it with base64: true")
	}
	return out, nil
}

func (s *Service) list(ctx context.Context, space string, in abi.KVGet, given func(string) bool) (any, error) {
	if given("base64") {
		return nil, invalid("base64 goes with key, not with prefix")
	}
	if err := checkPrefix("prefix", *in.Prefix); err != nil {
		return nil, err
	}
	if err := checkPrefix("after", in.After); err != nil {
		return nil, err
	}
	if in.Limit < 0 || in.Limit > abi.KVMaxKeys {
		return nil, invalid("limit is %d, allowed are 1 to %d", in.Limit, abi.KVMaxKeys)
	}
	limit := in.Limit
	if limit == 0 {
		limit = abi.KVMaxKeys
	}
	keys, err := s.store.KVKeys(ctx, space, *in.Prefix, in.After, limit)
	if err != nil {
		return nil, err
	}
	out := abi.KVKeys{Keys: append([]string{}, keys...)}
	if len(keys) == limit {
		more, err := s.store.KVKeys(ctx, space, *in.Prefix, keys[limit-1], 1)
		if err != nil {
			return nil, err
		}
		out.More = len(more) > 0
	}
	return out, nil
}

func (s *Service) set(ctx context.Context, a Access, space string, body []byte) (any, error) {
	var in abi.KVSet
	given, err := decode(body, &in, "key", "value", "base64", "ttl", "ifVersion")
	if err != nil {
		return nil, err
	}
	if !given("value") {
		return nil, invalid("value must be there")
	}
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	value, err := valueOf(in)
	if err != nil {
		return nil, err
	}
	ttl, err := timeToLive(in.TTL, a.TTL)
	if err != nil {
		return nil, err
	}
	ifVersion, err := expected(in.IfVersion)
	if err != nil {
		return nil, err
	}
	version, expires, err := s.store.KVPut(ctx, space, in.Key, a.Writer, value, ttl, ifVersion, a.MaxBytes)
	if found, ok := otherVersion(err); ok {
		return abi.KVStored{Version: found}, nil
	}
	var full interface{ Quota() (used, most int64) }
	if errors.As(err, &full) {
		used, most := full.Quota()
		return nil, &refusal{abi.Limit, fmt.Sprintf(
			"the module would keep %d bytes, at most %d: delete values, or keep smaller ones", used, most)}
	}
	return abi.KVStored{Stored: true, Version: version, Expires: timeText(expires)}, err
}

func (s *Service) delete(ctx context.Context, _ Access, space string, body []byte) (any, error) {
	var in abi.KVDelete
	if _, err := decode(body, &in, "key", "ifVersion"); err != nil {
		return nil, err
	}
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	ifVersion, err := expected(in.IfVersion)
	if err != nil {
		return nil, err
	}
	deleted, err := s.store.KVDelete(ctx, space, in.Key, ifVersion)
	if found, ok := otherVersion(err); ok {
		return abi.KVDeleted{Version: found}, nil
	}
	return abi.KVDeleted{Deleted: deleted}, err
}

// otherVersion reports whether err says that another version is there, and which.
func otherVersion(err error) (found int64, ok bool) {
	var other interface{ CurrentVersion() int64 }
	if !errors.As(err, &other) {
		return 0, false
	}
	return other.CurrentVersion(), true
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

package sdktest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/protocol/abi"
)

// KV is the storage of one module. Its zero value is empty, and it is for one
// goroutine.
type KV struct {
	values  map[string]stored
	version int64
	passed  time.Duration
}

type stored struct {
	value   string
	version int64
	expires time.Time // zero is never
}

// Value returns what is kept under a key, as it is: JSON, if a tool wrote it with
// kv.Set.
func (k *KV) Value(key string) (value string, ok bool) {
	v, ok := k.values[key]
	return v.value, ok && !k.ended(v)
}

// Put keeps a value for ever, as if a call before had done so.
func (k *KV) Put(key, value string) { k.put(key, value, time.Time{}) }

// Keys returns what there is, sorted.
func (k *KV) Keys() []string {
	maps.DeleteFunc(k.values, func(_ string, v stored) bool { return k.ended(v) })
	return slices.Sorted(maps.Keys(k.values))
}

// Pass lets time go by, so that values end.
func (k *KV) Pass(d time.Duration) { k.passed += d }

func (k *KV) now() time.Time { return time.Now().Add(k.passed) }

func (k *KV) ended(v stored) bool { return !v.expires.IsZero() && !k.now().Before(v.expires) }

func (k *KV) put(key, value string, expires time.Time) int64 {
	if k.values == nil {
		k.values = map[string]stored{}
	}
	k.version++
	k.values[key] = stored{value, k.version, expires}
	return k.version
}

// at is the version of what is kept, 0 for nothing.
func (k *KV) at(key string) int64 {
	if v, ok := k.values[key]; ok && !k.ended(v) {
		return v.version
	}
	return 0
}

func (k *KV) used() (bytes int64) {
	const perValue = 64 // as the store counts
	for _, key := range k.Keys() {
		bytes += int64(len(key) + len(k.values[key].value) + perValue)
	}
	return bytes
}

func (k *KV) serve(op abi.Op, body []byte, asked *sdk.KV) abi.Response {
	switch op {
	case abi.OpKVGet:
		return k.get(body)
	case abi.OpKVSet:
		return k.set(body, asked)
	}
	return k.delete(body)
}

var keyForm = regexp.MustCompile(`^[A-Za-z0-9._:@+=-]+(/[A-Za-z0-9._:@+=-]+)*$`)

func checkKey(key string) error {
	dots := slices.ContainsFunc(strings.Split(key, "/"), func(s string) bool { return s == "." || s == ".." })
	if len(key) > abi.KVMaxKey || !keyForm.MatchString(key) || dots {
		return fmt.Errorf("key %q: see package kv for what a key may be", abi.Cut(key, 60))
	}
	return nil
}

func (k *KV) get(body []byte) abi.Response {
	var in abi.KVGet
	err := strictly(body, &in)
	if err == nil && in.Prefix != nil {
		return encoded(k.list(in))
	}
	if err == nil {
		err = checkKey(in.Key)
	}
	if err != nil {
		return invalid(abi.OpKVGet, err.Error())
	}
	if k.at(in.Key) == 0 {
		return encoded(abi.KVValue{})
	}
	v := k.values[in.Key]
	out := abi.KVValue{Found: true, Value: v.value, Version: v.version, Expires: text(v.expires)}
	if in.Base64 {
		out.Value = base64.StdEncoding.EncodeToString([]byte(v.value))
	} else if !utf8.ValidString(v.value) {
		return invalid(abi.OpKVGet, "the value is not UTF-8: read it with GetBytes")
	}
	return encoded(out)
}

func (k *KV) list(in abi.KVGet) abi.KVKeys {
	limit := in.Limit
	if limit == 0 {
		limit = abi.KVMaxKeys
	}
	out := abi.KVKeys{Keys: []string{}}
	for _, key := range k.Keys() {
		switch {
		case !strings.HasPrefix(key, *in.Prefix) || key <= in.After:
		case len(out.Keys) == limit:
			out.More = true
		default:
			out.Keys = append(out.Keys, key)
		}
	}
	return out
}

func (k *KV) set(body []byte, asked *sdk.KV) abi.Response {
	var in abi.KVSet
	err := strictly(body, &in)
	if err == nil {
		err = checkKey(in.Key)
	}
	value := []byte(in.Value)
	if err == nil && in.Base64 {
		value, err = base64.StdEncoding.DecodeString(in.Value)
	}
	switch {
	case err != nil:
		return invalid(abi.OpKVSet, err.Error())
	case in.IfVersion != nil && *in.IfVersion != k.at(in.Key):
		return encoded(abi.KVStored{Version: k.at(in.Key)})
	}
	return k.keep(in, string(value), asked)
}

// keep writes a value, and takes it back if it is too much.
func (k *KV) keep(in abi.KVSet, value string, asked *sdk.KV) abi.Response {
	before, there := k.values[in.Key]
	expires := k.end(time.Duration(in.TTL)*time.Second, asked)
	version, most := k.put(in.Key, value, expires), bytesOf(asked.Max, 1<<20)
	if used := k.used(); used > most || len(value) > abi.KVMaxValue {
		if delete(k.values, in.Key); there {
			k.values[in.Key] = before
		}
		return abi.Refuse(abi.Limit, fmt.Sprintf("%s: the module would keep %d bytes, at most %d: delete values, or keep smaller ones",
			abi.OpKVSet, used, most))
	}
	return encoded(abi.KVStored{Stored: true, Version: version, Expires: text(expires)})
}

// end is when a value ends: after ttl, but no later than the module asked for.
func (k *KV) end(ttl time.Duration, asked *sdk.KV) time.Time {
	longest, err := time.ParseDuration(asked.TTL)
	if err == nil && (ttl == 0 || longest < ttl) {
		ttl = longest
	}
	if ttl == 0 {
		return time.Time{}
	}
	return k.now().Add(ttl)
}

func (k *KV) delete(body []byte) abi.Response {
	var in abi.KVDelete
	err := strictly(body, &in)
	if err == nil {
		err = checkKey(in.Key)
	}
	version := k.at(in.Key)
	switch {
	case err != nil:
		return invalid(abi.OpKVDelete, err.Error())
	case version == 0:
		return encoded(abi.KVDeleted{})
	case in.IfVersion != nil && *in.IfVersion != version:
		return encoded(abi.KVDeleted{Version: version})
	}
	delete(k.values, in.Key)
	return encoded(abi.KVDeleted{Deleted: true})
}

func text(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

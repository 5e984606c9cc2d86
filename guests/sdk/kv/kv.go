// Package kv lets a tool keep values between calls, in storage that is its module's
// own.
//
//	var module = sdk.Serve(sdk.Module{
//		Requests: sdk.Requests{KV: &sdk.KV{Max: "64KiB", Reason: "Remembers the last search."}},
//		...
//	})
//
//	last, found, err := kv.Get[search](c, "last")
//	err = kv.Set(c, "last", search{...}, 24*time.Hour)
//
// Values are kept as JSON, or as they are with [GetBytes] and [SetBytes]. A key has 1
// to 256 bytes of the characters A-Z a-z 0-9 . _ - : @ + = in segments with / between
// them; none is empty, "." or "..". A value has at most 1 MiB.
//
// Calls of a module run side by side. Where two could change one value, read it with
// [Read] and write it with [Replace], which does nothing if somebody was faster.
//
// Errors are [*sdk.Refusal]: over the operator's bound is [sdk.ErrLimit], a wrong key
// [sdk.ErrInvalid].
package kv

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Entry is a value with what the host knows of it.
type Entry[T any] struct {
	Value T
	// Version is 0 if there is no value. Every change gives it one that it never
	// had.
	Version int64
	// Expires is when the value ends; the zero time means never.
	Expires time.Time
}

// Get reads a value that [Set] or [Replace] wrote.
func Get[T any](c *sdk.Call, key string) (value T, found bool, err error) {
	e, err := Read[T](c, key)
	return e.Value, e.Version != 0, err
}

// Set writes a value. It is kept for ttl, in whole seconds rounded up; 0 means as
// long as the operator lets it be.
func Set[T any](c *sdk.Call, key string, value T, ttl time.Duration) error {
	text, err := asJSON(key, value)
	if err != nil {
		return err
	}
	_, err = set(c, abi.KVSet{Key: key, Value: text, TTL: seconds(ttl)})
	return err
}

// Read is [Get] with the value's version and end.
func Read[T any](c *sdk.Call, key string) (Entry[T], error) {
	var e Entry[T]
	got, err := get(c, abi.KVGet{Key: key})
	if err != nil || !got.Found {
		return e, err
	}
	e.Version, e.Expires = got.Version, expiry(got.Expires)
	if err := json.Unmarshal([]byte(got.Value), &e.Value); err != nil {
		return e, fmt.Errorf("the value of %s is of another form: %w", key, err)
	}
	return e, nil
}

// Replace is [Set] if the value still has a version that [Read] gave, 0 for none. It
// reports whether it has, and changes nothing if not: read again, then try again.
func Replace[T any](c *sdk.Call, key string, value T, version int64, ttl time.Duration) (replaced bool, err error) {
	text, err := asJSON(key, value)
	if err != nil {
		return false, err
	}
	return set(c, abi.KVSet{Key: key, Value: text, TTL: seconds(ttl), IfVersion: &version})
}

// GetBytes reads a value as it is.
func GetBytes(c *sdk.Call, key string) (value []byte, found bool, err error) {
	got, err := get(c, abi.KVGet{Key: key, Base64: true})
	if err != nil || !got.Found {
		return nil, false, err
	}
	value, err = base64.StdEncoding.DecodeString(got.Value)
	return value, err == nil, err
}

// SetBytes writes a value as it is, like [Set].
func SetBytes(c *sdk.Call, key string, value []byte, ttl time.Duration) error {
	in := abi.KVSet{Key: key, Value: base64.StdEncoding.EncodeToString(value), Base64: true, TTL: seconds(ttl)}
	_, err := set(c, in)
	return err
}

// Delete removes a value and reports whether there was one.
func Delete(c *sdk.Call, key string) (deleted bool, err error) {
	var out abi.KVDeleted
	err = c.Ask(sdk.Gated{Op: abi.OpKVDelete, Import: importDelete}, abi.KVDelete{Key: key}, &out)
	return out.Deleted, err
}

// Keys returns all keys that begin with prefix, in the order of their bytes.
func Keys(c *sdk.Call, prefix string) (keys []string, err error) {
	in := abi.KVGet{Prefix: &prefix}
	for {
		var out abi.KVKeys
		if err := c.Ask(gatedGet(), in, &out); err != nil {
			return nil, err
		}
		keys = append(keys, out.Keys...)
		if !out.More || len(out.Keys) == 0 {
			return keys, nil
		}
		in.After = keys[len(keys)-1]
	}
}

func gatedGet() sdk.Gated { return sdk.Gated{Op: abi.OpKVGet, Import: importGet} }

func get(c *sdk.Call, in abi.KVGet) (out abi.KVValue, err error) {
	err = c.Ask(gatedGet(), in, &out)
	return out, err
}

func set(c *sdk.Call, in abi.KVSet) (stored bool, err error) {
	var out abi.KVStored
	err = c.Ask(sdk.Gated{Op: abi.OpKVSet, Import: importSet}, in, &out)
	return out.Stored, err
}

func asJSON(key string, value any) (string, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("the value of %s: %w", key, err)
	}
	return string(b), nil
}

func seconds(ttl time.Duration) int64 { return int64((ttl + time.Second - 1) / time.Second) }

// expiry reads what the host wrote; what it cannot read is never.
func expiry(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

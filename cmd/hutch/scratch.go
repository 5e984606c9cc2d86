package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/hutch-run/hutch/host/kv"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/store"
)

// scratch is a storage for one module that is tried: nothing in it comes from what
// the module keeps elsewhere, and nothing outlives it.
type scratch struct {
	module string
	dir    string
	db     *store.DB
	values *kv.Service
}

func openScratch(ctx context.Context, module string) (s *scratch, err error) {
	dir, err := os.MkdirTemp("", "hutch-values-")
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, filepath.Join(dir, "values.db"), store.Options{})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &scratch{module: module, dir: dir, db: db, values: kv.New(db, nil)}, nil
}

// Close removes it.
func (s *scratch) Close() error { return errors.Join(s.db.Close(), os.RemoveAll(s.dir)) }

// host serves operations on values as a gate does that has granted most bytes.
func (s *scratch) host(most int64) abi.Host {
	return func(ctx context.Context, r abi.Request) abi.Response {
		return s.values.Serve(ctx, kv.Access{Module: s.module, Tenant: localCaller("").Principal, Writer: "test", MaxBytes: most}, r)
	}
}

// roomy is what somebody may put there who prepares a call.
const roomy = 64 << 20

// set puts values in place of what is there.
func (s *scratch) set(ctx context.Context, values []abi.KVSet) error {
	old, err := s.contents(ctx)
	if err != nil {
		return err
	}
	for _, v := range old {
		if err := s.do(ctx, abi.OpKVDelete, abi.KVDelete{Key: v.Key}, &abi.KVDeleted{}); err != nil {
			return err
		}
	}
	for _, v := range values {
		plain := abi.KVSet{Key: v.Key, Value: v.Value, Base64: v.Base64}
		if err := s.do(ctx, abi.OpKVSet, plain, &abi.KVStored{}); err != nil {
			return fmt.Errorf("value %s: %w", quoted(v.Key), err)
		}
	}
	return nil
}

// contents returns what is there, by key, never nil.
func (s *scratch) contents(ctx context.Context) ([]abi.KVSet, error) {
	all, everything, after := []abi.KVSet{}, "", ""
	for more := true; more; {
		var keys abi.KVKeys
		if err := s.do(ctx, abi.OpKVGet, abi.KVGet{Prefix: &everything, After: after}, &keys); err != nil {
			return nil, err
		}
		more = keys.More
		for _, key := range keys.Keys {
			after = key
			var found abi.KVValue
			if err := s.do(ctx, abi.OpKVGet, abi.KVGet{Key: key, Base64: true}, &found); err != nil {
				return nil, err
			}
			if found.Found { // else it has just expired
				all = append(all, plainValue(key, found.Value))
			}
		}
	}
	return all, nil
}

// plainValue is a value as a person reads it, if one can.
func plainValue(key, encoded string) abi.KVSet {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !utf8.Valid(raw) {
		return abi.KVSet{Key: key, Value: encoded, Base64: true}
	}
	return abi.KVSet{Key: key, Value: string(raw)}
}

func (s *scratch) do(ctx context.Context, op abi.Op, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r := s.host(roomy)(ctx, abi.Request{Op: op, Body: body})
	if r.Code != abi.OK {
		var refusal struct{ Error struct{ Message string } }
		if err := json.Unmarshal(r.Body, &refusal); err != nil {
			return err
		}
		return errors.New(refusal.Error.Message)
	}
	return json.Unmarshal(r.Body, out)
}

package kv

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
)

// bodyDepth is how deep a body nests: an object of scalars.
const bodyDepth = 1

// decode reads a body strictly into the struct that in points to and that has these
// names, and returns which were given.
func decode(body []byte, in any, allowed ...string) (given func(name string) bool, err error) {
	node, err := rawjson.Parse(body, bodyDepth)
	if err != nil {
		return nil, invalid("%v", err)
	}
	if !node.Is(rawjson.Object) {
		return nil, invalid("the body is of type %s, allowed is an object", node.What())
	}
	for _, m := range node.Members {
		if !slices.Contains(allowed, m.Name) {
			return nil, invalid("unknown name %+q, allowed are %s", abi.Cut(m.Name, 40), strings.Join(allowed, ", "))
		}
		if m.Value.Is(rawjson.Null) {
			return nil, invalid("%s is null: leave it out", m.Name)
		}
	}
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(body, in); errors.As(err, &wrong) {
		return nil, invalid("%s is of type %s, allowed is %s", wrong.Field, abi.Cut(wrong.Value, 40), kindOf(wrong.Type))
	} else if err != nil {
		return nil, err
	}
	return func(name string) bool { return node.Get(name) != nil }, nil
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a string"
}

func checkKey(key string) error {
	if key == "" || len(key) > abi.KVMaxKey {
		return invalid("a key of %d bytes, allowed are 1 to %d", len(key), abi.KVMaxKey)
	}
	return checkSegments("key", strings.Split(key, "/"), key)
}

// checkPrefix lets through what a key can begin with. It may end within a segment.
func checkPrefix(what, prefix string) error {
	if len(prefix) > abi.KVMaxKey {
		return invalid("%s of %d bytes, at most %d", what, len(prefix), abi.KVMaxKey)
	}
	segments := strings.Split(prefix, "/")
	last := len(segments) - 1
	if strings.ContainsFunc(segments[last], notInKeys) {
		return wrongKey(what, prefix)
	}
	return checkSegments(what, segments[:last], prefix)
}

func checkSegments(what string, segments []string, whole string) error {
	for _, segment := range segments {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsFunc(segment, notInKeys) {
			return wrongKey(what, whole)
		}
	}
	return nil
}

func wrongKey(what, text string) error {
	return invalid(`%s %+q, allowed are segments of A-Z a-z 0-9 . _ - : @ + = with / between them, none of them empty, "." or ".."`,
		what, abi.Cut(text, 60))
}

func notInKeys(r rune) bool {
	alphanumeric := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !alphanumeric && !strings.ContainsRune("._-:@+=", r)
}

func valueOf(in abi.KVSet) ([]byte, error) {
	value := []byte(in.Value)
	if in.Base64 {
		var err error
		if value, err = base64.StdEncoding.Strict().DecodeString(in.Value); err != nil {
			return nil, invalid("value is not standard base64: %v", err)
		}
	}
	if len(value) > abi.KVMaxValue {
		return nil, &refusal{abi.Limit, "a value of more than 1 MiB: split it"}
	}
	return value, nil
}

// timeToLive is what was asked for, but no more than the grant's.
func timeToLive(seconds int64, granted time.Duration) (time.Duration, error) {
	if seconds < 0 || seconds > abi.KVMaxTTL {
		return 0, invalid("ttl is %d seconds, allowed are 1 to %d", seconds, abi.KVMaxTTL)
	}
	asked := time.Duration(seconds) * time.Second
	if asked == 0 || granted > 0 && granted < asked {
		return granted, nil
	}
	return asked, nil
}

// anyVersion is what a [Store] takes for: whatever is there.
const anyVersion = -1

func expected(version *int64) (int64, error) {
	switch {
	case version == nil:
		return anyVersion, nil
	case *version < 0:
		return 0, invalid("ifVersion is %d, allowed are 0 and more", *version)
	}
	return *version, nil
}

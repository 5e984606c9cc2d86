package tool

import (
	"encoding/json"
	"errors"
)

// Usage is what one call used up, as far as its worker told: a call that ran out of
// time, or lost its worker, leaves without its fuel.
type Usage struct {
	// Fuel is what the guest computed, in the units of limits.fuel. The same call of
	// the same module burns the same for the same clock, random numbers and answers
	// of the host.
	Fuel int64 `json:"fuel,omitempty"`
	// HostCalls counts the gated operations that were asked for.
	HostCalls int `json:"hostCalls,omitempty"`
}

const (
	// ownMeta begins the keys of _meta that are hutch's to write.
	ownMeta = "io.github.hutch-run/"
	// UsageKey is the key of a result's Usage in its _meta.
	UsageKey = ownMeta + "usage"
)

// WithUsage returns r with u, in its _meta too unless u is zero. What a module wrote
// below our part of the names is left out either way.
func WithUsage(r Result, u Usage) Result {
	var wrote map[string]json.RawMessage
	if json.Unmarshal(r.Meta, &wrote) != nil {
		wrote = nil
	}
	meta := map[string]any{}
	for key, value := range wrote {
		if len(key) < len(ownMeta) || key[:len(ownMeta)] != ownMeta {
			meta[key] = value
		}
	}
	if u != (Usage{}) {
		meta[UsageKey] = u
	}
	r.Usage, r.Meta = u, nil
	if len(meta) == 0 {
		return r
	}
	if b, err := json.Marshal(meta); err == nil { // values that were read, and two numbers
		r.Meta = b
	}
	return r
}

// UsageOf returns what a call used up that ended with err, zero if that is not known.
func UsageOf(err error) (u Usage) {
	var used interface{ Usage() Usage }
	if errors.As(err, &used) {
		u = used.Usage()
	}
	return u
}

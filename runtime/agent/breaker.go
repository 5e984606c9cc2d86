package agent

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/hutch-run/hutch/runtime/prompt"
)

// repeat counts the calls of one tool with the same arguments.
type repeat struct {
	n     int
	reads bool
}

// breaks counts a call, and returns what the model is told instead of its result if it
// is one too many.
func (r *run) breaks(c *call) (refusal string) {
	name, key := c.Function.Name, c.key()
	switch {
	case r.denied[key]:
		return prompt.NotRun("denied", "a person has just not allowed this very call", "go on without it, or ask the person what they want")
	case r.a.polling[name]:
		return ""
	}
	seen := r.counts[key]
	seen.n, seen.reads = seen.n+1, r.offer.ReadsOnly(name)
	r.counts[key] = seen
	if most := r.a.o.Repeats; seen.n > most {
		return prompt.NotRun("repeated_call", fmt.Sprintf("the same call was made %d times before", seen.n-1),
			"do something else, or answer with what you have")
	} else if seen.n == most {
		c.note = fmt.Sprintf("[This was the same call %d times. It will not be carried out again: do something else, or answer with what you have.]", seen.n)
	}
	return ""
}

// changed says that something may have been changed: what only reads may be called anew.
func (r *run) changed() {
	for key, seen := range r.counts {
		if seen.reads {
			delete(r.counts, key)
		}
	}
}

// key is the same for calls that say the same.
func (c *call) key() string { return c.Function.Name + "\x00" + canonical(c.args) }

// canonical is arguments in the form that all have which say the same.
func canonical(args json.RawMessage) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return string(args)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return string(args)
	}
	return string(raw)
}

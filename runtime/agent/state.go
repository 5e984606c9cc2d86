package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/prompt"
)

// stateMember is where in a result's _meta a tool says how the state changes.
const stateMember = "ag-ui/state"

func hasState(state json.RawMessage) bool {
	state = bytes.TrimSpace(state)
	return len(state) > 0 && !bytes.Equal(state, []byte("null"))
}

// changeState changes the state as a result says, if its tool may do that. What cannot
// be is left, with a warning.
func (r *run) changeState(name string, res tool.Result) error {
	if !r.a.state[name] || len(res.Meta) == 0 {
		return nil
	}
	var meta map[string]json.RawMessage
	if json.Unmarshal(res.Meta, &meta) != nil || meta[stateMember] == nil {
		return nil
	}
	refuse := func(why string) error {
		return r.warn("state", fmt.Sprintf("the tool %s changes the state, which stays as it is: %s", prompt.Quoted(name), why))
	}
	var change, state map[string]json.RawMessage
	if json.Unmarshal(meta[stateMember], &change) != nil || change == nil {
		return refuse("the change is no object")
	}
	if hasState(r.state) && json.Unmarshal(r.state, &state) != nil {
		return refuse("the state is no object")
	}
	patch, next, err := changed(state, change)
	if err != nil || len(patch) == 0 {
		return err
	}
	if err := r.SetState(next); err != nil {
		return refuse(err.Error())
	}
	had := hasState(r.state)
	if r.state = next; !had {
		return r.Emit(event.StateSnapshot{Snapshot: next})
	}
	return r.Emit(event.StateDelta{Delta: patch})
}

// changed is the state with its members replaced, and how it differs.
func changed(state, change map[string]json.RawMessage) (patch []event.Patch, next json.RawMessage, err error) {
	all := maps.Clone(state)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for _, key := range slices.Sorted(maps.Keys(change)) {
		value, path := change[key], "/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		_, there := all[key]
		switch gone := string(value) == "null"; {
		case gone && there:
			delete(all, key)
			patch = append(patch, event.Patch{Op: "remove", Path: path})
		case !gone && !bytes.Equal(all[key], value):
			all[key] = value
			patch = append(patch, event.Patch{Op: "add", Path: path, Value: value})
		}
	}
	next, err = json.Marshal(all)
	return patch, next, err
}

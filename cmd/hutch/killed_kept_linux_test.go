package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
)

// keptThread is a thread as a client finds it.
type keptThread struct {
	Messages []struct {
		ID, Role, ToolCallID string
		ToolCalls            []struct{ ID string }
	}
}

func (v *victim) thread(id string) (kept keptThread) {
	v.t.Helper()
	resp, err := oneShot().Get(v.url + "/agui/threads/" + id + "?limit=1000")
	must(v.t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read only
	if resp.StatusCode == http.StatusNotFound {
		return kept // nothing of it was kept
	}
	must(v.t, json.NewDecoder(resp.Body).Decode(&kept))
	return kept
}

func (k keptThread) times(id string) (n int) {
	for _, m := range k.Messages {
		if m.ID == id {
			n++
		}
	}
	return n
}

// isWhole holds that nothing stands there twice, and that no call has two results.
func (k keptThread) isWhole(t *testing.T, phase string) {
	t.Helper()
	ids, answered := map[string]int{}, map[string]int{}
	for _, m := range k.Messages {
		if ids[m.ID]++; ids[m.ID] > 1 {
			t.Errorf("%s: message %s is there twice", phase, m.ID)
		}
		if m.ToolCallID != "" {
			if answered[m.ToolCallID]++; answered[m.ToolCallID] > 1 {
				t.Errorf("%s: call %s has two results", phase, m.ToolCallID)
			}
		}
	}
}

// didOnce holds that no call was carried out twice: each value was set once, and the
// number of changes among them says so.
func (v *victim) didOnce() {
	v.t.Helper()
	v.mu.Lock()
	for path, times := range v.done {
		if times > 1 {
			v.t.Errorf("the call %s was carried out %d times", path, times)
		}
	}
	through := len(v.done)
	v.mu.Unlock()
	v.kill()
	keys, changes := v.keptValues()
	if int64(keys) != changes {
		v.t.Errorf("%d values were kept by %d changes", keys, changes)
	}
	if keys < 5*killedThreads || through < 3*killedThreads { // of the phases that leave no choice
		v.t.Errorf("%d values were kept, %d calls got through: phases were missed", keys, through)
	}
	v.t.Logf("%d calls, %d of them at a server, %d that kept a value", v.calls.Load(), through, keys)
}

// keptValues returns how many values the counter keeps, and how many changes made them.
func (v *victim) keptValues() (keys int, changes int64) {
	v.t.Helper()
	db, err := openStore(v.t.Context(), Config{State: filepath.Join(v.dir, "state"), Store: storeConfig{URL: v.database}}, true, quiet)
	must(v.t, err)
	defer func() { must(v.t, db.Close()) }()
	space := spacesOf("counter.wasm") + "local"
	for after := ""; ; {
		page, err := db.KVKeys(v.t.Context(), space, "", after, 1000)
		must(v.t, err)
		if len(page) == 0 {
			break
		}
		keys, after = keys+len(page), page[len(page)-1]
	}
	changes, _, err = db.KVPut(v.t.Context(), space, "last", "test", []byte("x"), 0, -1, 1<<30)
	must(v.t, err)
	return keys, changes - 1
}

package capability

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// SetGrant returns the text of a policy file with the grant of one module set,
// and what it is bound to. Everything else stays as it was written, comments and
// order too, also the rules of the grant that stay. The result is read back
// before it is returned: it says what was meant and changes nothing else, or
// there is an error. file is what errors call the text.
func SetGrant(file string, text []byte, module string, b Binding, g Grant) ([]byte, error) {
	if err := grantable(g); err != nil {
		return nil, err
	}
	return edit(file, text, module, func(e *Entry) { e.Digest, e.Definitions, e.Decided, e.Grant = b.Digest, b.Definitions, true, g },
		func(t *editor) {
			t.setBinding(b)
			t.setGrant(g)
		},
		func(t *editor) {
			t.setBinding(b)
			t.replace("grant", g.yaml())
		})
}

// Approve returns the text with the binding of one module set: what was granted
// before goes for the module as it is now. A module that the policy does not
// speak of is pinned.
func Approve(file string, text []byte, module string, b Binding) ([]byte, error) {
	return edit(file, text, module, func(e *Entry) { e.Digest, e.Definitions = b.Digest, b.Definitions },
		func(t *editor) { t.setBinding(b) })
}

// Revoke returns the text without what was decided about a module: its grant and
// what that was bound to, so that it is held again. Kinds, if there are any, are
// taken from its grant alone, and the decision stands; without http no secret can
// be sent, so these go together.
func Revoke(file string, text []byte, module string, kinds ...string) ([]byte, error) {
	if len(kinds) > 0 {
		return revokeKinds(file, text, module, kinds)
	}
	return edit(file, text, module, func(e *Entry) { e.Digest, e.Definitions, e.Decided, e.Grant = "", "", false, Grant{} },
		func(t *editor) {
			t.remove("grant")
			t.remove("digest")
			t.remove("definitions")
			t.dropEmpty()
		})
}

func revokeKinds(file string, text []byte, module string, gone []string) ([]byte, error) {
	if err := knownKinds(gone); err != nil {
		return nil, err
	}
	p, err := Parse(file, text)
	if err != nil {
		return nil, err
	}
	e, ok := p.Entry(module)
	if !ok || !e.Decided {
		return nil, fmt.Errorf("%s: nothing is granted to it", shown(module))
	}
	return SetGrant(file, text, module, Binding{e.Digest, e.Definitions}, e.Grant.without(withSecrets(gone)))
}

// without returns g without some kinds.
func (g Grant) without(gone []string) Grant {
	for _, kind := range gone {
		switch kind {
		case kindHTTP:
			g.HTTP = nil
		case kindSecrets:
			g.Secrets = nil
		case kindKV:
			g.KV = nil
		case kindFS:
			g.FS = nil
		default:
			*g.names(kind) = nil
		}
	}
	return g
}

// grantable refuses requests that do not say what they are about.
func grantable(g Grant) error {
	if len(g.Open()) > 0 {
		return errors.New("the module does not say what it asks for: name the hosts, secrets, scopes or folders to grant")
	}
	return nil
}

// edit applies the first of several ways to change the text that reads back as
// meant.
func edit(file string, text []byte, module string, mean func(*Entry), ways ...func(*editor)) ([]byte, error) {
	before, err := Parse(file, text)
	if err != nil {
		return nil, err
	}
	if err := checkModuleName(module); err != nil {
		return nil, fmt.Errorf("%s: %w", shown(module), err)
	}
	for _, way := range ways {
		var out []byte
		if out, err = tryEdit(file, text, module, way); err != nil {
			continue
		}
		if err = readsBack(file, before, out, module, mean); err == nil {
			return out, nil
		}
	}
	return nil, err
}

func tryEdit(file string, text []byte, module string, way func(*editor)) ([]byte, error) {
	t, err := newEditor(file, text, module)
	if err != nil {
		return nil, err
	}
	way(t)
	return t.bytes(), nil
}

// readsBack parses an edited text and compares it with what was meant.
func readsBack(file string, before *Policy, out []byte, module string, mean func(*Entry)) error {
	after, err := Parse(file, out)
	if err != nil {
		return err
	}
	want := map[string]Entry{}
	for name, e := range before.modules {
		want[name] = e
	}
	e, ok := want[module]
	if !ok {
		e = Entry{}
	}
	if mean(&e); reflect.DeepEqual(plainEntry(e), Entry{}) && !e.Decided {
		delete(want, module) // an entry that says nothing is not written
	} else {
		want[module] = e
	}
	same := before.defaults == after.defaults && len(want) == len(after.modules)
	for name, e := range want {
		got, ok := after.modules[name]
		same = same && ok && slices.Equal(got.Grant.yaml(), e.Grant.yaml()) && reflect.DeepEqual(plainEntry(got), plainEntry(e))
	}
	if !same {
		return fmt.Errorf("%s: the change would not read back as it was meant: write it by hand", file)
	}
	return nil
}

// plainEntry leaves out what is compared in another way.
func plainEntry(e Entry) Entry {
	e.Line, e.Grant = 0, Grant{}
	return e
}

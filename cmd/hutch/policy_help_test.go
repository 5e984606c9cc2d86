package main

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
)

// What help prints is a policy file, and grants what it says.
func TestPolicyHelpIsAPolicy(t *testing.T) {
	p, err := capability.Parse("policy.yaml", []byte(policyHelp()))
	if err != nil {
		t.Fatalf("%v\n%s", err, policyHelp())
	}
	e, ok := p.Entry("github.wasm")
	if !ok || len(e.Grant.HTTP) != 1 || len(e.Grant.Secrets) != 1 || len(e.Grant.Kinds()) != 8 || len(e.Tools) != 1 || len(e.Agents) != 1 {
		t.Errorf("the entry: %+v", e)
	}
}

// below returns the keys that the help has below a path.
func below(path string) (keys []string) {
	for _, k := range policyKeys() {
		if k.parent() == path && k.path != path {
			keys = append(keys, k.key())
		}
	}
	slices.Sort(keys)
	return keys
}

// findings are what is wrong with a policy file of these keys.
func findings(t *testing.T, keys []policyKey) []capability.Finding {
	t.Helper()
	_, err := capability.Parse("policy.yaml", []byte(policyFileText(keys)))
	var wrong *capability.PolicyError
	if !errors.As(err, &wrong) || len(wrong.Findings) == 0 {
		t.Fatalf("it was taken: %v\n%s", err, policyFileText(keys))
	}
	return wrong.Findings
}

// knownKeys returns the keys that the parser says are allowed where an unknown one
// was found.
func knownKeys(t *testing.T, found []capability.Finding) []string {
	t.Helper()
	at := slices.IndexFunc(found, func(f capability.Finding) bool { return f.Found == "no such key" })
	if at < 0 {
		t.Fatalf("no key was found to be unknown: %v", found)
	}
	known := strings.Split(strings.TrimPrefix(found[at].Allowed, "allowed are "), ", ")
	slices.Sort(known)
	return known
}

// Below each key the help has just those that the parser knows: a key that it does
// not know is put there, and the parser says which it does.
func TestPolicyHelpHasEveryKey(t *testing.T) {
	keys := policyKeys()
	seen := map[string]bool{}
	for i, k := range keys {
		planted := slices.Clone(keys)
		path := k.parent()
		switch {
		case k.like != "":
			path, planted[i].example = k.like, "{unheard_of: 1}"
		case strings.HasSuffix(k.path, "*") || seen[path]:
			continue
		default:
			seen[path] = true
			planted = slices.Insert(planted, i, policyKey{path: strings.TrimPrefix(path+"/unheard_of", "/"), example: "1"})
		}
		t.Run(path, func(t *testing.T) {
			if known, listed := knownKeys(t, findings(t, planted)), below(path); !slices.Equal(known, listed) {
				t.Errorf("the parser knows %q, the help %q", known, listed)
			}
		})
	}
	for _, k := range keys {
		if len(below(k.path)) == 0 && len(below(k.path+"/-")) == 0 && k.like == "" && strings.Contains(k.example, "{") {
			t.Errorf("%s: the keys in its example are to stand for themselves: %s", k.path, k.example)
		}
	}
}

// wrongFor is a value that an example's parser refuses as out of what is allowed.
func wrongFor(example string) string {
	open, value, end := "", example, ""
	if strings.HasPrefix(example, "[") {
		open, value, end = "[", strings.Trim(example, "[]"), "]"
	}
	for _, kind := range []struct{ looks, wrong string }{
		{`^\d+$`, "0"}, {`^\d+[KMG]?i?B$`, "0B"}, {`^\d+(ms|s|m|h)$`, "0s"}, {``, `"é!/"`},
	} {
		if regexp.MustCompile(kind.looks).MatchString(value) {
			return open + kind.wrong + end
		}
	}
	return ""
}

// Where the parser lists what is allowed, help lists the same; and what it says is
// refused is.
func TestPolicyHelpSaysWhatIsAllowed(t *testing.T) {
	keys, compared := policyKeys(), 0
	for i, k := range keys {
		planted := slices.Clone(keys)
		switch {
		case k.later != "":
			planted[i].later, planted[i].example = "", "1"
			found := findings(t, planted)
			if found[0].Found != "not available yet" || found[0].Allowed != k.later+": leave the key out" {
				t.Errorf("%s is said to be refused, got %v", k.path, found)
			}
			continue
		case k.example == "" || k.like != "" || k.instead || strings.HasPrefix(k.path, entryPath+"/config/"):
			continue
		}
		if k.allowed == "" {
			t.Errorf("%s: not said what is allowed", k.path)
		}
		planted[i].example = wrongFor(k.example)
		for _, f := range findings(t, planted) {
			if allowed, ok := strings.CutPrefix(f.Allowed, "allowed are "); ok && strings.Contains(f.Key, k.key()) && !strings.Contains(k.allowed, "*.NAME") {
				compared++
				if allowed != k.allowed {
					t.Errorf("%s: the parser allows %q, help says %q", k.path, allowed, k.allowed)
				}
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d keys were compared", compared)
	}
}

// The page for operators has a word on every key.
func TestOperatorsPageHasEveryPolicyKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/operators.md")
	must(t, err)
	_, section, ok := strings.Cut(string(page), "## What a tool may reach")
	section, _, end := strings.Cut(section, "## Deciding")
	if !ok || !end || !strings.Contains(section, "`hutch help policy`") {
		t.Fatal("docs/operators.md: the section is not there, or does not say where all keys are")
	}
	for _, k := range policyKeys() {
		if k.name == "" && !regexp.MustCompile("[`.]"+regexp.QuoteMeta(k.key())+"[`.]").MatchString(section) {
			t.Errorf("docs/operators.md: not a word about %s", k.path)
		}
	}
}

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/protocol/abi"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

// recordedSite answers requests for example.org, and for hosts below it, as the
// recordings of the shipped modules have it, redirects included.
func recordedSite(t *testing.T) http.HandlerFunc {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(guestsFolder, "*", "testdata", answersFolder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	type page struct {
		Status    int
		URL, Body string
		Headers   http.Header
	}
	pages := map[string]page{} // by method and address
	for _, file := range files {
		r, err := readRecording(file)
		must(t, err)
		for _, e := range r.Exchanges {
			if e.Op != abi.OpHTTP {
				continue
			}
			var asked struct{ Method, URL string }
			var answer page
			must(t, errors.Join(json.Unmarshal(e.Request, &asked), json.Unmarshal(e.Answer, &answer)))
			if e.Code == abi.OK {
				method := cmp.Or(asked.Method, http.MethodGet)
				pages[method+" "+asked.URL], pages[method+" "+answer.URL] = answer, answer
			}
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		here := url.URL{Scheme: "https", Host: r.Host, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
		got, ok := pages[r.Method+" "+here.String()]
		switch {
		case !ok:
			http.NotFound(w, r)
		case got.URL != here.String():
			http.Redirect(w, r, got.URL, http.StatusFound)
		default:
			for name, values := range got.Headers {
				w.Header()[name] = values
			}
			w.WriteHeader(got.Status)
			_, _ = w.Write([]byte(got.Body))
		}
	}
}

// recordedTracker answers as the recordings of one example call have it.
func recordedTracker(t *testing.T, known recording) *httptest.Server {
	answers := map[string]abi.TrackerResponse{}
	for _, e := range known.Exchanges {
		if e.Op == abi.OpTracker {
			var asked abi.TrackerRequest
			var answer abi.TrackerResponse
			must(t, errors.Join(json.Unmarshal(e.Request, &asked), json.Unmarshal(e.Answer, &answer)))
			answers[asked.Method+" "+asked.Path] = answer
		}
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, ok := answers[r.Method+" "+strings.TrimPrefix(r.URL.EscapedPath(), trackerPath)]
		if !ok || r.Header.Get("Authorization") != "Bearer recorded" {
			t.Errorf("the tracker was asked %s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(got.Status)
		_, _ = w.Write(got.Body)
	}))
}

// What is printed when an example call of a shipped tool is observed is a policy, and
// with it in force the call gets what the example wants: from a real site, and with
// the values of its recording in a real storage. An example that shows a refusal is not
// refused any more.
func TestEveryExampleWorksAsObserved(t *testing.T) {
	set, err := toolswasm.Shipped()
	must(t, err)
	if len(set.Modules()) == 0 {
		skipUnlessRequired(t, "no module is built: make tools")
	}
	web, site := playing(t, "example.org", recordedSite(t))
	t.Cleanup(site.Close)
	for _, m := range set.Modules() {
		t.Run(m.Name, func(t *testing.T) {
			body, err := set.Fetch(m.Digest)
			must(t, err)
			cfg, p := newTestConfig(t, nil)
			p.web = web
			o := observedModule{cfg: cfg, p: p, file: filepath.Join(t.TempDir(), m.Name), body: body}
			must(t, os.WriteFile(o.file, body, 0o600))
			o.answers = filepath.Join(guestsFolder, strings.TrimSuffix(m.Name, moduleSuffix), "testdata")
			calls, bad, err := readExamples(o.answers)
			must(t, errors.Join(append(bad, err)...))
			for _, call := range calls {
				if fails := call.Want.IsError != nil && *call.Want.IsError; !fails || strings.HasPrefix(call.file, "not-allowed") {
					o.try(t, call)
				}
			}
		})
	}
}

// observedModule is a module in a file, whose example calls have their recordings
// below answers.
type observedModule struct {
	cfg           Config
	p             program
	file, answers string
	body          []byte
}

// try observes a call and makes it under what was printed.
func (o observedModule) try(t *testing.T, call example) {
	t.Helper()
	args, path := []string{o.file, call.Tool, string(call.Args)}, answersOf(o.answers, call)
	known, err := readRecordingIfThere(path)
	must(t, err)
	refused := slices.ContainsFunc(known.Exchanges, func(e gate.Exchange) bool { return e.Code != abi.OK })
	if !known.empty() && !refused {
		args = append([]string{"--answers", path}, args...)
	}
	policy := observing(t, o.cfg, o.p, args...)
	p, err := capability.Parse("policy.yaml", []byte(policy))
	must(t, err)
	entry, _ := p.Entry(filepath.Base(o.file))
	if strings.Contains(policy, "Note:") || entry.Digest != hexDigest(o.body) {
		t.Errorf("%s: the policy:\n%s", call.file, policy)
	}
	report := o.inForce(t, call, known, policy)
	text := strings.Join(report.Diff, "\n")
	if refused && asksAgain.MatchString(text) || !refused && !report.Passed {
		t.Errorf("%s: put in force:\n%s\nthe policy:\n%s", call.file, text, policy)
	}
}

var (
	// anyRule begins a rule for requests.
	anyRule = regexp.MustCompile(`(?m)^(        - \{)(.*host: .*methods)`)
	// asksAgain is an answer that wants something granted still.
	asksAgain = regexp.MustCompile(`(?m)^\+ .*hutch tools grant`)
)

// inForce makes a call for real under a policy, to which the network of the test is
// added.
func (o observedModule) inForce(t *testing.T, call example, known recording, policy string) callReport {
	t.Helper()
	folder := t.TempDir()
	elsewhere := recordedTracker(t, known)
	defer elsewhere.Close()
	o.cfg.Tracker = trackerConfig{URL: elsewhere.URL + trackerPath, TokenFile: filepath.Join(folder, "token")}
	must(t, os.WriteFile(o.cfg.Tracker.TokenFile, []byte("recorded\n"), 0o600))
	o.cfg.Policy = filepath.Join(folder, "policy.yaml")
	must(t, os.WriteFile(o.cfg.Policy, []byte(anyRule.ReplaceAllString(policy, "${1}allow_private: [127.0.0.1/32], ${2}")), 0o600))
	bench, err := openWorkbench(o.cfg, o.p)
	must(t, err)
	defer func() { must(t, bench.Close()) }()
	src := source{name: filepath.Base(o.file), body: o.body}
	on, err := bench.stageFor(t.Context(), o.p, &src, true)
	must(t, err)
	defer func() { must(t, on.Close()) }()
	tools, m, err := bench.mount(t.Context(), src.name, src.body, on.options())
	must(t, err)
	defer func() { must(t, tools.Close()) }()
	must(t, errors.Join(usable(m), on.open(t.Context(), m)))
	path := filepath.Join(folder, "seen.json")
	if known.Values != nil {
		must(t, recording{Values: known.Values}.write(path, on.(*recorder).vault.Redactor()))
	}
	report, err := on.perform(t.Context(), path, call, tools)
	must(t, err)
	return report
}

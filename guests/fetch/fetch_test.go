package main

import (
	"os"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

// body reads a page of testdata.
func body(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// call fetches https://a.example/page, which is this page, with these arguments.
func call(t *testing.T, page sdktest.Page, args fetchInput) (fetchOutput, sdktest.Result) {
	t.Helper()
	if args.URL == "" {
		args.URL = "https://a.example/page"
	}
	if args.Most == 0 {
		args.Most = 10_000
	}
	if args.Format == "" {
		args.Format = "markdown"
	}
	got := sdktest.Host{Web: sdktest.Pages{
		"GET https://a.example/page": page,
		"GET https://a.example/":     {Status: 301, Header: map[string]string{"Location": "/page"}},
	}}.Call(t, module, "fetch", args)
	var out fetchOutput
	if !got.IsError {
		got.Into(t, &out)
	}
	return out, got
}

// An article comes without what is around it, in every form.
func TestFetchArticle(t *testing.T) {
	page := sdktest.Page{Header: map[string]string{"Content-Type": "text/html; charset=utf-8"}, Body: body(t, "article.html")}
	for name, c := range map[string]struct {
		args  fetchInput
		title string
	}{
		"article.md":  {fetchInput{}, "How tides work"},
		"article.txt": {fetchInput{Format: "text"}, "How tides work"},
		"whole.md":    {fetchInput{Whole: true}, "How tides work - A Site"},
	} {
		got, _ := call(t, page, c.args)
		if want := body(t, name); got.Content+"\n" != want {
			t.Errorf("%s: got\n%s", name, got.Content)
		}
		if got.Title != c.title || got.URL != "https://a.example/page" || got.Next != 0 || got.Links != nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestFetchLinks(t *testing.T) {
	got, result := call(t, sdktest.Page{Body: body(t, "article.html")}, fetchInput{Links: true})
	want := []link{{"Home", "https://a.example/"}, {"Moon", "https://a.example/moon?a=1&b=2"}, {"sun", "https://b.example/sun"}}
	if len(got.Links) != len(want) {
		t.Fatalf("got %+v", got.Links)
	}
	for i := range want {
		if got.Links[i] != want[i] {
			t.Errorf("got %+v, want %+v", got.Links[i], want[i])
		}
	}
	for _, line := range []string{"Title: How tides work\nURL: https://a.example/page\n\n", "\n\nLinks:\n- Home https://a.example/\n"} {
		if !strings.Contains(result.Text, line) {
			t.Errorf("%q is not in %s", line, result.Text)
		}
	}
}

// A page that only a browser fills is not taken for an empty answer.
func TestFetchNothingToRead(t *testing.T) {
	got, result := call(t, sdktest.Page{Header: map[string]string{"Content-Type": "text/html"}, Body: "<title>App</title><div id=root></div><script>run()</script>"}, fetchInput{})
	if got.Content != "" || got.Length != 0 || result.Text != "Title: App\nURL: https://a.example/page\n\n(There is nothing to read on this page; it may need a browser to run.)" {
		t.Errorf("got %q", result.Text)
	}
}

// A redirect is followed, and what is there is said to be there.
func TestFetchRedirect(t *testing.T) {
	got, _ := call(t, sdktest.Page{Body: "plain"}, fetchInput{URL: "a.example/"})
	if got.URL != "https://a.example/page" || got.Content != "plain" {
		t.Errorf("got %+v", got)
	}
}

// A page that is too large for the search of its article comes whole.
func TestFetchLargePage(t *testing.T) {
	got, _ := call(t, sdktest.Page{Body: strings.Repeat("x", 20) + body(t, "article.html") + strings.Repeat("<hr>", maxForArticle)}, fetchInput{Most: 100})
	if !strings.HasPrefix(got.Content, "xxx") {
		t.Errorf("got %s", got.Content)
	}
	got, _ = call(t, sdktest.Page{Body: "<html>" + strings.Repeat("<p>x</p>", maxElements-1)}, fetchInput{Most: 100})
	if !strings.HasPrefix(got.Content, "x\n\nx") {
		t.Errorf("got %s", got.Content)
	}
}

// The parts of a long page are all of it, and each ends with a line if it can.
func TestFetchParts(t *testing.T) {
	long := strings.Repeat("ein längerer Satz\n", 40)
	page := sdktest.Page{Header: map[string]string{"Content-Type": "text/plain"}, Body: long}
	var all string
	args := fetchInput{Most: 100}
	for {
		got, result := call(t, page, args)
		if len([]rune(got.Content)) > 100 || got.Next > 0 && !strings.HasSuffix(got.Content, "\n") {
			t.Errorf("from %d: %q", args.Start, got.Content)
		}
		if all += got.Content; got.Next == 0 {
			break
		}
		if got.Length != 720 || !strings.Contains(result.Text, "(The page goes on, 720 characters in all: call again with start") {
			t.Errorf("the text does not say that there is more: %s", result.Text)
		}
		args.Start = got.Next
	}
	if all != long {
		t.Errorf("the parts are %q", all)
	}
	if _, got := call(t, page, fetchInput{Start: 720}); got.Text != "start is 720, and https://a.example/page has 720 characters: there is no more" {
		t.Errorf("past the end: %q", got.Text)
	}
}

func TestFetchOtherText(t *testing.T) {
	for kind, c := range map[string]struct{ body, want string }{
		"application/json":                {"\ufeff" + `{"a":"<b>"}`, `{"a":"<b>"}`},
		"application/rss+xml":             {`<rss/>`, `<rss/>`},
		"text/plain; charset=iso-8859-1":  {"gr\xfc\xdfe", "grüße"},
		"text/html; charset=windows-1252": {"<title>\x84a\x93</title><p>b", "b"},
		"":                                {"<!DOCTYPE html><p>c", "c"},
		"text/html":                       {"<meta charset=shift_jis><p>\x93\xfa\x96\x7b", "日本"},
	} {
		got, _ := call(t, sdktest.Page{Header: map[string]string{"Content-Type": kind}, Body: c.body}, fetchInput{})
		if got.Content != c.want {
			t.Errorf("%s: got %q, want %q", kind, got.Content, c.want)
		}
	}
}

func TestFetchErrors(t *testing.T) {
	for want, c := range map[string]struct {
		page sdktest.Page
		url  string
	}{
		`https://a.example/page is of type "application/pdf", which is no text; only pages, text, JSON and XML can be read`: {
			page: sdktest.Page{Header: map[string]string{"Content-Type": "application/pdf"}, Body: "%PDF-1.7"}},
		`https://a.example/page is of type "text/plain", which is no text; only pages, text, JSON and XML can be read`: {
			page: sdktest.Page{Header: map[string]string{"Content-Type": "text/plain"}, Body: "a\x00b"}},
		"https://a.example/page has about 50001 elements, at most 50000 can be read: look for a page that has less on it": {
			page: sdktest.Page{Body: "<html>" + strings.Repeat("<p>", maxElements)}},
		"https://a.example/page answered 404: gone for good": {page: sdktest.Page{Status: 404, Body: "gone\nfor good"}},
		"https://a.example/page answered 503: Busy Come back later": {page: sdktest.Page{Status: 503, Header: map[string]string{"Content-Type": "text/html"},
			Body: "<!DOCTYPE html><html><head><title>Busy</title><style>x</style></head><body><h1>Come back</h1> later"}},
		"https://a.example/page answered 500": {page: sdktest.Page{Status: 500, Header: map[string]string{"Content-Type": "image/png"}}},
		"http_request: the answer has more than 2097152 bytes (max_response)": {
			page: sdktest.Page{Body: strings.Repeat("x", 2<<20+1)}},
		`http_request: "ftp://a.example/" is no absolute URL with https or http and without a user`: {url: "ftp://a.example/"},
	} {
		if _, got := call(t, c.page, fetchInput{URL: c.url}); !got.IsError || got.Text != want {
			t.Errorf("got %q, want %q", got.Text, want)
		}
	}
}

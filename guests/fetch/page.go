package main

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	readability "codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/hutch-run/hutch/guests/sdk/fetch"
)

const accept = "text/html, application/xhtml+xml, text/plain;q=0.9, text/markdown;q=0.9, application/json;q=0.8, */*;q=0.1"

const (
	// maxElements is how many elements a page may have: more do not fit into the
	// memory of a call.
	maxElements = 50_000
	// maxForArticle is how many it may have for the search of its article, which
	// looks at each several times. A larger page comes whole.
	maxForArticle = 20_000
)

// readable turns an answer into what can be read; Content is all of it.
func readable(got fetch.Response, in fetchInput) (fetchOutput, error) {
	kind, _, err := mime.ParseMediaType(got.Get("Content-Type"))
	if err != nil {
		kind = "" // none, or nonsense: look at the bytes
	}
	isHTML := kind == "text/html" || kind == "application/xhtml+xml" || kind == "" && looksLikeHTML(got.Body)
	if !isHTML && (!isText(kind) || bytes.IndexByte(got.Body, 0) >= 0) {
		return fetchOutput{}, fmt.Errorf("%s is of type %q, which is no text; only pages, text, JSON and XML can be read", got.URL, kind)
	}
	body, err := decoded(got)
	if err != nil {
		return fetchOutput{}, err
	}
	if !isHTML {
		return fetchOutput{Content: body}, nil
	}
	return readHTML(body, got.URL, in)
}

// refusedBy is the error for an answer that is no page: its status, and what it says
// to a reader, which is where sites explain themselves.
func refusedBy(got fetch.Response) error {
	if out, err := readable(got, fetchInput{Format: "text", Whole: true}); err == nil {
		got.Body = []byte(oneSpaced(out.Title + " " + out.Content))
	}
	return &fetch.StatusError{Response: got}
}

func looksLikeHTML(body []byte) bool {
	head := bytes.ToLower(bytes.TrimSpace(body[:min(len(body), 512)]))
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}

func isText(kind string) bool {
	for _, suffix := range []string{"json", "xml", "javascript", "yaml", "toml"} {
		if strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, suffix) {
			return true
		}
	}
	return kind == "" || strings.HasPrefix(kind, "text/")
}

// decoded returns the body in UTF-8, from the encoding that the answer or the page
// names, or looks like.
func decoded(got fetch.Response) (string, error) {
	if utf8.Valid(got.Body) {
		return strings.TrimPrefix(string(got.Body), "\uFEFF"), nil
	}
	r, err := charset.NewReader(bytes.NewReader(got.Body), got.Get("Content-Type"))
	if err != nil {
		return "", fmt.Errorf("%s: %w", got.URL, err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("%s: %w", got.URL, err)
	}
	return strings.ToValidUTF8(string(body), "\uFFFD"), nil
}

func readHTML(body, at string, in fetchInput) (out fetchOutput, err error) {
	base, err := url.Parse(at)
	if err != nil {
		return out, err
	}
	if n := strings.Count(body, "<") - strings.Count(body, "</"); n > maxElements {
		return out, fmt.Errorf("%s has about %d elements, at most %d can be read: look for a page that has less on it", at, n, maxElements)
	}
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		return out, fmt.Errorf("%s cannot be read as a page: %w", at, err)
	}
	base = baseOf(doc, base)
	out.Title = titleOf(doc)
	if in.Links {
		out.Links = linksOf(doc, base)
	}
	node := doc
	if !in.Whole {
		node = articleOf(doc, base, &out)
	}
	out.Content = render(node, base, in.Format == "text")
	return out, nil
}

// articleOf returns what of a page is its article, or all of a page that looks like
// none.
func articleOf(doc *html.Node, base *url.URL, out *fetchOutput) *html.Node {
	p := readability.NewParser()
	p.MaxElemsToParse = maxForArticle
	if !p.CheckDocument(doc) {
		return doc
	}
	article, err := p.ParseDocument(doc, base)
	if err != nil || article.Node == nil {
		return doc // such as one that is too large
	}
	if title := oneSpaced(article.Title()); title != "" {
		out.Title = title
	}
	return article.Node
}

package board

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/tracker"
)

func invalid(field, format string, args ...any) *tracker.Error {
	return tracker.Errorf(tracker.CodeInvalid, format, args...).With("field", field)
}

func notFound(what, ref string) *tracker.Error {
	err := tracker.Errorf(tracker.CodeNotFound, "no %s %s", what, tracker.Quote(ref))
	if what == "project" {
		err = err.Next("list_projects says which there are")
	}
	return err
}

// checkText refuses what no store keeps as it is, and what is too long or, if it is required,
// blank.
func checkText(field, text string, most int, required bool) error {
	switch {
	case len(text) > most:
		return invalid(field, "%s has %d bytes, at most %d are allowed", field, len(text), most)
	case !utf8.ValidString(text):
		return invalid(field, "%s is not UTF-8", field)
	case strings.ContainsRune(text, 0):
		return invalid(field, "%s has a zero character", field)
	case required && strings.TrimSpace(text) == "":
		return invalid(field, "%s is empty", field)
	}
	return nil
}

// checkLine is checkText for one line, which it trims.
func checkLine(field, text string, most int) (string, error) {
	text = strings.TrimSpace(text)
	if err := checkText(field, text, most, true); err != nil {
		return "", err
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "", invalid(field, "%s has a control character: it is one line", field)
	}
	return text, nil
}

// checkList checks lines, and keeps their order.
func checkList(field string, list []string, most, mostEach int) ([]string, error) {
	if len(list) > most {
		return nil, invalid(field, "%s has %d entries, at most %d are allowed", field, len(list), most)
	}
	out := make([]string, 0, len(list))
	for _, text := range list {
		text, err := checkLine(field, text, mostEach)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out, nil
}

// checkWords checks labels and the like: sorted, each once. A comma would end one in a query.
func checkWords(field string, words []string) ([]string, error) {
	out, err := checkList(field, words, tracker.MaxLabels, tracker.MaxLabel)
	for _, word := range out {
		if strings.Contains(word, ",") {
			return nil, invalid(field, "%s %s has a comma", field, tracker.Quote(word))
		}
	}
	slices.Sort(out)
	return out, err
}

// checkSlug refuses what would not be found again, or be taken for something else.
func checkSlug(slug string) error {
	ok := slug != "" && len(slug) <= tracker.MaxSlug && !isID(slug) && strings.Trim(slug, "-_") == slug
	for _, c := range slug {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if !ok {
		return invalid("slug", "the slug is %s", tracker.Quote(slug)).
			Next("use lower-case letters, digits, and - and _ between them, at most 64")
	}
	if slices.Contains([]string{"me", tracker.All, "none"}, slug) {
		return invalid("slug", "the slug %s has a meaning of its own", tracker.Quote(slug)).Next("use another one")
	}
	return nil
}

// digestOf tells requests apart.
func digestOf(operation string, request any) (string, error) {
	raw, err := json.Marshal(request)
	sum := sha256.Sum256(append([]byte(operation+"\n"), raw...))
	return hex.EncodeToString(sum[:]), err
}

// most is how many items a page has.
func most(limit int) int {
	if limit <= 0 {
		return tracker.DefaultPage
	}
	return min(limit, tracker.MaxPage)
}

// cursorOf reads a cursor: what the page before ended with.
func cursorOf(p tracker.Paging) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if text := string(raw); err == nil && checkText("cursor", text, tracker.MaxRef, false) == nil {
		return text, nil
	}
	return "", invalid("cursor", "the cursor is none that was given out").Next("begin again without one")
}

func cursor(last string) string { return base64.RawURLEncoding.EncodeToString([]byte(last)) }

func cursorNumber(p tracker.Paging) (int64, error) {
	text, err := cursorOf(p)
	if err != nil || text == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, invalid("cursor", "the cursor is none that was given out").Next("begin again without one")
	}
	return n, nil
}

func numberCursor(n int64) string { return strconv.FormatInt(n, 10) }

// pageOf makes a page of one more item than it may have, if there are so many.
func pageOf[T any](items []T, limit int, place func(T) string) tracker.Page[T] {
	page := tracker.Page[T]{Items: items}
	if page.Items == nil {
		page.Items = []T{}
	}
	if len(items) > limit {
		page.Items = items[:limit]
		page.NextCursor = cursor(place(items[limit-1]))
	}
	return page
}

// list is all, and never nil.
func list(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

func pointer(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// with adds a word to a sorted list, without one takes it away.
func with(sorted []string, word string) []string {
	i, found := slices.BinarySearch(sorted, word)
	if found || word == "" {
		return sorted
	}
	return slices.Insert(slices.Clone(sorted), i, word)
}

func without(all []string, word string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(w string) bool { return w == word })
}

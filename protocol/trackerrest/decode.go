package trackerrest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// with reads the body into in and then does it.
func with[T any](c *call, in *T, do func() (any, error)) (any, error) {
	if err := c.body(in); err != nil {
		return nil, err
	}
	return do()
}

// mediaType is that of the body, and "" if there is none.
func (c *call) mediaType() string {
	if c.r.ContentLength == 0 && c.r.Header.Get("Content-Type") == "" {
		return ""
	}
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil {
		return "nothing readable"
	}
	return kind
}

// bytes reads the whole body, if it comes in time.
func (c *call) bytes() ([]byte, error) {
	connection := http.NewResponseController(c.w)
	_ = connection.SetReadDeadline(time.Now().Add(c.within)) // a request of this process has no connection
	raw, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.route.many))
	var large *http.MaxBytesError
	switch {
	case err == nil:
		_ = connection.SetReadDeadline(time.Time{}) // what comes next has its own
	case errors.As(err, &large):
		return nil, c.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, tracker.Errorf(tracker.CodeBadRequest, "the body did not come within %s", c.within)
	default:
		return nil, tracker.Errorf(tracker.CodeBadRequest, "the body could not be read to its end")
	}
	return raw, nil
}

func (c *call) tooLarge() *tracker.Error {
	return tracker.Errorf(tracker.CodeTooLarge, "the body is too large: at most %d bytes are allowed here", c.route.many).With("limit", c.route.many)
}

// body reads a JSON object into in, which is a pointer. No body is an object without members.
func (c *call) body(in any) error {
	kind := c.mediaType()
	if kind != "" && kind != "application/json" {
		if c.r.ContentLength == 0 {
			return c.fields(in, []byte("{}"))
		}
		return tracker.Errorf(tracker.CodeMediaType, "the body is %s", tracker.Quote(kind)).Next("send JSON with the header Content-Type: application/json")
	}
	raw, err := c.bytes()
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	return c.fields(in, raw)
}

// fields reads members under their first names, and refuses those that nobody reads.
func (c *call) fields(in any, raw []byte) error {
	members, err := objectOf(raw)
	if err != nil {
		return err
	}
	for _, alias := range slices.Sorted(maps.Keys(c.route.aliases)) {
		name := c.route.aliases[alias]
		value, ok := members[alias]
		if !ok {
			continue
		}
		if _, both := members[name]; both && !bytes.Equal(members[name], value) {
			return tracker.Errorf(tracker.CodeInvalid, "%s and %s are the same and were given as two", alias, name).With("field", name)
		}
		delete(members, alias)
		members[name] = value
	}
	known := namesOf(c.route.body)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			return tracker.Errorf(tracker.CodeInvalid, "there is no field %s here", tracker.Quote(name)).With("field", name).
				Next("the fields are: " + strings.Join(known, ", "))
		}
	}
	for _, name := range c.route.required {
		if _, ok := members[name]; !ok {
			return tracker.Errorf(tracker.CodeInvalid, "%s is missing", name).With("field", name)
		}
	}
	return readFields(in, members)
}

// objectOf reads one object, in which no name stands twice.
func objectOf(raw []byte) (map[string]json.RawMessage, error) {
	notJSON := tracker.Errorf(tracker.CodeBadRequest, "the body is no JSON object")
	if !utf8.Valid(raw) { // the decoder would put other characters there
		return nil, tracker.Errorf(tracker.CodeBadRequest, "the body is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, notJSON
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, notJSON
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, notJSON
		}
		if _, twice := members[name]; twice {
			return nil, tracker.Errorf(tracker.CodeBadRequest, "%s stands there twice", tracker.Quote(name))
		}
		members[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, notJSON
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, tracker.Errorf(tracker.CodeBadRequest, "something stands behind the JSON object")
	}
	return members, nil
}

// readFields reads each member by itself, so that an error names the one it is about.
func readFields(in any, members map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		one := slices.Concat([]byte(`{"`+name+`":`), members[name], []byte("}")) // a known name needs no escapes
		err := json.Unmarshal(one, in)
		var corrupt base64.CorruptInputError
		if errors.As(err, &corrupt) {
			return tracker.Errorf(tracker.CodeInvalid, "%s is not base64", name).With("field", name).
				Next("encode the bytes as base64, with padding")
		}
		if err != nil {
			return tracker.Errorf(tracker.CodeInvalid, "%s has a value of another type", name).With("field", name).
				Next("openapi.json says which type it has")
		}
	}
	return nil
}

// namesOf are the members of a struct in JSON.
func namesOf(t reflect.Type) (names []string) {
	if t == nil {
		return nil
	}
	for f := range fieldsOf(t) {
		names = append(names, f.name)
	}
	return names
}

// checkQuery refuses parameters that nobody reads, or that stand there twice.
func (c *call) checkQuery() error {
	asked, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return tracker.Errorf(tracker.CodeBadRequest, "the query cannot be read").Next("write what is no letter or digit as %XX")
	}
	c.asked = map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		i := slices.IndexFunc(c.route.query, func(p param) bool { return name == p.name || name == p.alias })
		if i < 0 {
			return tracker.Errorf(tracker.CodeInvalid, "there is no parameter %s here", tracker.Quote(name)).With("field", name).Next(c.parameters())
		}
		p := c.route.query[i]
		if c.asked[p.name] != nil || len(asked[name]) > 1 && !listed(p.name) {
			return tracker.Errorf(tracker.CodeInvalid, "%s was given twice", p.name).With("field", p.name)
		}
		c.asked[p.name] = asked[name]
		if err := checkParam(p, asked[name][0]); err != nil {
			return err
		}
	}
	return nil
}

// listed parameters may be given more than once.
func listed(name string) bool { return name == "status" || name == "labels" }

func (c *call) parameters() string {
	if len(c.route.query) == 0 {
		return "it takes none"
	}
	var names []string
	for _, p := range c.route.query {
		names = append(names, p.name)
	}
	return "the parameters are: " + strings.Join(names, ", ")
}

func checkParam(p param, value string) error {
	wrong := tracker.Errorf(tracker.CodeInvalid, "%s is %s", p.name, tracker.Quote(value)).With("field", p.name)
	switch p.schema["type"] {
	case "boolean":
		if value != "true" && value != "false" && value != "1" && value != "0" {
			return wrong.Next("use true or false")
		}
	case "integer":
		n, err := strconv.Atoi(value)
		least, most := p.schema["minimum"].(int), p.schema["maximum"].(int)
		if err != nil || n < least || n > most {
			return wrong.Next("use a number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most))
		}
	}
	return nil
}

func (c *call) param(name string) string { return c.asked.Get(name) }

func (c *call) flag(name string) bool {
	return c.asked.Get(name) == "true" || c.asked.Get(name) == "1"
}

// number is a parameter that was checked; 0 if it was not given.
func (c *call) number(name string) int {
	n, err := strconv.Atoi(c.asked.Get(name))
	if err != nil {
		return 0
	}
	return n
}

// words are those of a parameter that has commas or stands there more than once.
func (c *call) words(name string) (words []string) {
	for _, text := range c.asked[name] {
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" {
				words = append(words, word)
			}
		}
	}
	return words
}

// paged does a list.
func (c *call) paged(do func(tracker.Paging) (any, error)) (any, error) {
	return do(tracker.Paging{Limit: c.number("limit"), Cursor: c.param("cursor")})
}

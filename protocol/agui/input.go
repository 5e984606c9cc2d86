package agui

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/rawjson"
)

// maxID is in bytes, of an id or a name that a client chose.
const maxID = 256

// toolName is what a tool of a client may be called: a model that is offered another name
// refuses the whole request.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// invalid is the refusal of a request whose member field is wrong.
func invalid(field, found, allowed string) *refusal {
	f := &event.FieldError{Field: field, Found: found, Allowed: allowed}
	return &refusal{status: http.StatusBadRequest, Code: event.CodeInvalid, Field: field, Message: f.Error()}
}

func isJSON(r *http.Request) bool {
	kinds := r.Header.Values("Content-Type")
	if len(kinds) != 1 {
		return false
	}
	kind, _, err := mime.ParseMediaType(kinds[0])
	return err == nil && kind == "application/json"
}

// body reads a request that is JSON.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	text, refused := s.read(w, r)
	if refused != nil {
		return nil, refused
	}
	if err := rawjson.Check(text, rawjson.MaxDepth); err != nil {
		return nil, &refusal{status: http.StatusBadRequest, Code: "invalid_json", Message: "request body: " + err.Error()}
	}
	return text, nil
}

// read waits no longer than Patience for a body. Once that was read to its end, net/http
// waits for a client to leave as long as it takes.
func (s *Server) read(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	control := http.NewResponseController(w)
	err := control.SetReadDeadline(time.Now().Add(s.o.Patience))
	var text []byte
	if err == nil {
		text, err = io.ReadAll(http.MaxBytesReader(w, r.Body, s.o.MaxBody))
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &refusal{status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: fmt.Sprintf("request body: at most %d bytes", s.o.MaxBody)}
	case err != nil:
		s.o.Logger.DebugContext(r.Context(), "agui: request body", "error", err)
		return nil, &refusal{status: http.StatusBadRequest, Code: "incomplete", Message: "request body: could not be read to its end in time"}
	}
	return text, nil
}

// decodeInput reads an input and holds it to the limits.
func (s *Server) decodeInput(text []byte) (event.Input, *refusal) {
	in, err := event.DecodeInput(text, max(s.o.MaxMessages, s.o.MaxTools))
	var fault *event.FieldError
	switch {
	case errors.As(err, &fault):
		return in, invalid(fault.Field, fault.Found, fault.Allowed)
	case err != nil:
		return in, invalid("", "what is no input", "a RunAgentInput of AG-UI 1.0")
	}
	for _, list := range []struct {
		field     string
		has, most int
	}{
		{"messages", len(in.Messages), s.o.MaxMessages},
		{"tools", len(in.Tools), s.o.MaxTools},
		{"context", len(in.Context), s.o.MaxTools},
		{"resume", len(in.Resume), s.o.MaxTools},
	} {
		if list.has > list.most {
			return in, invalid(list.field, fmt.Sprintf("%d elements", list.has), fmt.Sprintf("at most %d", list.most))
		}
	}
	return in, checkIDs(in)
}

func checkIDs(in event.Input) *refusal {
	if in.ThreadID == "." || in.ThreadID == ".." {
		return invalid("threadId", in.ThreadID, "another id: in an address it would be that of another route")
	}
	for field, id := range map[string]string{"threadId": in.ThreadID, "runId": in.RunID, "parentRunId": in.ParentRunID} {
		if refused := checkID(field, id); refused != nil {
			return refused
		}
	}
	for i, m := range in.Messages {
		if refused := checkID(fmt.Sprintf("messages[%d].id", i), m.ID); refused != nil {
			return refused
		}
	}
	names := map[string]bool{}
	for i, t := range in.Tools {
		field := fmt.Sprintf("tools[%d].name", i)
		if !toolName.MatchString(t.Name) {
			return invalid(field, "another name", "1 to 64 letters, digits, - and _, as models take them")
		}
		if names[t.Name] {
			return invalid(field, "a name that another tool has", "one of its own")
		}
		names[t.Name] = true
	}
	answered := map[string]bool{}
	for i, r := range in.Resume {
		if answered[r.InterruptID] {
			return invalid(fmt.Sprintf("resume[%d].interruptId", i), "one that is answered already", "one answer for each")
		}
		answered[r.InterruptID] = true
	}
	return nil
}

// checkAll checks ids that come in the address of a request.
func checkAll(r *http.Request, names ...string) *refusal {
	if refused := checkID("thread", r.PathValue("id")); refused != nil {
		return refused
	}
	for _, name := range names {
		if refused := checkID(name, r.URL.Query().Get(name)); refused != nil {
			return refused
		}
	}
	return nil
}

func checkID(field, id string) *refusal {
	switch {
	case len(id) > maxID:
		return invalid(field, fmt.Sprintf("%d bytes", len(id)), fmt.Sprintf("at most %d", maxID))
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return invalid(field, "a control character or invalid UTF-8", "text without any")
	}
	return nil
}

package agui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// ThreadsQuery asks for a page of threads.
type ThreadsQuery struct {
	Limit int // at most so many, from 1 to 200
	// After is [ThreadPage.Next] of the page before, empty for the first.
	After string
}

// ThreadPage is a page of threads.
type ThreadPage struct {
	Threads []Thread `json:"threads"`
	Next    string   `json:"next,omitempty"` // empty on the last page
}

// Thread is a conversation.
type Thread struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Messages  int       `json:"messages"` // how many
	Bytes     int64     `json:"bytes"`    // how much room it takes
	// RunID is the run in progress, if there is one.
	RunID string `json:"runId,omitempty"`
}

// MessagesQuery asks for messages of a thread.
type MessagesQuery struct {
	Limit int // at most so many, from 1 to 1,000
	// Before is the id of a message: those that are older are wanted. Empty wants the
	// last ones.
	Before string
}

// History is a thread with messages of it.
type History struct {
	Thread   Thread         `json:"thread"`
	Messages []chat.Message `json:"messages"`
	// More: there are older ones.
	More bool `json:"more"`
	// State is what agent and client share; nil is none.
	State json.RawMessage `json:"state,omitempty"`
	// Interrupts are those that wait for an answer.
	Interrupts []event.Interrupt `json:"interrupts"`
}

func (s *Server) threads(w http.ResponseWriter, r *http.Request, engine Engine) {
	limit, refused := number(r, "limit", 50, 200)
	if refused == nil {
		refused = checkAll(r, "after")
	}
	if refused != nil {
		s.refuse(w, refused)
		return
	}
	page, err := engine.Threads(r.Context(), ThreadsQuery{Limit: limit, After: r.URL.Query().Get("after")})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	page.Threads = list(page.Threads)
	s.answer(w, http.StatusOK, page)
}

func (s *Server) thread(w http.ResponseWriter, r *http.Request, engine Engine) {
	limit, refused := number(r, "limit", 200, 1000)
	if refused == nil {
		refused = checkAll(r, "before")
	}
	if refused != nil {
		s.refuse(w, refused)
		return
	}
	h, err := engine.Thread(r.Context(), r.PathValue("id"), MessagesQuery{Limit: limit, Before: r.URL.Query().Get("before")})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	h.Messages, h.Interrupts = list(h.Messages), list(h.Interrupts)
	s.answer(w, http.StatusOK, h)
}

// cancel ends a run. Its body may name which: {"runId":"r-1"}.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request, engine Engine) {
	runID, refused := s.which(w, r)
	if refused != nil {
		s.refuse(w, refused)
		return
	}
	if err := engine.Cancel(r.Context(), r.PathValue("id"), runID); err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, http.StatusAccepted, map[string]string{"status": "cancelling"})
}

// which reads the run that is to be cancelled; a request without a body names none.
func (s *Server) which(w http.ResponseWriter, r *http.Request) (string, *refusal) {
	refused := checkAll(r)
	if refused != nil || r.ContentLength == 0 {
		return "", refused
	}
	text, refused := s.body(w, r)
	if refused != nil {
		return "", refused
	}
	var which struct {
		RunID string `json:"runId"`
	}
	if json.Unmarshal(text, &which) != nil {
		return "", invalid("runId", "something else", `a body of {"runId":"..."}, or none`)
	}
	return which.RunID, checkID("runId", which.RunID)
}

func (s *Server) capabilities(w http.ResponseWriter, r *http.Request, engine Engine) {
	c, err := engine.Capabilities(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	c.Transport = &Transport{Streaming: true}
	s.answer(w, http.StatusOK, c)
}

// number reads a parameter from 1 to most.
func number(r *http.Request, name string, otherwise, most int) (int, *refusal) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, invalid(name, "another value", fmt.Sprintf("a number from 1 to %d", most))
	}
	return n, nil
}

// list is never null on the wire.
func list[T any](l []T) []T { return append([]T{}, l...) }

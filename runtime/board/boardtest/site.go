package boardtest

import (
	"net/http"
	"testing"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerrest"
	"github.com/hutch-run/hutch/runtime/board"
)

// AgentScopes are all that a module can be granted, but for those that are about others:
// tasks:assign and tasks:force.
func AgentScopes() []string {
	return []string{
		tracker.TasksRead, tracker.TasksWrite, tracker.TasksTake, tracker.StepsRead, tracker.StepsWrite, tracker.MessagesRead,
		tracker.MessagesWrite, tracker.ProjectsRead, tracker.MembersRead, tracker.MembersSelf, tracker.FilesRead, tracker.FilesWrite,
	}
}

// A Site is a board in memory with the project "test", whose tasks are TE-1 and so on, the
// chat "general", the human "ann", and the agents "coder" and "other".
type Site struct {
	// Ann may do everything.
	Ann tracker.Service

	tb    testing.TB
	board *board.Board
}

// NewSite makes a site.
func NewSite(tb testing.TB) *Site {
	tb.Helper()
	s := &Site{tb: tb, board: board.New(&Memory{}, board.Options{})}
	for slug, kind := range map[string]tracker.Kind{"ann": tracker.Human, "coder": tracker.Agent, "other": tracker.Agent} {
		if _, err := s.board.Ensure(tb.Context(), tracker.CreateMember{Slug: slug, Kind: kind}); err != nil {
			tb.Fatal(err)
		}
	}
	s.Ann = s.board.For(tracker.Caller{Slug: "ann", Scopes: append(AgentScopes(), tracker.Admin, tracker.TasksAssign, tracker.TasksForce)})
	if _, err := s.Ann.CreateProject(tb.Context(), tracker.CreateProject{Slug: "test", Key: "TE", Name: "Test"}); err != nil {
		tb.Fatal(err)
	}
	if _, err := s.Ann.CreateChat(tb.Context(), tracker.CreateChat{Slug: "general"}); err != nil {
		tb.Fatal(err)
	}
	return s
}

// For is the board for an agent that has [AgentScopes] and more.
func (s *Site) For(slug string, more ...string) tracker.Service {
	return s.board.For(tracker.Caller{Slug: slug, Scopes: append(AgentScopes(), more...)})
}

// As serves the routes of [Site.For], without a prefix.
func (s *Site) As(slug string, more ...string) http.Handler {
	s.tb.Helper()
	service := s.For(slug, more...)
	server, err := trackerrest.New(func(*http.Request) (tracker.Service, error) { return service, nil }, trackerrest.Options{Base: "/"})
	if err != nil {
		s.tb.Fatal(err)
	}
	return server
}

package sdk

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hutch-run/hutch/protocol/tool"
)

// Requests are the capabilities that a module asks for, in the terms of a policy
// file. Asking gives nothing: an operator reads the reasons and grants, all of it,
// less, or nothing. What is not asked for cannot be granted.
type Requests struct {
	// HTTP is for package fetch.
	HTTP []HTTP `json:"http,omitempty"`
	// Secrets are put into requests by the host; the module never sees one.
	Secrets []Secret `json:"secrets,omitempty"`
	// KV is for package kv; nil asks for no storage.
	KV *KV `json:"kv,omitempty"`
	// Tracker is for package tracker.
	Tracker []Scope `json:"tracker,omitempty"`
}

// HTTP asks for requests to one host. Reason must be there.
//
// Without Host it asks for whatever hosts an operator grants, public or not, on any
// port: for a tool whose caller says where to go. Only Methods, MaxRequest,
// MaxResponse and Reason may be there then, and no Methods are all that are granted.
type HTTP struct {
	// Scheme is https if it is empty, or http.
	Scheme string `json:"scheme,omitempty"`
	// Host is one host, "*.example.org" for one label before it, or "*" for every
	// public address. One that is not public needs more than to be asked for: the
	// operator allows its address besides. For localhost and for an address hutch tools
	// grant MODULE --http HOST does that, for another name allow_private in the policy.
	Host string `json:"host,omitempty"`
	// Methods are GET and HEAD if there are none.
	Methods []string `json:"methods,omitempty"`
	// Paths are prefixes, such as /v1/ for all below it; none are all paths.
	Paths []string `json:"paths,omitempty"`
	// Ports is the one of the scheme if there are none.
	Ports []int `json:"ports,omitempty"`
	// MaxRequest and MaxResponse bound bodies, such as 64KiB or 4MiB; empty is the
	// host's own bound.
	MaxRequest  string `json:"max_request,omitempty"`
	MaxResponse string `json:"max_response,omitempty"`
	// Rate is such as 60/min; empty is none.
	Rate string `json:"rate,omitempty"`
	// Reason is why, in a sentence for the operator who decides.
	Reason string `json:"reason"`
}

// Secret asks the host to put a secret into the requests to Host, which HTTP has to
// ask for besides. One of Header and Query must be there, and not both.
type Secret struct {
	// Name is how the operator stores it, such as github_token.
	Name string `json:"name"`
	// Header is where it goes, such as Authorization, with Prefix, such as
	// "Bearer ", before it.
	Header string `json:"header,omitempty"`
	// Query is the parameter where it goes.
	Query  string `json:"query,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	// Host and Paths are as in [HTTP], but Host is never "*".
	Host   string   `json:"host"`
	Paths  []string `json:"paths,omitempty"`
	Reason string   `json:"reason"`
}

// KV asks for a little storage that is the module's own.
type KV struct {
	// Max bounds what is kept, such as 1MiB; empty is the host's own bound.
	Max string `json:"max,omitempty"`
	// TTL is the longest that a value is kept, such as 720h; empty is for ever.
	TTL    string `json:"ttl,omitempty"`
	Reason string `json:"reason"`
}

// Scope asks for what tools may do in the tracker.
type Scope struct {
	// Name is such as tasks:read, or tasks:read@team-board for one project.
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// none reports whether nothing is asked for.
func (r Requests) none() bool {
	return len(r.HTTP) == 0 && len(r.Secrets) == 0 && r.KV == nil && len(r.Tracker) == 0
}

// encoded returns r as a description has it: nil for none.
func (r Requests) encoded() (tool.Requests, error) {
	if r.none() {
		return nil, nil
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("requests: %w", err)
	}
	text, err := encode(r)
	if err != nil {
		return nil, err
	}
	var out tool.Requests
	err = json.Unmarshal(text, &out)
	return out, err
}

// check finds what an author forgets. Whether each value makes sense is said by the
// host, which parses them as a policy.
func (r Requests) check() error {
	for i, h := range r.HTTP {
		if err := h.check(); err != nil {
			return fmt.Errorf("http[%d]: %w", i, err)
		}
	}
	for i, s := range r.Secrets {
		if err := s.check(); err != nil {
			return fmt.Errorf("secrets[%d]: %w", i, err)
		}
	}
	for i, s := range r.Tracker {
		if err := s.check(); err != nil {
			return fmt.Errorf("tracker[%d]: %w", i, err)
		}
	}
	if r.KV != nil {
		if err := checkReason(r.KV.Reason); err != nil {
			return fmt.Errorf("kv: %w", err)
		}
	}
	return nil
}

func (h HTTP) check() error {
	if h.Host == "" && (h.Scheme != "" || h.Paths != nil || h.Ports != nil || h.Rate != "") {
		return errors.New("no host; name one, or leave scheme, paths, ports and rate out as well to ask for whatever is granted")
	}
	return checkReason(h.Reason)
}

func (s Secret) check() error {
	switch {
	case s.Name == "":
		return errors.New("no name")
	case (s.Header == "") == (s.Query == ""):
		return errors.New("must have one of header and query")
	case s.Host == "*":
		return errors.New(`host is "*"; a secret goes to one host`)
	}
	if s.Host == "" {
		return errors.New("no host; name one")
	}
	return checkReason(s.Reason)
}

func (s Scope) check() error {
	if s.Name == "" {
		return errors.New("no name; name a scope, such as tasks:read")
	}
	return checkReason(s.Reason)
}

func checkReason(reason string) error {
	const longest = 300
	if reason == "" || len(reason) > longest {
		return fmt.Errorf("reason has %d bytes, must have 1 to %d: an operator decides by it", len(reason), longest)
	}
	return nil
}

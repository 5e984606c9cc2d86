// Package capability decides which tool may do what for whom: requests,
// grants, decisions.
//
// A module requests, an operator grants in a policy file, and what a call gets
// is what was requested and granted, narrowed by what the policy says about the
// tool. A grant counts only for the bytes and definitions that it was decided
// for. [Parse] reads a policy, [ParseRequests] what a module asks for; a [Book]
// holds what is in force and answers every question from it.
//
// All types are immutable values once they are made, but for Book: its methods
// may be called from any goroutine, and each answers from one policy, whole.
package capability

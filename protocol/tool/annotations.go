package tool

// Pure returns a with what it leaves unsaid filled in for a tool of a module
// that requests nothing: it cannot change anything or reach anyone, so it is
// read-only, not destructive, idempotent, and its world is closed. Hosts that
// are told nothing take a tool for one that writes. A nil a says nothing; what
// is said stays, and a itself is not changed.
//
// Whoever knows a module's requests calls it before publishing: a [Spec] alone
// does not tell.
func (a *Annotations) Pure() *Annotations {
	var out Annotations
	if a != nil {
		out = *a
	}
	yes, no := true, false
	fill := func(hint **bool, value *bool) {
		if *hint == nil {
			*hint = value
		}
	}
	fill(&out.ReadOnlyHint, &yes)
	fill(&out.DestructiveHint, &no)
	fill(&out.IdempotentHint, &yes)
	fill(&out.OpenWorldHint, &no)
	return &out
}

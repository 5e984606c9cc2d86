// Package script plays a model: what a file says, or an echo. It works offline.
//
// [Model] and [Echo] have the method of every model, Stream, and keep to what is said of
// it in package llm; they may be used from any goroutine, and start none.
package script

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
)

// A Model does what a file says: it works offline and does the same each time. See
// [Parse].
//
// It keeps nothing from one turn to the next: each turn takes the first step that fits
// the conversation, so that it goes on after a restart and in many threads at once.
type Model struct {
	name  string
	steps []step
}

// A step is what to do when the conversation is at some point.
type step struct {
	line  int
	match match
	say   template // nil says nothing
	calls []toolCall
	ask   bool // calls run in the client: the step fits if it offers their tools
	delay time.Duration
	fail  *fault
	usage *chat.Usage
}

// A match is a point in a conversation; what is not set fits everything.
type match struct {
	role   chat.Role
	text   *regexp.Regexp // of what a user said last
	tool   string         // a tool that answered last
	result *regexp.Regexp // of what it answered
}

type toolCall struct {
	tool string
	// args are an object, or rawArgs is the text of the arguments, which may be wrong.
	args    value
	rawArgs template
}

type fault struct {
	as   error
	text template
}

// Stream takes the first step that fits; a delay goes on to the next.
func (s *Model) Stream(ctx context.Context, r chat.Request) iter.Seq2[chat.Delta, error] {
	return func(yield func(chat.Delta, error) bool) {
		at := pointOf(r)
		for _, st := range s.steps {
			seen, ok := st.fits(at)
			switch {
			case !ok:
			case st.delay > 0:
				if err := sleep(ctx, st.delay); err != nil {
					yield(chat.Delta{}, err)
					return
				}
			default:
				s.play(ctx, st, seen, yield)
				return
			}
		}
		yield(chat.Delta{}, fmt.Errorf("%w: %s: no step fits: last in the conversation is a message of role %q", chat.ErrRefused, s.name, at.role))
	}
}

// play does what a step says.
func (s *Model) play(ctx context.Context, st step, seen sight, yield func(chat.Delta, error) bool) {
	wrong := func(err error) {
		yield(chat.Delta{}, fmt.Errorf("%w: %s:%d: %w", chat.ErrRefused, s.name, st.line, err))
	}
	text, err := st.say.text(seen)
	if err != nil {
		wrong(err)
		return
	}
	calls, err := st.made(seen)
	if err != nil {
		wrong(err)
		return
	}
	if !say(ctx, text, yield) {
		return
	}
	if st.fail != nil {
		yield(chat.Delta{}, st.fail.error(seen))
		return
	}
	for _, c := range calls {
		if !yield(chat.Delta{Call: &c}, nil) {
			return
		}
	}
	last := chat.Delta{Stop: chat.StopEnd}
	if len(calls) > 0 {
		last.Stop = chat.StopCalls
	}
	if st.usage != nil {
		usage := *st.usage
		last.Usage = &usage
	}
	yield(last, nil)
}

// made are the calls of a step, with arguments filled in and ids that no call in the
// conversation has: they count on from the last.
func (st step) made(seen sight) (all []chat.CallDelta, err error) {
	n := 0
	if len(st.calls) > 0 {
		n = seen.lastCall()
	}
	for i, c := range st.calls {
		arguments, err := c.rawArgs.text(seen)
		if c.rawArgs == nil && err == nil {
			var b []byte
			b, err = c.args.appendTo(nil, seen)
			arguments = string(b)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.tool, err)
		}
		n++
		all = append(all, chat.CallDelta{Index: i, ID: callPrefix + strconv.Itoa(n), Name: c.tool, Arguments: arguments})
	}
	return all, nil
}

const callPrefix = "call_"

func (f *fault) error(seen sight) error {
	text, err := f.text.text(seen)
	if err != nil {
		text = err.Error()
	}
	return fmt.Errorf("%w: %s", f.as, strings.Join(strings.Fields(text), " "))
}

// A point is where a conversation is: what steps are matched with.
type point struct {
	r       chat.Request
	role    chat.Role // of the last message that is no thought
	said    string    // by a user, last
	answers []answered
}

// answered is what a tool answered.
type answered struct{ tool, text string }

func pointOf(r chat.Request) point {
	at := point{r: r}
	if i := lastOf(r.Messages, chat.User); i >= 0 {
		at.said = r.Messages[i].Content.String()
	}
	end := len(r.Messages)
	for end > 0 && r.Messages[end-1].Role == chat.Reasoning {
		end--
	}
	if end > 0 {
		at.role = r.Messages[end-1].Role
	}
	begin := end
	for begin > 0 && r.Messages[begin-1].Role == chat.Tool {
		begin--
	}
	for _, m := range r.Messages[begin:end] {
		at.answers = append(at.answers, answered{toolOf(r.Messages[:begin], m.ToolCallID), resultOf(m)})
	}
	return at
}

func resultOf(m chat.Message) string {
	if m.Content.IsZero() {
		return m.Error
	}
	return m.Content.String()
}

// toolOf is the tool that a call is of, as the messages before its answer say.
func toolOf(messages []chat.Message, id string) string {
	for _, m := range slices.Backward(messages) {
		for _, c := range m.ToolCalls {
			if c.ID == id {
				return c.Function.Name
			}
		}
	}
	return ""
}

// fits reports whether a step is for this point, and what it sees there.
func (st step) fits(at point) (sight, bool) {
	m, seen := st.match, sight{point: at}
	if m.role != "" && m.role != at.role || st.ask && !at.offers(st.calls) {
		return seen, false
	}
	if m.text != nil && !seen.capture(m.text, at.said, true) {
		return seen, false
	}
	if m.tool == "" && m.result == nil {
		if len(at.answers) > 0 {
			seen.answer = &at.answers[0]
		}
		return seen, true
	}
	for i, a := range at.answers {
		if (m.tool == "" || m.tool == a.tool) && (m.result == nil || seen.capture(m.result, a.text, m.text == nil)) {
			seen.answer = &at.answers[i]
			return seen, true
		}
	}
	return seen, false
}

// offers reports whether the client has every tool that is called.
func (at point) offers(calls []toolCall) bool {
	return !slices.ContainsFunc(calls, func(c toolCall) bool {
		return !slices.ContainsFunc(at.r.Tools, func(f chat.Function) bool { return f.Name == c.tool })
	})
}

// A sight is what templates can speak of at a point.
type sight struct {
	point
	answer   *answered         // nil if no tool answered last
	captured map[string]string // by number or name
}

// capture reports whether text fits re, and keeps what its groups hold; those without a
// name only if they count.
func (s *sight) capture(re *regexp.Regexp, text string, numbers bool) bool {
	groups := re.FindStringSubmatch(text)
	if groups == nil {
		return false
	}
	if s.captured == nil {
		s.captured = map[string]string{}
	}
	for i, name := range re.SubexpNames() {
		if numbers {
			s.captured[strconv.Itoa(i)] = groups[i]
		}
		if name != "" {
			s.captured[name] = groups[i]
		}
	}
	return true
}

// lastCall is the highest number that a call of ours has.
func (s sight) lastCall() (n int) {
	for _, m := range s.r.Messages {
		for _, c := range m.ToolCalls {
			if rest, ok := strings.CutPrefix(c.ID, callPrefix); ok {
				if i, err := strconv.Atoi(rest); err == nil && i < 1<<30 {
					n = max(n, i)
				}
			}
		}
	}
	return n
}

// lastAnswer is what a tool answered last in the whole conversation.
func (s sight) lastAnswer(tool string) (string, bool) {
	for i, m := range slices.Backward(s.r.Messages) {
		if m.Role == chat.Tool && toolOf(s.r.Messages[:i], m.ToolCallID) == tool {
			return resultOf(m), true
		}
	}
	return "", false
}

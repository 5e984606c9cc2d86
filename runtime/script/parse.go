package script

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/strictyaml"
)

// maxDelay is the longest that a step may wait.
const maxDelay = 10 * time.Minute

// Parse reads a script: a list of steps in YAML or JSON. Errors begin with name,
// line and key; [strictyaml.Findings] tells them apart.
//
//	# What a step fits: all that is given must be so.
//	- match: {role: user, text: 'count (?P<what>.+)'}
//	  # One of call, ask, fail and delay; say stands alone or before it.
//	  call: {tool: word_count, args: {text: "${what}", lower: true}}
//	- match: {tool: word_count, result: words}
//	  say: "These are ${result.words} words."
//	- match: {text: both}
//	  call: [{tool: now}, {tool: roll, args: {sides: 6}}]
//	- match: {text: sure}
//	  ask: {tool: confirm, args: {question: "${text}"}}
//	- match: {text: slow}
//	  delay: 2s
//	- match: {text: broken}
//	  say: "I begin, "
//	  fail: {as: cut, text: the line went dead}
//	- say: "I do not know what to do."
//	  usage: {input: 12, output: 8}
//
// match has the role of the last message, expressions (RE2) for what a user said last
// and for the result that a tool has just given, and that tool's name. The role is user
// if there is a text alone, and tool if there is a tool or a result. A step without
// match fits always, so only a delay may stand before others.
//
// ask is a call of a tool that runs in the client; its step fits if the client offers
// the tool. fail has a text, or as, one of unavailable, refused, overflow, timeout,
// limit, cut and malformed, with a text. After a delay, the steps below are looked at.
//
// In say, fail and args, ${text} is what the user said last, ${1} and ${name} what the
// expressions' groups hold (numbers count those of text, or of result if there is no
// text), ${result} what the tool answered, and ${results.TOOL} what that tool answered
// last. ${result.tasks.0.id} is a part of its JSON; as a whole value it keeps its type,
// and ${1|json} reads a text as JSON. $${ stands for the two signs themselves. args may be
// a text instead, which goes out as it is.
func Parse(name string, body []byte) (*Model, error) {
	root, err := strictyaml.Parse(name, body)
	if err != nil {
		return nil, err
	}
	steps, err := root.Items()
	if err != nil {
		return nil, err
	}
	s := &Model{name: name}
	var wrong []error
	for _, n := range steps {
		st, err := parseStep(n)
		if wrong = append(wrong, err); err != nil {
			continue
		}
		if last := len(s.steps) - 1; last >= 0 && s.steps[last].always() {
			wrong = append(wrong, n.Errorf("never reached: the step in line %d fits always", s.steps[last].line))
			break
		}
		s.steps = append(s.steps, st)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return s, nil
}

// always reports whether no step behind st is ever looked at.
func (st step) always() bool { return st.match == (match{}) && st.delay == 0 && !st.ask }

// fieldsOf returns the values of the keys of a mapping, by their index in names.
func fieldsOf(n *strictyaml.Node, names ...string) ([]*strictyaml.Node, error) {
	values := make([]*strictyaml.Node, len(names))
	if n == nil {
		return values, nil
	}
	if n.Kind() != strictyaml.Mapping {
		return nil, n.Errorf("keys and values are wanted here; there are %s", strings.Join(names, ", "))
	}
	err := n.Each(names, func(i int, v *strictyaml.Node) error { values[i] = v; return nil })
	return values, err
}

func parseStep(n *strictyaml.Node) (st step, err error) {
	st.line = n.Line()
	f, err := fieldsOf(n, "match", "say", "call", "ask", "delay", "fail", "usage")
	if err != nil {
		return st, err
	}
	say, call, ask, delay, fail, usage := f[1], f[2], f[3], f[4], f[5], f[6]
	if err := onlyOne(n, say, call, ask, delay, fail, usage); err != nil {
		return st, err
	}
	var names []string
	var wrong [6]error
	if st.match, names, wrong[0] = parseMatch(f[0]); wrong[0] != nil {
		return st, wrong[0] // the names in the rest are not known
	}
	st.ask = ask != nil
	st.say, wrong[1] = parseText(say, names)
	st.calls, wrong[2] = parseCalls(cmp.Or(call, ask), names)
	st.delay, wrong[3] = parseDelay(delay)
	st.fail, wrong[4] = parseFail(fail, names)
	st.usage, wrong[5] = parseUsage(usage)
	return st, errors.Join(wrong[:]...)
}

// onlyOne holds a step to one thing to do.
func onlyOne(n, say, call, ask, delay, fail, usage *strictyaml.Node) error {
	does := 0
	for _, f := range []*strictyaml.Node{call, ask, delay, fail} {
		if f != nil {
			does++
		}
	}
	switch {
	case does == 0 && say == nil:
		return n.Errorf("does nothing: one of say, call, ask, delay, fail is wanted")
	case does > 1:
		return n.Errorf("does several things: one of call, ask, delay, fail is wanted")
	case delay != nil && (say != nil || usage != nil):
		return n.Errorf("a delay stands alone: what comes after it is a step of its own")
	case fail != nil && usage != nil:
		return n.Errorf("a turn that fails has no usage: leave it away")
	}
	return nil
}

// roles are those that can be last in a conversation when a model is asked.
func roles() []chat.Role {
	return []chat.Role{chat.User, chat.Tool, chat.Assistant, chat.Developer, chat.System}
}

// parseMatch returns also the names of the groups.
func parseMatch(n *strictyaml.Node) (m match, names []string, err error) {
	f, err := fieldsOf(n, "role", "text", "tool", "result")
	if err != nil || n == nil {
		return m, nil, err
	}
	var wrong [4]error
	m.role, wrong[0] = parseRole(f[0])
	m.text, wrong[1] = parseExpression(f[1])
	m.tool, wrong[2] = parseName(f[2])
	m.result, wrong[3] = parseExpression(f[3])
	if err := errors.Join(wrong[:]...); err != nil {
		return m, nil, err
	}
	answers := m.tool != "" || m.result != nil
	switch {
	case m.role == "" && answers:
		m.role = chat.Tool
	case m.role == "" && m.text != nil:
		m.role = chat.User
	case m.role == "":
		return m, nil, n.Errorf("matches nothing in particular: leave it away, or give role, text, tool or result")
	case answers && m.role != chat.Tool:
		return m, nil, n.Errorf("can never match: role is %q, and tool and result are of role tool", m.role)
	}
	names, err = groups(n, m)
	return m, names, err
}

// groups are what templates may call the groups of the two expressions.
func groups(n *strictyaml.Node, m match) (names []string, err error) {
	for i, re := range []*regexp.Regexp{m.text, m.result} {
		if re == nil {
			continue
		}
		for g, name := range re.SubexpNames() {
			if i == 0 || m.text == nil {
				names = append(names, strconv.Itoa(g))
			}
			switch {
			case name == "":
			case slices.Contains([]string{refText, refResult, refResults}, name), slices.Contains(names, name):
				return nil, n.Errorf("group %q: the name is taken", name)
			default:
				names = append(names, name)
			}
		}
	}
	return names, nil
}

func parseRole(n *strictyaml.Node) (chat.Role, error) {
	text, err := parseName(n)
	if err != nil || n == nil {
		return "", err
	}
	if !slices.Contains(roles(), chat.Role(text)) {
		return "", n.Errorf("no such role; there are %v", roles())
	}
	return chat.Role(text), nil
}

func parseExpression(n *strictyaml.Node) (*regexp.Regexp, error) {
	text, err := parseName(n)
	if err != nil || n == nil {
		return nil, err
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, n.Errorf("no expression: %w", err)
	}
	return re, nil
}

// parseName returns a plain value that is not empty; of no node, nothing.
func parseName(n *strictyaml.Node) (string, error) {
	if n == nil {
		return "", nil
	}
	return n.Text()
}

// parseText returns a text of one line or several, which may be empty; of no node, nil.
func parseText(n *strictyaml.Node, names []string) (template, error) {
	if n == nil {
		return nil, nil
	}
	if n.Kind() != strictyaml.Plain && n.Kind() != strictyaml.Block {
		return nil, n.Errorf(`a text is wanted here, "" if it is empty`)
	}
	t, err := parseTemplate(n.Raw(), names)
	if err != nil {
		return nil, n.Errorf("%w", err)
	}
	return t, nil
}

// maxCalls is how many calls one step may make.
const maxCalls = 64

func parseCalls(n *strictyaml.Node, names []string) (all []toolCall, err error) {
	if n == nil {
		return nil, nil
	}
	items := []*strictyaml.Node{n}
	if n.IsList() {
		if items, err = n.Items(); err != nil {
			return nil, err
		}
	}
	if len(items) > maxCalls {
		return nil, n.Errorf("%d calls: at most %d", len(items), maxCalls)
	}
	var wrong []error
	for _, item := range items {
		c, err := parseCall(item, names)
		all, wrong = append(all, c), append(wrong, err)
	}
	return all, errors.Join(wrong...)
}

func parseCall(n *strictyaml.Node, names []string) (c toolCall, err error) {
	f, err := fieldsOf(n, "tool", "args")
	if err != nil {
		return c, err
	}
	if f[0] == nil {
		return c, n.Errorf("names no tool")
	}
	if c.tool, err = f[0].Text(); err != nil {
		return c, err
	}
	c.args = value{kind: '{'}
	switch args := f[1]; {
	case args == nil:
	case args.Kind() == strictyaml.Mapping:
		c.args, err = parseValue(args, names)
	case args.Kind() == strictyaml.List || args.IsBare() || args.Kind() == strictyaml.Nothing:
		err = args.Errorf("keys and values are wanted here, or a text that goes out as it is")
	default:
		c.rawArgs, err = parseText(args, names)
	}
	return c, err
}

// parseValue turns YAML into JSON with templates for its texts.
func parseValue(n *strictyaml.Node, names []string) (v value, err error) {
	var wrong []error
	switch n.Kind() {
	case strictyaml.Nothing:
		return value{kind: 'l', literal: json.RawMessage("null")}, nil
	case strictyaml.List:
		v.kind = '['
		for _, item := range n.All() {
			inner, err := parseValue(item, names)
			v.items, wrong = append(v.items, inner), append(wrong, err)
		}
	case strictyaml.Mapping:
		v.kind = '{'
		for i, f := range n.Fields() {
			if slices.ContainsFunc(n.Fields()[:i], func(g strictyaml.Field) bool { return g.Name == f.Name }) {
				return v, f.Value.Errorf("stands there twice")
			}
			inner, err := parseValue(f.Value, names)
			v.fields, wrong = append(v.fields, valueField{f.Name, inner}), append(wrong, err)
		}
	default:
		if !n.IsBare() {
			v.kind = 't'
			v.text, err = parseText(n, names)
			return v, err
		}
		if !isScalar(n.Raw()) {
			return v, n.Errorf("%.40q is no number of JSON: put it in quotes if it is a text", n.Raw())
		}
		return value{kind: 'l', literal: json.RawMessage(n.Raw())}, nil
	}
	return v, errors.Join(wrong...)
}

func parseDelay(n *strictyaml.Node) (time.Duration, error) {
	text, err := parseName(n)
	if err != nil || n == nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxDelay {
		return 0, n.Errorf("a time such as 500ms or 2s is wanted here, at most %v", maxDelay)
	}
	return d, nil
}

// faults are what a step can fail as; the first is the default.
func faults() ([]string, []error) {
	return []string{"unavailable", "refused", "overflow", "timeout", "limit", "cut", "malformed"},
		[]error{chat.ErrUnavailable, chat.ErrRefused, &chat.OverflowError{Which: chat.OverflowContext}, chat.ErrTimeout, chat.ErrLimit, chat.ErrCut, chat.ErrMalformed}
}

func parseFail(n *strictyaml.Node, names []string) (*fault, error) {
	if n == nil {
		return nil, nil
	}
	words, errs := faults()
	fault, text := &fault{as: errs[0]}, n
	if n.Kind() == strictyaml.Mapping {
		f, err := fieldsOf(n, "as", "text")
		if err != nil {
			return nil, err
		}
		if f[0] != nil {
			i := slices.Index(words, f[0].Raw())
			if i < 0 {
				return nil, f[0].Errorf("no such fault; there are %s", strings.Join(words, ", "))
			}
			fault.as = errs[i]
		}
		if text = f[1]; text == nil {
			return nil, n.Errorf("says nothing: a text is wanted")
		}
	}
	var err error
	fault.text, err = parseText(text, names)
	return fault, err
}

func parseUsage(n *strictyaml.Node) (*chat.Usage, error) {
	if n == nil {
		return nil, nil
	}
	f, err := fieldsOf(n, "input", "output")
	if err != nil {
		return nil, err
	}
	u := &chat.Usage{Provider: "script", Model: "script"}
	var wrong [2]error
	u.InputTokens, wrong[0] = parseCount(f[0])
	u.OutputTokens, wrong[1] = parseCount(f[1])
	u.TotalTokens = u.InputTokens + u.OutputTokens
	return u, errors.Join(wrong[:]...)
}

func parseCount(n *strictyaml.Node) (int64, error) {
	text, err := parseName(n)
	if err != nil || n == nil {
		return 0, err
	}
	count, err := strconv.ParseInt(text, 10, 32)
	if err != nil || count < 0 {
		return 0, n.Errorf("a number of tokens is wanted here")
	}
	return count, nil
}

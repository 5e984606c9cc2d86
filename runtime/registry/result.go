package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect"
)

// result turns what a guest wrote into what the caller gets.
func (r *Registry) result(l *listed, raw []byte) (tool.Result, error) {
	fail := func(kind error, limit abi.LimitName, text string) (tool.Result, error) {
		return tool.Result{}, &callError{kind: kind, limit: limit, text: fmt.Sprintf(
			"tool %q answered what it may not: %s", l.name, abi.OneLine(text, maxFailureText))}
	}
	if n, most := len(raw), l.mount.limits.OutputBytes; n > most {
		return fail(tool.ErrLimit, abi.LimitOutput, fmt.Sprintf("%d bytes, at most %d (%s): ask for less",
			n, most, abi.LimitOutput.Key()))
	}
	raw, _ = r.o.Redactor.JSON(raw)
	res, err := dialect.ParseResult(l.mount.def.kind, raw)
	if err != nil {
		return fail(tool.ErrFailed, "", err.Error())
	}
	if err := r.structure(l.bound, &res); err != nil {
		return fail(tool.ErrFailed, "", err.Error())
	}
	if res.Content == nil {
		res.Content = []tool.Content{} // [] on every wire, never null
	}
	return res, nil
}

// structure checks the structured part and puts it where hosts look for it:
// they read either it or the text, and none of it beside an error.
func (r *Registry) structure(b *boundTool, res *tool.Result) error {
	structured := rawOrNil(res.Structured)
	res.Structured = nil
	if structured == nil {
		if b.output != nil && !res.IsError {
			return errNoStructure
		}
		return nil
	}
	if b.output != nil && !res.IsError {
		misfits, err := b.output.Check(structured, &r.hot)
		if err != nil {
			return fmt.Errorf("structuredContent: %w", err)
		}
		if misfits != "" {
			return fmt.Errorf("structuredContent: %s", misfits)
		}
	}
	isText := func(c tool.Content) bool { return c.Type == "text" }
	if !slices.ContainsFunc(res.Content, isText) {
		var text bytes.Buffer
		if err := json.Compact(&text, structured); err != nil {
			return fmt.Errorf("structuredContent: %w", err)
		}
		res.Content = append(res.Content, tool.Content{Type: "text", Text: text.String()})
	}
	plain := bytes.TrimSpace(structured)
	if (bytes.HasPrefix(plain, []byte("{")) || bytes.HasPrefix(plain, []byte("["))) && !res.IsError {
		res.Structured = structured // the wires have no place for single values
	}
	return nil
}

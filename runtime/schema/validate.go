package schema

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validate holds a value, which rawjson.Check has passed, against the schema. The
// problems are what does not fit; none means it does. The error says that it
// could not be found out.
func (c *compiled) validate(raw json.RawMessage) (found []problem, err error) {
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	steps := int64(baseSteps + stepsPerNode*nodes(v) + len(raw)/2)
	c.mu.Lock()
	defer c.mu.Unlock()
	fits, err := c.run(steps, func() bool { return c.inverse.Validate(v) != nil })
	if fits || err != nil {
		return nil, err
	}
	var refusal error
	if _, err := c.run(maxExplainSteps, func() bool { refusal = c.full.Validate(v); return false }); errors.Is(err, errTooMuch) {
		return []problem{{text: "does not fit the schema, and is too large to say where"}}, nil
	} else if err != nil {
		return nil, err
	}
	var detail *jsonschema.ValidationError
	if !errors.As(refusal, &detail) {
		return nil, fmt.Errorf("schema and its opposite both refuse the value")
	}
	e := explainer{value: v, schema: c.full}
	return e.explain(detail), nil
}

// run does one validation within so many steps. The library panics on some
// schemas; what it was given comes from strangers.
func (c *compiled) run(steps int64, check func() bool) (ok bool, err error) {
	defer func() {
		c.meter.stop()
		switch p := recover(); {
		case p == nil:
		case p == any(errTooMuch):
			ok, err = false, errTooMuch
		default:
			ok, err = false, fmt.Errorf("the schema cannot be checked: %.100s", fmt.Sprint(p))
		}
	}()
	c.meter.start(steps)
	return check(), nil
}

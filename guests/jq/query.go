package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/hutch-run/hutch/guests/sdk"
)

var query = sdk.Define(sdk.Spec{
	Name:  "jq",
	Title: "jq",
	Description: "Runs a jq program on JSON and returns the list of its results. Use it to pick, filter, reshape, count or sum parts of " +
		"JSON that is too big or too exact to read yourself. The input is JSON text in json (several values: the program runs " +
		"on each) or an object in value; without either it is null. The dialect is gojq: jq 1.7 without input files, modules " +
		"and SQL. Large integers stay exact. An endless program ends with the call's time limit.",
}, run)

type queryInput struct {
	Program string         `json:"program" doc:"Such as: .items[] | select(.price > 10) | .name" min:"1" max:"20000"`
	JSON    string         `json:"json,omitempty" doc:"The input as JSON text."`
	Value   map[string]any `json:"value,omitempty" doc:"The input as an object, instead of json."`
	Limit   int            `json:"limit" doc:"The most results to return." default:"100" min:"1" max:"10000"`
}

type queryOutput struct {
	Results   []json.RawMessage `json:"results" doc:"What the program gave, in order."`
	Truncated bool              `json:"truncated" doc:"Whether there were more than limit."`
}

// Text is one result a line, as jq -c prints them.
func (o queryOutput) Text() string {
	var b strings.Builder
	for _, r := range o.Results {
		b.Write(r)
		b.WriteByte('\n')
	}
	return b.String()
}

func run(_ *sdk.Call, in queryInput) (queryOutput, error) {
	inputs, err := inputsOf(in)
	if err != nil {
		return queryOutput{}, err
	}
	program, err := gojq.Parse(in.Program)
	if err != nil {
		return queryOutput{}, fmt.Errorf("program: %w", err)
	}
	code, err := gojq.Compile(program)
	if err != nil {
		return queryOutput{}, fmt.Errorf("program: %w", err)
	}
	var out queryOutput
	for _, input := range inputs {
		if err := out.collect(code.Run(input), in.Limit); err != nil || out.Truncated {
			return out, err
		}
	}
	return out, nil
}

// collect takes results until there are none, or one too many.
func (o *queryOutput) collect(results gojq.Iter, limit int) error {
	for {
		v, ok := results.Next()
		if !ok {
			return nil
		}
		if err, ok := v.(error); ok {
			return halted(err, len(o.Results))
		}
		if len(o.Results) == limit {
			o.Truncated = true
			return nil
		}
		text, err := gojq.Marshal(v)
		if err != nil {
			return err
		}
		o.Results = append(o.Results, text)
	}
}

// halted tells the end that a program asked for from a failure.
func halted(err error, results int) error {
	halt := new(gojq.HaltError)
	if errors.As(err, &halt) && halt.Value() == nil {
		return nil
	}
	return fmt.Errorf("after %d results: %w", results, err)
}

// inputsOf returns what the program runs on, numbers as they are written.
func inputsOf(in queryInput) ([]any, error) {
	switch {
	case in.JSON != "" && in.Value != nil:
		return nil, errors.New("both json and value are given: leave one out")
	case in.Value != nil:
		return []any{in.Value}, nil
	case in.JSON == "":
		return []any{nil}, nil
	}
	var inputs []any
	d := json.NewDecoder(strings.NewReader(in.JSON))
	d.UseNumber()
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return inputs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("json: value %d: %w", len(inputs)+1, err)
		}
		inputs = append(inputs, v)
	}
}

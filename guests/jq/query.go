package main

import (
	"encoding/json"
	"fmt"
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
	return collect(code, inputs, in.Limit)
}

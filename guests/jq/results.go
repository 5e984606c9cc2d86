package main

import (
	"errors"
	"fmt"

	"github.com/itchyny/gojq"
)

// collect runs a program on each input, until it halts or gives more than limit
// results.
func collect(code *gojq.Code, inputs []any, limit int) (out queryOutput, err error) {
	for _, input := range inputs {
		results := code.Run(input)
		for v, ok := results.Next(); ok; v, ok = results.Next() {
			if err, failed := v.(error); failed {
				return out, halted(err, len(out.Results))
			}
			if len(out.Results) == limit {
				out.Truncated = true
				return out, nil
			}
			text, err := gojq.Marshal(v)
			if err != nil {
				return out, err
			}
			out.Results = append(out.Results, text)
		}
	}
	return out, nil
}

// halted tells the end that a program asked for from a failure.
func halted(err error, results int) error {
	halt := new(gojq.HaltError)
	if errors.As(err, &halt) && halt.Value() == nil {
		return nil
	}
	return fmt.Errorf("after %d results: %w", results, err)
}

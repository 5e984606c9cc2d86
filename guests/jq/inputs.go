package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

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

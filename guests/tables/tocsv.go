package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
)

var toCSV = sdk.Define(sdk.Spec{
	Name:  "json_to_csv",
	Title: "JSON to CSV",
	Description: "Turns a JSON list of objects into CSV text with a header row. Use it to hand a table to a spreadsheet or a person. The columns " +
		"are all the keys, in the order they first appear, or those you name. Nested values become JSON text in their cell, null " +
		"and missing ones an empty cell, and numbers stay as written.",
}, jsonToCSV)

type toCSVInput struct {
	JSON      string   `json:"json" doc:"A JSON list of objects, as text."`
	Delimiter string   `json:"delimiter" enum:"comma,semicolon,tab,pipe" default:"comma"`
	Header    bool     `json:"header" doc:"Whether the first row has the names." default:"true"`
	Columns   []string `json:"columns,omitempty" doc:"The columns to write, in this order; others are left out."`
}

func jsonToCSV(_ *sdk.Call, in toCSVInput) (string, error) {
	columns, records, err := readRecords(in.JSON)
	if err != nil {
		return "", err
	}
	if in.Columns != nil {
		columns = in.Columns
	}
	var rows [][]string
	if in.Header && len(columns) > 0 {
		rows = append(rows, columns)
	}
	for _, record := range records {
		row := make([]string, len(columns))
		for i, name := range columns {
			row[i] = record[name]
		}
		rows = append(rows, row)
	}
	var b strings.Builder
	err = writeCSV(&b, rows, in.Delimiter)
	return b.String(), err
}

// readRecords returns the keys in order of appearance, and the objects as cells.
func readRecords(text string) (keys []string, records []map[string]string, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, nil, errors.New("json: this is no list; it must look like [{\"name\": \"Ada\"}, ...]")
	}
	seen := map[string]bool{}
	for d.More() {
		record, err := readRecord(d, func(key string) {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		})
		if err != nil {
			return nil, nil, fmt.Errorf("json: item %d: %w", len(records)+1, err)
		}
		records = append(records, record)
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, fmt.Errorf("json: the list does not end after item %d", len(records))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("json: there is more after the list")
	}
	return keys, records, nil
}

// readRecord reads one object, telling of its keys as they come.
func readRecord(d *json.Decoder, key func(string)) (map[string]string, error) {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("this is no object")
	}
	record := map[string]string{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		k, ok := name.(string)
		if !ok {
			return nil, fmt.Errorf("%v is no key", name)
		}
		key(k)
		if record[k], err = cellText(value); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return record, err
}

// cellText is the string itself, nothing for null, and else the JSON as it is.
func cellText(value json.RawMessage) (string, error) {
	switch value[0] {
	case 'n':
		return "", nil
	case '"':
		var s string
		err := json.Unmarshal(value, &s)
		return s, err
	}
	return string(value), nil
}

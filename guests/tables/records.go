package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// record is an object of a list, its values as cells.
type record map[string]string

// readRecords returns a list's objects and their keys in order of appearance.
func readRecords(text string) (keys []string, records []record, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, nil, errors.New("json: this is no list; it must look like [{\"name\": \"Ada\"}, ...]")
	}
	seen := map[string]bool{}
	for d.More() {
		r, names, err := readRecord(d)
		if err != nil {
			return nil, nil, fmt.Errorf("json: item %d: %w", len(records)+1, err)
		}
		records = append(records, r)
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				keys = append(keys, name)
			}
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, fmt.Errorf("json: the list does not end after item %d", len(records))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("json: there is more after the list")
	}
	return keys, records, nil
}

// readRecord reads one object and returns it with its keys in order.
func readRecord(d *json.Decoder) (r record, keys []string, err error) {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("this is no object")
	}
	r = record{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		key, _ := name.(string) // the decoder takes nothing else here
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, nil, err
		}
		if r[key], err = cellText(value); err != nil {
			return nil, nil, err
		}
		keys = append(keys, key)
	}
	_, err = d.Token()
	return r, keys, err
}

package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
)

// delimiters are the values of the arguments called delimiter.
var delimiters = map[string]rune{"comma": ',', "semicolon": ';', "tab": '\t', "pipe": '|'}

// readCSV returns the rows, all of the same length.
func readCSV(text, delimiter string) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.Comma = delimiters[delimiter]
	rows, err := r.ReadAll()
	if errors.Is(err, csv.ErrFieldCount) {
		return nil, fmt.Errorf("csv: %w: each needs %d, as many as the first; is %s the right delimiter?", err, r.FieldsPerRecord, delimiter)
	}
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	return rows, nil
}

// writeCSV returns rows as RFC 4180 writes them, with plain line feeds. A row
// that is one empty cell gets quotes: readers skip empty lines.
func writeCSV(rows [][]string, delimiter string) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma = delimiters[delimiter]
	for _, row := range rows {
		if len(row) == 1 && row[0] == "" {
			w.Flush()
			b.WriteString("\"\"\n")
		} else if err := w.Write(row); err != nil {
			return "", err
		}
	}
	w.Flush()
	return b.String(), w.Error()
}

// splitHeader returns the names of the columns and the rows below them.
func splitHeader(rows [][]string, header bool) ([]string, [][]string, error) {
	if len(rows) == 0 {
		return nil, nil, nil
	}
	if !header {
		names := make([]string, len(rows[0]))
		for i := range names {
			names[i] = fmt.Sprintf("column_%d", i+1)
		}
		return names, rows, nil
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		if before, ok := column[name]; ok {
			return nil, nil, fmt.Errorf("csv: columns %d and %d are both called %q; rename one, or set header to false", before+1, i+1, name)
		}
		column[name] = i
	}
	return rows[0], rows[1:], nil
}

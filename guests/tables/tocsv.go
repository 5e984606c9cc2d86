package main

import "github.com/hutch-run/hutch/guests/sdk"

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
	if len(in.Columns) > 0 {
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
	return writeCSV(rows, in.Delimiter)
}

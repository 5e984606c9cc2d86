package main

import (
	"encoding/json"

	"github.com/hutch-run/hutch/guests/sdk"
)

var toJSON = sdk.Define(sdk.Spec{
	Name:  "csv_to_json",
	Title: "CSV to JSON",
	Description: "Turns CSV text into JSON: a list of objects, one a row, with the columns in order as keys. Use it before working on a table " +
		"with other tools, such as jq. Every value is a string as it stands in the CSV, so that 007 stays 007; with infer, " +
		"numbers and true and false become such and empty cells null.",
}, csvToJSON)

type toJSONInput struct {
	CSV       string `json:"csv"`
	Delimiter string `json:"delimiter" enum:"comma,semicolon,tab,pipe" default:"comma"`
	Header    bool   `json:"header" doc:"Whether the first row has the names; else they are column_1 and so on." default:"true"`
	Infer     bool   `json:"infer" doc:"Whether to make numbers, booleans and nulls of what looks like them." default:"false"`
}

type toJSONOutput struct {
	Columns []string          `json:"columns"`
	Rows    []json.RawMessage `json:"rows" doc:"One object for each row."`
}

func csvToJSON(_ *sdk.Call, in toJSONInput) (toJSONOutput, error) {
	rows, err := readCSV(in.CSV, in.Delimiter)
	if err != nil {
		return toJSONOutput{}, err
	}
	columns, rows, err := splitHeader(rows, in.Header)
	out := toJSONOutput{Columns: columns}
	for _, row := range rows {
		out.Rows = append(out.Rows, rowObject(columns, row, in.Infer))
	}
	return out, err
}

package main

import (
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
)

var toMarkdown = sdk.Define(sdk.Spec{
	Name:  "csv_to_markdown",
	Title: "CSV to Markdown table",
	Description: "Turns CSV text into a Markdown table to show to a person. Use it instead of writing a long table yourself. Pipes are escaped " +
		"and line breaks inside cells become <br>.",
}, csvToMarkdown)

type toMarkdownInput struct {
	CSV       string `json:"csv"`
	Delimiter string `json:"delimiter" enum:"comma,semicolon,tab,pipe" default:"comma"`
	Header    bool   `json:"header" doc:"Whether the first row has the names; else they are column_1 and so on." default:"true"`
}

func csvToMarkdown(_ *sdk.Call, in toMarkdownInput) (string, error) {
	rows, err := readCSV(in.CSV, in.Delimiter)
	if err != nil {
		return "", err
	}
	columns, rows, err := splitHeader(rows, in.Header)
	if err != nil || len(columns) == 0 {
		return "", err
	}
	var b strings.Builder
	writeRow(&b, columns)
	b.WriteString("|" + strings.Repeat(" --- |", len(columns)) + "\n")
	for _, row := range rows {
		writeRow(&b, row)
	}
	return b.String(), nil
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\r\n", "<br>", "\n", "<br>", "\r", "<br>")

func writeRow(b *strings.Builder, cells []string) {
	b.WriteByte('|')
	for _, c := range cells {
		b.WriteString(" " + markdownEscapes.Replace(c) + " |")
	}
	b.WriteByte('\n')
}

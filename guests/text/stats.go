package main

import (
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
)

var stats = sdk.Define(sdk.Spec{
	Name:  "text_stats",
	Title: "Text statistics",
	Description: "Counts what a text has: characters as a reader sees them (an emoji is one), words, sentences, lines and bytes, " +
		"and estimates the reading time. Use it instead of counting yourself: to keep to a length, or to compare drafts. " +
		"Works for any language (Unicode segmentation); the reading time is for prose at 240 words a minute.",
}, countText)

type statsInput struct {
	Text string `json:"text" doc:"The text to count."`
}

type statsOutput struct {
	Characters     int `json:"characters" doc:"User-perceived characters, white space included."`
	Words          int `json:"words" doc:"Words and numbers; punctuation is none."`
	Sentences      int `json:"sentences"`
	Lines          int `json:"lines" doc:"A line break at the very end starts no line."`
	Bytes          int `json:"bytes" doc:"In UTF-8."`
	ReadingSeconds int `json:"reading_seconds"`
}

func countText(_ *sdk.Call, in statsInput) (statsOutput, error) {
	out := statsOutput{Bytes: len(in.Text), Lines: strings.Count(in.Text, "\n")}
	if in.Text != "" && !strings.HasSuffix(in.Text, "\n") {
		out.Lines++
	}
	out.Characters, out.Words, out.Sentences = segments(in.Text)
	const wordsPerMinute = 240
	out.ReadingSeconds = (out.Words*60 + wordsPerMinute - 1) / wordsPerMinute
	return out, nil
}

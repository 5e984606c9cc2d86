package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestTextStats(t *testing.T) {
	for text, want := range map[string]statsOutput{
		"":                        {},
		"one two three":           {Characters: 13, Words: 3, Sentences: 1, Lines: 1, Bytes: 13, ReadingSeconds: 1},
		"Hi! It's 3.5 km.\nGo?\n": {Characters: 21, Words: 5, Sentences: 3, Lines: 2, Bytes: 21, ReadingSeconds: 2},
		"👩‍👩‍👧 Grüße":             {Characters: 7, Words: 1, Sentences: 1, Lines: 1, Bytes: 26, ReadingSeconds: 1},
		"\r\n--\r\n":              {Characters: 4, Lines: 2, Bytes: 6},
		"你好,世界。":                  {Characters: 6, Words: 4, Sentences: 1, Lines: 1, Bytes: 16, ReadingSeconds: 1},
	} {
		var got statsOutput
		sdktest.Call(t, module, "text_stats", statsInput{text}).Into(t, &got)
		if got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}

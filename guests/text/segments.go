package main

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// segments counts as Unicode divides a text (UAX #29). What has nothing to read
// in it is no word and no sentence.
func segments(text string) (characters, words, sentences int) {
	var cluster string
	var inWord, inSentence bool // something to read was seen since the last boundary
	for bounds, state := 0, -1; text != ""; {
		cluster, text, bounds, state = uniseg.StepString(text, state)
		characters++
		if strings.ContainsFunc(cluster, readable) {
			inWord, inSentence = true, true
		}
		if bounds&uniseg.MaskWord != 0 && inWord {
			words++
			inWord = false
		}
		if bounds&uniseg.MaskSentence != 0 && inSentence {
			sentences++
			inSentence = false
		}
	}
	return characters, words, sentences
}

func readable(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

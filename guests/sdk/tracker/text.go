package tracker

import (
	"fmt"
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
)

// Language is what texts are written in.
type Language string

// The languages.
const (
	English Language = "en"
	Russian Language = "ru"
)

// LanguageOf is the one that the operator configured under lang; English if it is none of
// the above.
func LanguageOf(c *sdk.Call) Language {
	if value, _ := c.Config("lang"); strings.EqualFold(value, string(Russian)) {
		return Russian
	}
	return English
}

// Text is a text in every language, with the verbs of fmt.
type Text struct{ En, Ru string }

// In writes the text.
func (t Text) In(l Language, args ...any) string {
	if l == Russian {
		return fmt.Sprintf(t.Ru, args...)
	}
	return fmt.Sprintf(t.En, args...)
}

// InRussian is what a tool says about itself under lang: ru. parameters has the description of
// each.
func InRussian(title, description string, parameters map[string]string) map[string]sdk.Translation {
	return map[string]sdk.Translation{string(Russian): {Title: title, Description: description, Parameters: parameters}}
}

// Told has a tool's function answer with a text beside its result: say writes it. An error
// becomes one that says so in the call's language.
func Told[In, Out any](run func(*sdk.Call, In) (Out, error), say func(Language, Out) string) func(*sdk.Call, In) (sdk.Said[Out], error) {
	return func(c *sdk.Call, in In) (sdk.Said[Out], error) {
		language := LanguageOf(c)
		out, err := run(c, in)
		if err != nil {
			return sdk.Said[Out]{}, failed(language, err)
		}
		return sdk.Said[Out]{Out: out, Text: say(language, out)}, nil
	}
}

// Listed is [Told] for a page of a list: the result is its items. The text is head with
// their number, a line for each of the first 50, and how to get what follows.
func Listed[In, Out any](run func(*sdk.Call, In) (Page[Out], error), head Text, line func(Out) string) func(*sdk.Call, In) (sdk.Said[[]Out], error) {
	return func(c *sdk.Call, in In) (sdk.Said[[]Out], error) {
		language := LanguageOf(c)
		page, err := run(c, in)
		if err != nil {
			return sdk.Said[[]Out]{}, failed(language, err)
		}
		return sdk.Said[[]Out]{Out: page.Items, Text: lines(language, head, page, line)}, nil
	}
}

func failed(l Language, err error) error {
	return fmt.Errorf("%s%w", Text{"❌ Error: ", "❌ Ошибка: "}.In(l), err)
}

// maxLines is how many lines a list has as text. The structured result has all.
const maxLines = 50

func lines[T any](l Language, head Text, page Page[T], line func(T) string) string {
	var b strings.Builder
	b.WriteString(head.In(l, len(page.Items)))
	for i, item := range page.Items {
		if i == maxLines {
			b.WriteString("\n" + Text{"and %d more here", "и ещё %d здесь"}.In(l, len(page.Items)-maxLines))
			break
		}
		b.WriteString("\n- " + line(item))
	}
	if page.NextCursor != "" {
		b.WriteString("\n" + Text{"There are more: call again with cursor %s", "Есть ещё: повтори вызов с cursor %s"}.In(l, page.NextCursor))
	}
	return b.String()
}

// Cut is text on one line of a list: its first 120 characters.
func Cut(text string) string {
	const longest = 120
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return text
}

package script

import (
	"context"
	"iter"
	"slices"
	"time"
	"unicode"

	"github.com/hutch-run/hutch/protocol/chat"
)

// Echo is a model that answers with the last text of a user, in pieces. It works
// offline, calls no tool, and costs nothing; requirement S3-031 calls it EchoLlmClient.
type Echo struct{}

// NewEcho returns the model.
func NewEcho() Echo { return Echo{} }

// Stream says what the user said last, nothing if no user said anything.
func (Echo) Stream(ctx context.Context, r chat.Request) iter.Seq2[chat.Delta, error] {
	return func(yield func(chat.Delta, error) bool) {
		text := ""
		if i := lastOf(r.Messages, chat.User); i >= 0 {
			text = r.Messages[i].Content.String()
		}
		if say(ctx, text, yield) {
			yield(chat.Delta{Stop: chat.StopEnd}, nil)
		}
	}
}

// lastOf is the index of the last message of a role, -1 if there is none.
func lastOf(messages []chat.Message, role chat.Role) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == role {
			return i
		}
	}
	return -1
}

// say hands over text word by word. It reports whether more is wanted; if not, that ctx
// is over was told.
func say(ctx context.Context, text string, yield func(chat.Delta, error) bool) bool {
	for {
		if err := ctx.Err(); err != nil {
			yield(chat.Delta{}, err)
			return false
		}
		if text == "" {
			return true
		}
		n := wordEnd(text)
		if !yield(chat.Delta{Text: text[:n]}, nil) {
			return false
		}
		text = text[n:]
	}
}

// maxPiece bounds a piece in bytes, for languages without spaces.
const maxPiece = 64

// wordEnd is where the first word of text ends, with the space behind it.
func wordEnd(text string) int {
	inWord, inSpace := false, false
	for i, r := range text {
		space := unicode.IsSpace(r)
		if i >= maxPiece || inWord && inSpace && !space {
			return i
		}
		inWord, inSpace = inWord || !space, space
	}
	return len(text)
}

// sleep waits for as long as ctx is alive.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

package chat

import (
	"errors"
	"fmt"
	"testing"
)

func TestOverflowNamesItsLimit(t *testing.T) {
	for _, tt := range []struct {
		err  OverflowError
		want string
	}{
		{OverflowError{OverflowContext, 8192, 9000}, "too large for the model: 9000 tokens, at most 8192: the request does not fit the model's context: shorten the conversation, or choose a model with a larger one"},
		{OverflowError{OverflowAnswer, 4096, 0}, "too large for the model: at most 4096 tokens: the request asks for a longer answer than the model gives: lower the most tokens of an answer"},
		{OverflowError{OverflowRequest, 0, 7}, "too large for the model: the request is larger than the provider takes at once: shorten the conversation or its parts"},
	} {
		err := fmt.Errorf("turn 3: %w", &tt.err)
		var typed *OverflowError
		if !errors.Is(err, ErrOverflow) || !errors.As(err, &typed) || typed.Limit() != string(tt.err.Which) || typed.Error() != tt.want {
			t.Errorf("%v\nwant %s", err, tt.want)
		}
	}
}

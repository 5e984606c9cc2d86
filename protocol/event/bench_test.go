package event_test

import (
	"testing"

	"github.com/hutch-run/hutch/protocol/event"
)

// BenchmarkDelta is what one piece of text costs on its way to a client: the guard and
// the encoding. One operation is one piece, of a message of 1,000.
func BenchmarkDelta(b *testing.B) {
	const pieces = 1000
	stream := func(yield func(event.Event, error) bool) {
		ok := yield(event.RunStarted{ThreadID: "t", RunID: "r"}, nil) && yield(event.TextMessageStart{MessageID: "m"}, nil)
		for i := 0; ok && i < pieces; i++ {
			ok = yield(event.TextMessageContent{MessageID: "m", Delta: "a few words"}, nil)
		}
		_ = ok && yield(event.RunFinished{}, nil)
	}
	b.ReportAllocs()
	for n := 0; n < b.N; n += pieces {
		for e, err := range event.Guard(stream, event.GuardOptions{}) {
			if err != nil {
				b.Fatal(err)
			}
			if _, err := event.Encode(e); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkDecode reads one piece of text back, as when a run is played again.
func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.Decode([]byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a few words"}`)); err != nil {
			b.Fatal(err)
		}
	}
}

package approval

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
)

// Nothing that a person could not see, or would see at another place, is shown as it is.
func TestHiddenTextIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"plain ä 日本 🙂":    "plain ä 日本 🙂",
		"zero\u200bwidth": `zero\u200bwidth`,
		"right\u202eleft": `right\u202eleft`,
		"line\u2028break": `line\u2028break`,
		"par\u2029agraph": `par\u2029agraph`,
		"no\u00a0break":   `no\u00a0break`,
		"wide\u3000":      `wide\u3000`,
		"picked\ufe0f":    `picked\ufe0f`,
		"tag\U000e0041":   `tag\u{e0041}`,
		"tab\t\n\x1b":     `tab\u0009\u000a\u001b`,
		"\ue000private":   `\ue000private`,
	} {
		if got := visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func answered(payload string) event.Resume {
	return event.Resume{InterruptID: "i", Status: event.ResumeResolved, Payload: json.RawMessage(payload)}
}

// An answer that says neither takes nothing back; only an answer in time, to this very
// question, is one.
func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	yes, no, what := answered(`{"approved":true}`), answered(`{"approved":false}`), answered(`{"approved":1}`)
	other := yes
	other.InterruptID = "j"
	for name, tt := range map[string]struct {
		expires string
		answers []event.Resume
		want    Verdict
		unread  bool
	}{
		"none":                    {"", nil, Undecided, false},
		"yes":                     {"", []event.Resume{yes}, Approved, false},
		"yes, then what":          {"", []event.Resume{yes, what}, Approved, true},
		"what, then yes":          {"", []event.Resume{what, yes}, Approved, true},
		"no, then what":           {"", []event.Resume{no, what}, Denied, true},
		"no, then yes":            {"", []event.Resume{no, yes}, Denied, false},
		"of another question":     {"", []event.Resume{other}, Undecided, false},
		"an unknown status":       {"", []event.Resume{{InterruptID: "i", Status: "maybe", Payload: yes.Payload}}, Undecided, false},
		"a second before the end": {"2026-11-30T12:00:01Z", []event.Resume{yes}, Approved, false},
		"at the end":              {"2026-11-30T12:00:00Z", []event.Resume{yes}, Expired, false},
		"late, and denied":        {"2026-11-30T11:00:00Z", []event.Resume{no}, Expired, false},
		"late, and nothing said":  {"2026-11-30T11:00:00Z", nil, Expired, false},
		"in another zone":         {"2026-11-30T13:00:01+01:00", []event.Resume{yes}, Approved, false},
	} {
		d := Decide(event.Interrupt{ID: "i", ExpiresAt: tt.expires}, tt.answers, now)
		if d.Verdict != tt.want || d.Unread != tt.unread {
			t.Errorf("%s: %v, unread %t", name, d.Verdict, d.Unread)
		}
		if d.Verdict == Expired && d.Payload != nil {
			t.Errorf("%s: a payload counts that came too late", name)
		}
	}
}

// What was asked comes back as it was, and a question of another form is about no call.
func TestOf(t *testing.T) {
	c := Call{ID: "c", Message: "m", Tool: "rm", Arguments: `{"n": 1.50}`}
	i, err := Ask(c, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := Of(i); !ok || got != c {
		t.Errorf("%+v", got)
	}
	for name, meta := range map[string]string{
		"no tool": `{"arguments":"{}","message":"m"}`, "no message": `{"tool":"rm","arguments":"{}"}`, "no object": `[]`, "nothing": ``,
	} {
		other := i
		other.Metadata = json.RawMessage(meta)
		if got, ok := Of(other); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

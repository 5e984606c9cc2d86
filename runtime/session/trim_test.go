package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
)

// messages are stored ones of ten bytes: "u" is a user's, anything else an assistant's.
func messages(roles string) (all []Stored) {
	for i, c := range roles {
		role := chat.Assistant
		if c == 'u' {
			role = chat.User
		}
		all = append(all, Stored{Number: int64(i + 1), Bytes: 10, Message: chat.Message{ID: fmt.Sprint(i), Role: role}})
	}
	return all
}

// Enough goes, by messages and by bytes, and whole turns where there is more than one.
func TestTurnBehind(t *testing.T) {
	for _, tt := range []struct {
		page            string
		messages, bytes int64
		more            bool
		want            int64
	}{
		{"uaua", 0, 0, false, 0},        // nothing has to
		{"uaua", 1, 0, false, 3},        // by number: to the next turn
		{"uaua", 0, 1, false, 3},        // by bytes
		{"uaua", 2, 0, false, 3},        // exactly a turn
		{"uaua", 3, 0, false, 3},        // too large, and the last turn stays
		{"uaua", 3, 0, true, 4},         // there is more than the page: all but its last
		{"uaua", 0, 21, true, 4},        //
		{"uaaa", 1, 0, false, 0},        // one turn is not cut
		{"aaua", 1, 0, false, 3},        // what begins in a turn goes to its end
		{"uuaa", 1, 0, false, 2},        //
		{"uaua", -5, 11, false, 3},      // one bound is enough
		{"uaua", 11, -5, false, 3},      //
		{"u", 1, 1, true, 0},            // the last message stays
		{"", 1, 1, true, 0},             //
		{"uauauaua", 3, 21, false, 5},   // the larger of the two
		{"uauauaua", 1, 41, false, 7},   //
		{"uauauaua", 100, 100, true, 8}, //
	} {
		if got := turnBehind(messages(tt.page), tt.messages, tt.bytes, tt.more); got != tt.want {
			t.Errorf("%s, %d messages and %d bytes too many, more %t: %d, want %d", tt.page, tt.messages, tt.bytes, tt.more, got, tt.want)
		}
	}
}

// Events go as whole runs; one whose beginning is gone goes to its end.
func TestRunBehind(t *testing.T) {
	page := func(runs string) (all []Kept) {
		for i, c := range runs {
			all = append(all, Kept{Number: int64(i + 1), Run: string(c), Body: []byte(strings.Repeat("x", 36))}) // 100 with what each counts
		}
		return all
	}
	full := strings.Repeat("a", trimPage)
	for _, tt := range []struct {
		page, cut string
		bytes     int64
		to        int64
		run       string
	}{
		{"aabb", "", 0, 0, ""}, {"aabb", "", 1, 3, "a"}, {"aabb", "", 200, 3, "a"}, {"aabb", "", 201, 0, ""},
		{"aabb", "a", 0, 3, "a"}, {"aabb", "a", -50, 3, "a"}, {"bb", "a", 0, 0, ""}, {"aaaa", "a", 0, 0, ""}, {"", "", 1, 0, ""},
		{full, "", 1, trimPage, "a"},
	} {
		if to, run := runBehind(page(tt.page), tt.cut, tt.bytes); to != tt.to || run != tt.run {
			t.Errorf("%.8s, cut %q, %d bytes too many: %d and %q, want %d and %q", tt.page, tt.cut, tt.bytes, to, run, tt.to, tt.run)
		}
	}
}

package owner

import "testing"

func TestCheckUser(t *testing.T) {
	tests := []struct {
		peer uint32
		own  int
		ok   bool
	}{
		{1000, 1000, true},
		{1001, 1000, false},
		{0, 1000, true}, // the administrator
		{1000, 0, false},
		{1<<32 - 1, -1, false},
	}
	for _, tt := range tests {
		if err := checkUser(tt.peer, tt.own); (err == nil) != tt.ok {
			t.Errorf("user %d at the socket of user %d: %v", tt.peer, tt.own, err)
		}
	}
}

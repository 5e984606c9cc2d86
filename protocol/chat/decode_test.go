package chat

import (
	"encoding/json"
	"reflect"
	"testing"
)

// texts of messages, and whether each is read without package json.
var decoded = []struct {
	body  string
	plain bool
}{
	{`{"id":"m1","role":"user","content":"hello"}`, true},
	{`{"id":"","role":"","content":""}`, true},
	{`{"id":"m1","role":"user","content":"Grüße, 你好 🎈  "}`, true},
	{`{"id":"m1","role":"user","content":"a \"quoted\" word"}`, false},
	{`{"id":"m\n","role":"user","content":"x"}`, false},
	{"{\"id\":\"m1\",\"role\":\"user\",\"content\":\"\xff\"}", false},
	{"{\"id\":\"m1\",\"role\":\"user\",\"content\":\"a\nb\"}", false},
	{`{"id":"m1","role":"user","content":"x"} `, false},
	{`{"id":"m1","role":"user","content":"x"}}`, false},
	{`{"id":"m1","role":"user","content":"x","id":"m2"}`, false},
	{`{"id":"m1","role":"user","content":"x`, false},
	{`{"id":"m1","role":"user","content":null}`, false},
	{`{"id":"m1","role":"user","content":[{"type":"text","text":"x"}]}`, false},
	{`{"id":"m1","role":"user"}`, false},
	{`{"role":"user","id":"m1","content":"x"}`, false},
	{`{"id":"m1","role":"assistant","content":"x","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`, false},
	{`{"id":"m1","role":"tool","content":"x","toolCallId":"c","metadata":{"synthetic":true}}`, false},
	{``, false},
	{`7`, false},
}

// What is read without package json is what that would have read, and the rest is its own.
func TestDecode(t *testing.T) {
	for _, c := range decoded {
		if _, plain := plainMessage([]byte(c.body)); plain != c.plain {
			t.Errorf("%s: plain is %t", c.body, plain)
		}
		checkDecode(t, []byte(c.body))
	}
	body, err := json.Marshal(Message{ID: "m", Role: Assistant, Content: Text("It is fine today.")})
	if _, plain := plainMessage(body); err != nil || !plain {
		t.Errorf("%s as it is written is not plain: %v", body, err)
	}
}

func checkDecode(t *testing.T, body []byte) {
	t.Helper()
	var want Message
	wantErr := json.Unmarshal(body, &want)
	got, err := Decode(body)
	if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%q: %+v, %v; package json has %+v, %v", body, got, err, want, wantErr)
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range decoded {
		f.Add([]byte(c.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkDecode(t, body) })
}

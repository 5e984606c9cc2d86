package sdktest

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/protocol/abi"
)

// The bodies and answers are those of a real host.
func TestKV(t *testing.T) {
	var store KV
	r := &recorder{host: Host{KV: &store}, requests: sdk.Requests{KV: &sdk.KV{Max: "200B"}}}
	for _, c := range []struct {
		op         abi.Op
		body, want string
	}{
		{abi.OpKVGet, `{"key":"a"}`, `ok {"found":false,"value":""}`},
		{abi.OpKVSet, `{"key":"a","value":"one"}`, `ok {"stored":true,"version":1}`},
		{abi.OpKVGet, `{"key":"a"}`, `ok {"found":true,"value":"one","version":1}`},
		{abi.OpKVSet, `{"key":"a","value":"two","ifVersion":7}`, `ok {"stored":false,"version":1}`},
		{abi.OpKVSet, `{"key":"b/c","value":"/w==","base64":true}`, `ok {"stored":true,"version":2}`},
		{abi.OpKVGet, `{"key":"b/c","base64":true}`, `ok {"found":true,"value":"/w==","version":2}`},
		{abi.OpKVGet, `{"prefix":"","limit":1}`, `ok {"keys":["a"],"more":true}`},
		{abi.OpKVGet, `{"prefix":"","after":"a"}`, `ok {"keys":["b/c"]}`},
		{abi.OpKVSet, `{"key":"a","value":"` + strings.Repeat("x", 68) + `"}`, `limit {"error":{"code":"limit","message":"kv_set: the module would keep 201 bytes, at most 200: delete values, or keep smaller ones"}}`},
		{abi.OpKVSet, `{"key":"n","value":"` + strings.Repeat("x", 68) + `"}`, `limit {"error":{"code":"limit","message":"kv_set: the module would keep 269 bytes, at most 200: delete values, or keep smaller ones"}}`},
		{abi.OpKVGet, `{"key":"a"}`, `ok {"found":true,"value":"one","version":1}`},
		{abi.OpKVDelete, `{"key":"a","ifVersion":7}`, `ok {"deleted":false,"version":1}`},
		{abi.OpKVDelete, `{"key":"a","ifVersion":1}`, `ok {"deleted":true}`},
		{abi.OpKVDelete, `{"key":"a"}`, `ok {"deleted":false}`},
		{abi.OpKVSet, `{"key":"a","value":"!","base64":true}`, `invalid {"error":{"code":"invalid","message":"kv_set: illegal base64 data at input byte 0"}}`},
		{abi.OpKVDelete, `{"key":"a","x":1}`, `invalid {"error":{"code":"invalid","message":"kv_delete: json: unknown field \"x\""}}`},
	} {
		got := r.Gated(sdk.Gated{Op: c.op}, []byte(c.body))
		if text := got.Code.String() + " " + string(got.Body); text != c.want {
			t.Errorf("%s %s\ngot  %s\nwant %s", c.op, c.body, text, c.want)
		}
	}
	if value, ok := store.Value("b/c"); !ok || value != "\xff" || len(store.Keys()) != 1 {
		t.Errorf("kept %q, %v, %q", value, ok, store.Keys())
	}
}

func TestKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"a": true, "a/b.c-d_e:f@g+h=i": true, "...": true, strings.Repeat("a", 256): true,
		"": false, ".": false, "a/..": false, "/a": false, "a/": false, "a//b": false, "a b": false, "ä": false, strings.Repeat("a", 257): false,
	} {
		if err := checkKey(key); (err == nil) != want {
			t.Errorf("%q: %v", key, err)
		}
	}
}

package sdktest_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

type input struct {
	Name string `json:"name"`
}

type output struct {
	Greeting string `json:"greeting"`
}

var module = sdk.Module{Tools: []sdk.Tool{
	sdk.Define(sdk.Spec{Name: "greet", Description: "Greets."}, func(c *sdk.Call, in input) (output, error) {
		word, ok := c.Config("word")
		if !ok {
			c.Warn("no word")
		}
		c.Progress(1, 1, "done")
		return output{word + " " + in.Name}, nil
	}),
	sdk.Define(sdk.Spec{Name: "blocks", Description: "Gives blocks."}, func(*sdk.Call, struct{}) (sdk.Result, error) {
		return sdk.Result{Content: []sdk.Content{{Type: "text", Text: "a"}, {Type: "image"}, {Type: "text", Text: "b"}}}, nil
	}),
}}

func TestCall(t *testing.T) {
	host := sdktest.Host{Config: map[string]string{"word": "Moin"}}
	got := host.Call(t, &module, "greet", input{"Ada"})
	var out output
	got.Into(t, &out)
	if out.Greeting != "Moin Ada" || got.Text != `{"greeting":"Moin Ada"}` || got.Logs != nil {
		t.Errorf("got %+v", got)
	}
	if want := []sdk.Progress{{Progress: 1, Total: 1, Message: "done"}}; !reflect.DeepEqual(got.Progress, want) {
		t.Errorf("progress is %v, want %v", got.Progress, want)
	}
}

func TestCallWithoutConfig(t *testing.T) {
	got := sdktest.Call(t, &module, "greet", `{"name":"Ada"}`)
	if want := []string{"warn: no word"}; !reflect.DeepEqual(got.Logs, want) {
		t.Errorf("logs are %q, want %q", got.Logs, want)
	}
}

func TestText(t *testing.T) {
	if got := sdktest.Call(t, &module, "blocks", nil); got.Text != "a\nb" || len(got.Content) != 3 {
		t.Errorf("got %+v", got)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	for args, want := range map[string]string{
		`{}`:                   `invalid arguments for greet: missing property "name"`,
		`{"name":"a","nam":1}`: `invalid arguments for greet: unknown property "nam"; known are name`,
	} {
		if got := sdktest.Call(t, &module, "greet", args); !got.IsError || got.Text != want {
			t.Errorf("%s: got %+v, want %s", args, got, want)
		}
	}
}

// stopper is a testing.TB that ends like the real one and keeps what was said.
type stopper struct {
	testing.TB
	said string
}

func (s *stopper) Helper() {}

func (s *stopper) Fatal(args ...any) { s.Fatalf("%v", args...) }

func (s *stopper) Fatalf(format string, args ...any) {
	s.said = fmt.Sprintf(format, args...)
	panic(s)
}

func said(f func(t testing.TB)) (text string) {
	s := &stopper{}
	defer func() {
		if recover() == any(s) {
			text = s.said
		}
	}()
	f(s)
	return ""
}

func TestWhatFailsATest(t *testing.T) {
	for want, f := range map[string]func(testing.TB){
		"describe: the module has no tools":                  func(t testing.TB) { sdktest.Call(t, &sdk.Module{}, "greet", nil) },
		`no tool "x" in this module`:                         func(t testing.TB) { sdktest.Call(t, &module, "x", nil) },
		`no structured content; the text is "a\nb"`:          func(t testing.TB) { sdktest.Call(t, &module, "blocks", nil).Into(t, new(output)) },
		"arguments of greet: json: unsupported type: func()": func(t testing.TB) { sdktest.Call(t, &module, "greet", func() {}) },
	} {
		if got := said(f); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

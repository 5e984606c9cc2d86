package sdk

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/big"
	"os"
	"reflect"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the code does now into testdata")

type address struct {
	City string `json:"city" doc:"Where."`
	Zip  string `json:"zip,omitempty" max:"10"`
}

type common struct {
	ID string `json:"id"`
}

type everyInput struct {
	common
	Flag     bool              `json:"flag"`
	Count    int               `json:"count" min:"1" max:"10"`
	Size     uint16            `json:"size"`
	Offset   uint              `json:"offset" min:"5"`
	Ratio    float64           `json:"ratio" min:"-0.5"`
	Exact    json.Number       `json:"exact"`
	Style    string            `json:"style" doc:"How \"it\" <looks>." enum:"plain,loud" default:"plain"`
	Tags     []string          `json:"tags" enum:"a,b" max:"2"`
	Home     address           `json:"home" doc:"Nested."`
	Others   []address         `json:"others,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Free     map[string]any    `json:"free,omitempty"`
	When     time.Time         `json:"when,omitzero"`
	Big      *big.Rat          `json:"big"`
	Maybe    *int64            `json:"maybe"`
	Data     []byte            `json:"data,omitempty"`
	Retries  int               `json:"retries" default:"3" max:"5"`
	Untagged string
	Skipped  string `json:"-"`
	private  string //nolint:unused // shows that unexported fields are left out
}

type everyOutput struct {
	Any   any             `json:"any" doc:"Anything."`
	Raw   json.RawMessage `json:"raw"`
	List  []any           `json:"list"`
	Style string          `json:"style" default:"not for outputs"`
	Ref   Ref             `json:"ref"`
}

// A Ref stands apart: it is the one kind that some hosts refuse.
type refInput struct {
	Ref Ref `json:"ref" doc:"An id, or a place." min:"1" max:"128" default:"0"`
}

// Each schema is held in testdata/schemas.txtar, indented.
func TestSchemas(t *testing.T) {
	types := []struct {
		name string
		typ  reflect.Type
		dir  direction
	}{
		{"every_input.json", reflect.TypeFor[everyInput](), input},
		{"every_output.json", reflect.TypeFor[everyOutput](), output},
		{"ref_input.json", reflect.TypeFor[refInput](), input},
		{"empty_input.json", reflect.TypeFor[struct{}](), input},
		{"map_output.json", reflect.TypeFor[map[string][]int](), output},
	}
	const file = "testdata/schemas.txtar"
	golden := txtar.Archive{Comment: []byte("Guards the JSON Schemas that Go types become; go test -update rewrites it.\n")}
	for _, c := range types {
		s, err := shapeOf(c.typ, c.dir)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var b bytes.Buffer
		compact, err := encode(s.schema(""))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := json.Indent(&b, compact, "", "  "); err != nil {
			t.Fatalf("%s: %v in %s", c.name, err, compact)
		}
		golden.Files = append(golden.Files, txtar.File{Name: c.name, Data: append(b.Bytes(), '\n')})
	}
	got := txtar.Format(&golden)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("schemas changed; got\n%s", got)
	}
}

type recursive struct {
	Next []recursive `json:"next"`
}

type ownJSON struct{}

func (*ownJSON) UnmarshalJSON([]byte) error { return nil }

type small uint8

// A type without a portable form is refused, in words that say what to do.
func TestRefusedTypes(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[struct {
			Wait time.Duration `json:"wait"`
		}](), "wait: is a time.Duration, which has no portable JSON form; use a number of seconds, or ISO 8601 text"},
		{reflect.TypeFor[struct {
			A struct {
				B []chan int `json:"b"`
			} `json:"a"`
		}](), "a.b[]: is a chan int, which has no JSON form"},
		{reflect.TypeFor[struct{ X any }](), "X: is a interface {}, which has no single JSON type; use map[string]any, or a string with JSON in it"},
		{reflect.TypeFor[struct{ X []*int }](), "X[]: is a *int; pointers are for optional struct fields only"},
		{reflect.TypeFor[struct{ X [2]int }](), "X: is a [2]int, which has no JSON form"},
		{reflect.TypeFor[struct{ X map[int]string }](), "X: is a map[int]string; keys must be strings"},
		{reflect.TypeFor[struct{ X error }](), "X: is the interface error, which has no JSON form"},
		{reflect.TypeFor[struct{ X ownJSON }](), "X: is a sdk.ownJSON, which converts itself to or from JSON, so it has no derived schema; use text or a json.Number"},
		{reflect.TypeFor[recursive](), "next[]: is a sdk.recursive, which contains itself"},
		{reflect.TypeFor[struct {
			X string `json:"a b"`
		}](), "a b: is no name that every host takes; use 1 to 64 of letters, digits, _, . and -"},
		{reflect.TypeFor[struct {
			X int `json:"x,string"`
		}](), `x: has the json option "string"; known are omitempty and omitzero`},
		{reflect.TypeFor[struct {
			common
			Own string `json:"id"`
		}](), "id: is the name of two fields"},
		{reflect.TypeFor[struct {
			X int `enum:"1,2"`
		}](), "X: has an enum; only strings and slices of strings can"},
		{reflect.TypeFor[struct {
			X Ref `enum:"1,2"`
		}](), "X: has an enum; only strings and slices of strings can"},
		{reflect.TypeFor[struct {
			X bool `min:"1"`
		}](), "X: has a min; only numbers, strings and slices can"},
		{reflect.TypeFor[struct {
			X int `max:"1k"`
		}](), `X: has max "1k", which is no number`},
		{reflect.TypeFor[struct {
			X int `default:"many"`
		}](), `X: default: "many" is no JSON`},
		{reflect.TypeFor[struct {
			X []int `default:"[1,\"2\"]"`
		}](), `X: default: [1]: is a string, must be an integer`},
		{reflect.TypeFor[struct {
			X int `default:"3 4"`
		}](), `X: default: "3 4" is no JSON`},
		{reflect.TypeFor[struct{ X big.Int }](), "X: is a big.Int, which converts itself to or from JSON, so it has no derived schema; use text or a json.Number"},
		{reflect.TypeFor[struct{ X []small }](), "X: is a []sdk.small; use a []byte, which is base64, or a []int"},
		{reflect.TypeFor[struct{ *address }](), "address: embeds what is no struct; give the field a name"},
		{reflect.TypeFor[struct {
			X string `default:"c" enum:"a,b"`
		}](), `X: default: "c" is none of a, b`},
		{reflect.TypeFor[struct {
			X string `alias:"b=a"`
		}](), "X: has an alias; only what has an enum, in the input itself, can"},
		{reflect.TypeFor[struct {
			In struct {
				X string `enum:"a" alias:"b=a"`
			}
		}](), "In.X: has an alias; only what has an enum, in the input itself, can"},
		{reflect.TypeFor[struct {
			X string `enum:"a,b" alias:"c"`
		}](), `X: has the alias "c"; write it as other=value, with a value of its enum`},
		{reflect.TypeFor[struct {
			X string `enum:"a,b" alias:"d=c"`
		}](), `X: has the alias "d=c"; write it as other=value, with a value of its enum`},
		{reflect.TypeFor[struct {
			X string `enum:"a,b" alias:"b=a"`
		}](), `X: has the alias "b", which stands for something already`},
		{reflect.TypeFor[struct {
			X string `enum:"a,b" alias:"c=a,c=b"`
		}](), `X: has the alias "c", which stands for something already`},
	} {
		if _, err := shapeOf(c.typ, input); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.typ, err, c.want)
		}
	}
}

func TestRefusedOutputs(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[struct{ X *int }](), "X: is a pointer, and nil would be null, which no schema here allows; add omitempty"},
		{reflect.TypeFor[struct{ X big.Rat }](), "X: is a big.Rat, whose method MarshalText needs a pointer; use a string"},
		{reflect.TypeFor[struct{ X json.Marshaler }](), "X: is the interface json.Marshaler, which has no JSON form"},
	} {
		if _, err := shapeOf(c.typ, output); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.typ, err, c.want)
		}
	}
}

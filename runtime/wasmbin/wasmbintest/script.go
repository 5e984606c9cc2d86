package wasmbintest

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// A Script is a file of the specification's tests, in the form that an engine's
// source has them in.
type Script struct {
	Commands []Command
}

// A Command of a script makes a module, names one, or acts on one.
type Command struct {
	Type     string
	Filename string
	// Name is what the script calls the module that is made or named, if anything;
	// As is what others import it by from then on.
	Name, As string
	Action   Action
	Expected []Value
}

// An Action calls a function of a module or gets one of its globals. Without a
// module the last one is meant.
type Action struct {
	Type, Field, Module string
	Args                []Value
}

// A Value is an argument or a result.
type Value struct {
	Type string
	// Lane is the type of the lanes of a vector.
	Lane string `json:"lane_type"`
	// Value has one part, or one for each lane. What is expected has none if any
	// value of the type will do.
	Value Parts
}

// Parts are numbers as they are written.
type Parts []string

// UnmarshalJSON reads a string or a list of them.
func (p *Parts) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*p = Parts{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(p))
}

// laneBits is how wide the lanes of a vector are.
var laneBits = map[string]int{"i8": 8, "i16": 16, "i32": 32, "i64": 64, "f32": 32, "f64": 64}

// Words returns a value as an engine passes it: one word, or two for a vector. A
// reference to something outside is not the null that zero is.
func (v Value) Words() ([]uint64, error) {
	if v.Type == "v128" {
		return v.lanes()
	}
	if len(v.Value) != 1 {
		return nil, fmt.Errorf("%s: %d values, want one", v.Type, len(v.Value))
	}
	text := v.Value[0]
	if text == "null" && (v.Type == "externref" || v.Type == "funcref") {
		return []uint64{0}, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if v.Type == "externref" {
		n++
	}
	return []uint64{n}, err
}

func (v Value) lanes() ([]uint64, error) {
	width := laneBits[v.Lane]
	if width == 0 || len(v.Value)*width != 128 {
		return nil, fmt.Errorf("a vector of %d lanes of type %q", len(v.Value), v.Lane)
	}
	words := make([]uint64, 2)
	for i, text := range v.Value {
		n, err := strconv.ParseUint(text, 10, width)
		if err != nil {
			return nil, err
		}
		words[i*width/64] |= n << (i * width % 64)
	}
	return words, nil
}

// RegisteredAs returns what others import the module that command i makes by, or
// nothing if the script never says so.
func (s *Script) RegisteredAs(i int) string {
	made := s.Commands[i].Name
	for _, c := range s.Commands[i+1:] {
		switch {
		case c.Type == "register" && (c.Name == made || c.Name == ""):
			return c.As
		case c.Type == "module" && (made == "" || c.Name == made):
			return ""
		}
	}
	return ""
}

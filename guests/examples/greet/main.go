// Command greet is the smallest useful module: one tool that greets someone.
package main

import (
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
)

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Tools: []sdk.Tool{
		sdk.Define(sdk.Spec{
			Name:        "greet",
			Title:       "Greet",
			Description: "Greets a person by name. Returns one sentence to show them.",
		}, greet),
	},
})

func main() { module.Main() }

type greetInput struct {
	Name  string `json:"name" doc:"Who is greeted." min:"1" max:"100"`
	Style string `json:"style" doc:"How it sounds." enum:"plain,formal,loud" default:"plain"`
}

func greet(_ *sdk.Call, in greetInput) (string, error) {
	switch in.Style {
	case "formal":
		return "Good day, " + in.Name + ".", nil
	case "loud":
		return "HELLO, " + strings.ToUpper(in.Name) + "!", nil
	}
	return "Hello, " + in.Name + "!", nil
}

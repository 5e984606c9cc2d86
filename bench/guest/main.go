// Command guest is the module that the benchmarks make twenty of: an ordinary
// Go guest, whose tool's name they overwrite in the built file.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Tools: []sdk.Tool{
		sdk.Define(sdk.Spec{
			Name:        "bench_echo_00",
			Title:       "Echo",
			Description: "Gives a text back.",
		}, echo),
	},
})

func main() { module.Main() }

type echoInput struct {
	Text string `json:"text" doc:"What to give back."`
}

func echo(_ *sdk.Call, in echoInput) (string, error) { return in.Text, nil }

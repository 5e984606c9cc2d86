// Command hungry is a guest that wants more memory than there is.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Tools:   []sdk.Tool{sdk.Define(sdk.Spec{Name: "eat", Description: "Allocates without end."}, eat)},
})

func main() { module.Main() }

var kept [][]byte

func eat(_ *sdk.Call, _ struct{}) (string, error) {
	for {
		kept = append(kept, make([]byte, 1<<20))
	}
}

// Command notes is the shipped module that keeps notes from one call to another.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{
	Version:  "1.0.0",
	Requests: sdk.Requests{KV: &sdk.KV{Max: "1MiB", Reason: "Keeps the notes that it is asked to keep."}},
	Tools:    []sdk.Tool{add, list, get, search, remove},
})

func main() { module.Main() }

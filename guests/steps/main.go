// Command steps is the shipped module for the checklists of tasks.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Requests: sdk.Requests{Tracker: []sdk.Scope{
		{Name: "steps:read", Reason: "Lists the steps of tasks."},
		{Name: "steps:write", Reason: "Adds, completes and changes steps."},
	}},
	Tools: []sdk.Tool{list, add, complete, update},
})

func main() { module.Main() }

// Command projects is the shipped module for the projects of the tracker.
package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
)

var module = sdk.Serve(sdk.Module{
	Version:  "1.0.0",
	Requests: sdk.Requests{Tracker: []sdk.Scope{{Name: "projects:read", Reason: "Lists and reads projects."}}},
	Tools:    []sdk.Tool{list, get},
})

func main() { module.Main() }

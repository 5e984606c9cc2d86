// Command members is the shipped module for the members of the tracker.
package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
)

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Requests: sdk.Requests{Tracker: []sdk.Scope{
		{Name: "members:read", Reason: "Lists and reads members."},
		{Name: "members:self", Reason: "Sets the agent's own status."},
	}},
	Tools: []sdk.Tool{list, get, status},
})

func main() { module.Main() }

// Command files is the shipped module for the files of the tracker.
package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
)

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Requests: sdk.Requests{Tracker: []sdk.Scope{
		{Name: "files:read", Reason: "Lists and reads files of tasks and messages."},
		{Name: "files:write", Reason: "Attaches files to tasks and messages for the agent."},
	}},
	Tools: []sdk.Tool{upload, list, download},
})

func main() { module.Main() }

// Command tasks is the shipped module for the tasks of the tracker.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Requests: sdk.Requests{Tracker: []sdk.Scope{
		{Name: "tasks:read", Reason: "Lists and reads tasks."},
		{Name: "tasks:write", Reason: "Makes and changes tasks."},
		{Name: "tasks:take", Reason: "Takes, rejects and watches tasks for the agent."},
		{Name: "tasks:assign", Reason: "Gives tasks to others."},
	}},
	Tools: []sdk.Tool{list, get, create, update, take, reject, assign, watch, unwatch},
})

func main() { module.Main() }

// Command messages is the shipped module for the chats and comments of the tracker.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Requests: sdk.Requests{Tracker: []sdk.Scope{
		{Name: "messages:read", Reason: "Reads chats and comments."},
		{Name: "messages:write", Reason: "Sends messages and comments for the agent."},
	}},
	Tools: []sdk.Tool{send, list, reply, comment, comments, read},
})

func main() { module.Main() }

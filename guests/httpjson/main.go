// Command httpjson is the shipped module that calls HTTP APIs.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Requests: sdk.Requests{HTTP: []sdk.HTTP{{
		Methods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, MaxRequest: "1MiB", MaxResponse: "4MiB",
		Reason: "Calls the APIs that it is asked to call. Grant the hosts you mean it for; whoever may use it can send them anything.",
	}}},
	Tools: []sdk.Tool{request},
})

func main() { module.Main() }

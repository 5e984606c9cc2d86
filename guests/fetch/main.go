// Command fetch is the shipped module that reads web pages.
package main

import "github.com/hutch-run/hutch/guests/sdk"

// A page of more than maxPage is refused by the host. Reading one takes several
// times its size, of the 64 MiB that a call has.
const maxPage = "2MiB"

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Requests: sdk.Requests{HTTP: []sdk.HTTP{{
		Methods: []string{"GET"}, MaxResponse: maxPage, Reason: "Reads the pages that it is asked to read, on the sites that you allow.",
	}}},
	Tools: []sdk.Tool{read},
})

func main() { module.Main() }

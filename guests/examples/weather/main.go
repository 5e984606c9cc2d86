// Command weather is the example of a tool with an API key: it asks one service with
// a key that it never sees.
package main

import "github.com/hutch-run/hutch/guests/sdk"

const (
	host = "api.tomorrow.io"
	path = "/v4/weather/realtime"
)

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Requests: sdk.Requests{
		HTTP: []sdk.HTTP{{Host: host, Methods: []string{"GET"}, Paths: []string{path}, MaxResponse: "64KiB",
			Reason: "Asks for the weather at a place."}},
		Secrets: []sdk.Secret{{Name: "weather_key", Header: "apikey", Host: host, Paths: []string{path},
			Reason: "The service answers only with the key of an account."}},
	},
	Tools: []sdk.Tool{weather},
})

func main() { module.Main() }

// Command dates is the shipped module for points in time, zones and durations.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{Version: "1.0.0", Tools: []sdk.Tool{convert, add, diff}})

func main() { module.Main() }

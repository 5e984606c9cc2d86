// Command text is the shipped module that counts and compares texts.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{Version: "1.0.0", Tools: []sdk.Tool{stats, diff}})

func main() { module.Main() }

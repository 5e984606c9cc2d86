// Command markdown is the shipped module that turns Markdown into HTML.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{Version: "1.0.0", Tools: []sdk.Tool{toHTML}})

func main() { module.Main() }

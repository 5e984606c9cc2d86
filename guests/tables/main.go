// Command tables is the shipped module that converts tables between CSV, JSON
// and Markdown.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{Version: "1.0.0", Tools: []sdk.Tool{toJSON, toCSV, toMarkdown}})

func main() { module.Main() }

// Command jq is the shipped module that runs jq programs on JSON.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{Version: "1.0.0", Tools: []sdk.Tool{query}})

func main() { module.Main() }

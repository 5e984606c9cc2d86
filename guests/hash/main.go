// Command hash is the shipped module for digests and encodings.
package main

import "github.com/hutch-run/hutch/guests/sdk"

var module = sdk.Serve(sdk.Module{Version: "1.0.0", Tools: []sdk.Tool{digest, encode, decode}})

func main() { module.Main() }

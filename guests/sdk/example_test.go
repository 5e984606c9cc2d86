package sdk_test

import (
	"fmt"

	"github.com/hutch-run/hutch/guests/sdk"
)

type areaInput struct {
	Width  float64 `json:"width" doc:"In metres." min:"0"`
	Height float64 `json:"height" doc:"In metres." min:"0"`
}

type areaOutput struct {
	Area float64 `json:"area" doc:"In square metres."`
}

func area(_ *sdk.Call, in areaInput) (areaOutput, error) {
	return areaOutput{in.Width * in.Height}, nil
}

// In a program this is a package variable, and main calls module.Main().
func ExampleServe() {
	module := sdk.Serve(sdk.Module{
		Version: "1.0.0",
		Tools: []sdk.Tool{
			sdk.Define(sdk.Spec{Name: "area", Description: "Gives the area of a rectangle."}, area),
		},
	})
	out, err := module.Call(nil, []byte(`{"params":{"name":"area","arguments":{"width":2,"height":1.5}}}`))
	fmt.Println(string(out), err)
	out, err = module.Call(nil, []byte(`{"params":{"name":"area","arguments":{"width":2}}}`))
	fmt.Println(string(out), err)
	// Output:
	// {"content":[{"type":"text","text":"{\"area\":3}"}],"structuredContent":{"area":3}} <nil>
	// {"content":[{"type":"text","text":"invalid arguments for area: missing property \"height\""}],"isError":true} <nil>
}

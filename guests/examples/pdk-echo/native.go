//go:build !wasip1

// Command pdk-echo shows that a servlet written for mcp.run or hyper-mcp v1
// runs in hutch as it is. It is a module, not a program: see main.go.
package main

func main() {
	println("This is a module, not a program. Build it for a host:\n" +
		"  GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o pdk-echo.wasm ./guests/examples/pdk-echo")
}

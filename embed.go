// Package hutch carries the sources that a scaffold needs to build offline: the
// SDK and the vocabulary it imports. Only the root can embed them.
package hutch

import "embed"

// Sources holds the Go files of guests/sdk and the packages below it, of
// protocol/abi and of protocol/tool under those paths, their tests included.
//
//go:embed guests/sdk/*.go guests/sdk/fetch/*.go guests/sdk/kv/*.go guests/sdk/sdktest/*.go guests/sdk/tracker/*.go
//go:embed protocol/abi/*.go protocol/tool/*.go
var Sources embed.FS

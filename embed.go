// Package hutch carries the sources that a scaffold needs to build offline: the
// SDK and the vocabulary it imports. Only the root can embed them.
package hutch

import "embed"

// Sources holds the Go files of guests/sdk, protocol/abi and protocol/tool under
// those paths, their tests included.
//
//go:embed guests/sdk/*.go guests/sdk/sdktest/*.go protocol/abi/*.go protocol/tool/*.go
var Sources embed.FS

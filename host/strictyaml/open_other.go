//go:build !unix

package strictyaml

// nonblock is nothing where opening a file never waits.
const nonblock = 0

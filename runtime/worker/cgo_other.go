//go:build !cgo || !linux

package worker

const withCgo = false

//go:build !linux && !darwin

package store

// networkFilesystem cannot tell on this system.
func networkFilesystem(string) string { return "" }

package abi

import "strings"

// ManifestSection is the name of the custom section in which a module carries its
// description, a tool.Description as JSON.
const ManifestSection = "hutch.manifest"

// IsDigest reports whether s is what names a module's bytes: their SHA-256 as 64
// lower-case hex digits.
func IsDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

package portable

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

// DefinitionHash identifies what a module says its tools are, as 64 lower-case
// hex digits: the SHA-256 of tools and requests as one compact JSON value. Keys
// are sorted by their bytes, strings carry the fewest escapes (RFC 8785), numbers
// stay as written, tools keep the module's order. Version does not count.
// Take it of the description as exported, before prefix and profile.
//
// The error says which JSON of d is broken.
func DefinitionHash(d tool.Description) (string, error) {
	d.Version = ""
	raw, err := rawjson.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("definition hash: %w", err)
	}
	n, err := rawjson.Parse(raw, rawjson.HardDepth)
	if err != nil {
		return "", fmt.Errorf("definition hash: %w", err)
	}
	sum := sha256.Sum256(n.Canonical().Compact())
	return hex.EncodeToString(sum[:]), nil
}

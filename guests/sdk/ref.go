package sdk

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Ref is a field of an input that names something by a text or by a whole number, such
// as an id or a place in a list. It arrives as text: 7 and 7.0 are "7". The tags min and
// max count the characters of that text.
type Ref string

// checkReference returns the text of a text or of a whole number.
func (s *shape) checkReference(v any) (any, error) {
	text := ""
	switch v := v.(type) {
	case string:
		text = v
	case json.Number:
		digits, ok := wholeNumber(string(v))
		if !ok {
			return nil, fmt.Errorf("%s is no whole number", abi.Cut(string(v), maxShown))
		}
		if _, err := strconv.ParseInt(digits, 10, 64); err != nil {
			return nil, fmt.Errorf("%s is out of range for int64", abi.Cut(digits, maxShown))
		}
		text = digits
	default:
		return nil, fmt.Errorf("is %s, must be a string or an integer", article(jsonType(v)))
	}
	return text, s.checkString(text)
}

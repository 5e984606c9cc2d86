package abi

// The bodies of kv_get, kv_set and kv_delete, and of their results. A module's
// values are its own: no other module reads them.
//
// A key has 1 to [KVMaxKey] bytes of the characters A-Z a-z 0-9 . _ - : @ + = and,
// between segments, /. No segment is empty, "." or "..". Names in a body that are
// not listed here are refused, and so are null and a name twice.
//
// Versions order the changes among a module's values: a value that is deleted and
// set again has a version that never was before.
//
// Refusals: invalid for a body or a key that is wrong; limit for a value of more
// than [KVMaxValue] bytes, and for more than the operator lets the module keep;
// denied, unavailable and cancelled as for every operation.

const (
	// KVMaxKey is the longest key, in bytes.
	KVMaxKey = 256
	// KVMaxValue is the largest value, in bytes.
	KVMaxValue = 1 << 20
	// KVMaxKeys is how many keys one kv_get lists at most, and does if it is not
	// told how many.
	KVMaxKeys = 1000
	// KVMaxTTL is the longest time to live that can be asked for, in seconds: ten
	// years.
	KVMaxTTL = 10 * 365 * 24 * 60 * 60
)

// KVGet is the body of kv_get. With "key" it reads a value, and the result is a
// [KVValue]. With "prefix" instead it lists keys, and the result is [KVKeys].
type KVGet struct {
	Key string `json:"key,omitempty"`
	// Base64 asks for the value in standard base64. Without it a value that is not
	// UTF-8 is refused as invalid.
	Base64 bool `json:"base64,omitempty"`
	// Prefix lists the keys that begin with it; "" all.
	Prefix *string `json:"prefix,omitempty"`
	// After lists only the keys that come after it, in the order of their bytes.
	After string `json:"after,omitempty"`
	// Limit is how many keys are listed at most, 1 to [KVMaxKeys]; 0 means that
	// many.
	Limit int `json:"limit,omitempty"`
}

// KVValue is what kv_get read. If Found is false, there is no value, or it has
// expired, and the other fields are empty.
type KVValue struct {
	Found bool `json:"found"`
	// Value is the value as text, or in base64 if that was asked for.
	Value   string `json:"value"`
	Version int64  `json:"version,omitempty"`
	// Expires is when the value ends (RFC 3339, UTC); absent means never.
	Expires string `json:"expires,omitempty"`
}

// KVKeys is what kv_get listed, in the order of their bytes. More says that there
// are further ones: ask again, after the last.
type KVKeys struct {
	Keys []string `json:"keys"`
	More bool     `json:"more,omitempty"`
}

// KVSet is the body of kv_set; the result is a [KVStored]. "key" and "value" must
// be there.
type KVSet struct {
	Key string `json:"key"`
	// Value is text, or with Base64 anything in standard base64.
	Value  string `json:"value"`
	Base64 bool   `json:"base64,omitempty"`
	// TTL is how long the value is kept, in seconds, 1 to [KVMaxTTL]. The operator
	// may have set less, which then holds, and holds for a TTL of 0; the result
	// says which.
	TTL int64 `json:"ttl,omitempty"`
	// IfVersion, if it is there, is the version that the value must have for it to
	// be set; 0 stands for no value.
	IfVersion *int64 `json:"ifVersion,omitempty"`
}

// KVStored is what kv_set did. If Stored is false, the version was another than
// asked for, nothing was changed, and Version is the one that is there, absent if
// there is no value.
type KVStored struct {
	Stored  bool   `json:"stored"`
	Version int64  `json:"version,omitempty"`
	Expires string `json:"expires,omitempty"`
}

// KVDelete is the body of kv_delete; the result is a [KVDeleted].
type KVDelete struct {
	Key string `json:"key"`
	// IfVersion is as in [KVSet].
	IfVersion *int64 `json:"ifVersion,omitempty"`
}

// KVDeleted is what kv_delete did. If Deleted is false, there was no value, or, if
// Version is there, it has that one and not the one asked for.
type KVDeleted struct {
	Deleted bool  `json:"deleted"`
	Version int64 `json:"version,omitempty"`
}

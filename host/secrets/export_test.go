package secrets

// MaxFile is the largest file that is read, decrypted or not.
const MaxFile = maxFile

// MaxSecrets is how many secrets a file may have.
const MaxSecrets = maxSecrets

// Locked is what writers wait in.
var Locked = locked

// WritePrivate is what files are written by.
var WritePrivate = writePrivate

// Cheap lets the vault derive keys from its passphrase in no time, and returns what
// it cost before.
func (v *Vault) Cheap() (before int) {
	for _, d := range v.files {
		if c, ok := d.codec.(*ageCodec); ok {
			before, c.work = c.work, 10
		}
	}
	return before
}

// ReadLines returns what a file's text holds, and the text written anew.
func ReadLines(text []byte) (values map[string]string, again string, err error) {
	lines, err := readLines(text)
	values = map[string]string{}
	for _, l := range lines {
		if l.name != "" {
			values[l.name] = l.value
			again += l.name + "=" + written(l.value) + "\n"
		}
	}
	return values, again, err
}

// MaxAtOnce is how many bytes are looked through at once.
const MaxAtOnce = maxAtOnce

// Enter takes some of what a redactor has room for.
func Enter(r *Redactor, size int) (leave func()) { return r.vault.room.enter(size) }

// Free is how much of it is free.
func Free(r *Redactor) int { return r.vault.room.free }

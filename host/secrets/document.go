package secrets

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// What a file may hold.
const (
	// MinValue and MaxValue bound a value, in bytes. A shorter one would be found
	// in texts that have nothing to do with it, and each would be redacted.
	MinValue = 6
	MaxValue = 64 << 10
	// maxSecrets bounds what the redactor looks for.
	maxSecrets = 256
	// maxFile is the largest file that is read, decrypted or not.
	maxFile = 4 << 20
	// maxFindings is how many wrong lines are named.
	maxFindings = 20
	maxName     = 64
)

// document is one file of secrets. Its text is lines: comments that begin with #,
// empty ones, and
//
//	name=value
//	name="a value as JSON writes it, for line breaks and quotes"
//
// A value without quotes is what stands behind the equals sign, as it is. The
// vault's lock guards all fields.
type document struct {
	source Source
	path   string
	codec  codec

	stamps  [2]stamp // of the file, and of the one with its keys
	settled bool     // the stamps are old enough that a later change shows in them
	sum     [sha256.Size]byte
	values  map[string]Value
	err     error
}

// codec is how a document's text is kept on disk.
type codec interface {
	// keys is the path of a file that decoding depends on, "" if there is none.
	keys() string
	decode(raw []byte) (text []byte, err error)
	// encode is for a file that was raw before, nil if there was none.
	encode(text, raw []byte) ([]byte, error)
}

// plain keeps the text as it is.
type plain struct{}

func (plain) keys() string                          { return "" }
func (plain) decode(raw []byte) ([]byte, error)     { return raw, nil }
func (plain) encode(text, _ []byte) ([]byte, error) { return text, nil }

// stamp tells two states of a file apart, unless they are closer together than
// the file system's clock ticks. The zero value is that of no file.
type stamp struct {
	id          fileID
	size, mtime int64
	mode        fs.FileMode
}

// settles is how old a change must be to be told from the next by its time.
const settles = 2 * time.Second

func stampOf(path string) stamp {
	if path == "" {
		return stamp{}
	}
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{} // and reading it says why
	}
	return stamp{idOf(info), info.Size(), info.ModTime().UnixNano(), info.Mode()}
}

func (s stamp) settled() bool { return time.Since(time.Unix(0, s.mtime)) > settles }

// refresh reads the file if it may have changed, and reports whether it has.
func (d *document) refresh() (changed bool) {
	now := [2]stamp{stampOf(d.path), stampOf(d.codec.keys())}
	if d.settled && now == d.stamps {
		return false
	}
	sameKeys := now[1] == d.stamps[1]
	d.stamps, d.settled = now, now[0].settled() && now[1].settled()
	raw, err := readPrivate(d.path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.become([sha256.Size]byte{}, nil, nil)
	case err != nil:
		return d.become([sha256.Size]byte{}, nil, err)
	}
	sum := sha256.Sum256(raw)
	if sum == d.sum && sameKeys {
		return false
	}
	values, err := d.parse(raw)
	return d.become(sum, values, err)
}

func (d *document) become(sum [sha256.Size]byte, values map[string]Value, err error) (changed bool) {
	if err != nil {
		values, err = nil, fmt.Errorf("secrets in the %s: %w", d.source, err)
	}
	same := sum == d.sum && (err == nil) == (d.err == nil) && (err == nil || err.Error() == d.err.Error())
	d.sum, d.values, d.err = sum, values, err
	return !same
}

func (d *document) parse(raw []byte) (map[string]Value, error) {
	text, err := d.codec.decode(raw)
	if err != nil {
		return nil, err
	}
	lines, err := readLines(text)
	values := map[string]Value{}
	for _, l := range lines {
		if l.name != "" {
			values[l.name] = Hide(l.name, l.value)
		}
	}
	return values, err
}

// line is one line of a document: an entry, or something that is kept as it is.
type line struct{ text, name, value string }

// readLines takes a text apart. The error lists the lines that are wrong without
// quoting them: one without a name may be a value that was pasted there.
func readLines(text []byte) (lines []line, err error) {
	if !utf8.Valid(text) {
		return nil, errors.New("the text is not UTF-8")
	}
	var findings []error
	names := map[string]int{}
	for text := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		l, err := readLine(strings.TrimSuffix(text, "\r"))
		lines = append(lines, l)
		number := len(lines)
		if first := names[l.name]; err == nil && first > 0 {
			err = fmt.Errorf("%s is in line %d already", l.name, first)
		}
		if l.name != "" {
			names[l.name] = number
		}
		if err != nil && len(findings) < maxFindings {
			findings = append(findings, &lineError{number, err})
		}
	}
	if len(names) > maxSecrets {
		findings = append(findings, fmt.Errorf("%d secrets, at most %d are kept", len(names), maxSecrets))
	}
	return lines, errors.Join(findings...)
}

// lineError is what is wrong with one line.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

func readLine(text string) (line, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] == '#' {
		return line{text: text}, nil
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return line{}, errors.New("no equals sign: a line is name=value")
	}
	name = strings.TrimSpace(name)
	if err := CheckName(name); err != nil {
		return line{}, err
	}
	l := line{text: text, name: name, value: strings.TrimSpace(value)}
	if strings.HasPrefix(l.value, `"`) {
		if err := json.Unmarshal([]byte(l.value), &l.value); err != nil {
			return l, errors.New("a value that begins with a double quote is a JSON string to the end of its line")
		}
	} else if strings.HasPrefix(l.value, "'") {
		return l, errors.New("a value that begins with a single quote: put it into double quotes, as JSON writes it")
	}
	return l, checkValue(l.value)
}

// edit returns raw with name set to value or, if value is empty, without it. It
// reports whether there was one.
func (d *document) edit(raw []byte, name, value string) (next []byte, found bool, err error) {
	var text []byte
	if raw != nil {
		if text, err = d.codec.decode(raw); err != nil {
			return nil, false, err
		}
	}
	var lines []line
	if len(text) > 0 {
		if lines, err = readLines(text); err != nil {
			return nil, false, err
		}
	}
	at := slices.IndexFunc(lines, func(l line) bool { return l.name == name })
	switch set := (line{text: name + "=" + written(value), name: name, value: value}); {
	case value == "" && at < 0:
		return raw, false, nil
	case value == "":
		lines = slices.Delete(lines, at, at+1)
	case at < 0:
		lines = append(lines, set)
	default:
		lines[at] = set
	}
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	if _, err := readLines(b.Bytes()); err != nil {
		return nil, at >= 0, err
	}
	if b.Len() == 0 && d.source == AgeFile { // nothing is left that somebody would have to open
		return nil, at >= 0, nil
	}
	if b.Len() > maxFile {
		return nil, at >= 0, fmt.Errorf("%d bytes of secrets, at most %d are kept", b.Len(), maxFile)
	}
	next, err = d.codec.encode(b.Bytes(), raw)
	return next, at >= 0, err
}

// written returns value as it stands in a file.
func written(value string) string {
	if !strings.ContainsAny(value, "\n\r") && !strings.HasPrefix(value, `"`) && !strings.HasPrefix(value, "'") {
		return value
	}
	quoted, err := json.Marshal(value)
	if err != nil { // strings always marshal
		return `""` // and this is refused as empty
	}
	return string(quoted)
}

// CheckName refuses what no secret can be called.
func CheckName(name string) error {
	if name == "" || len(name) > maxName || strings.Trim(name, nameChars) != "" || strings.Trim(name[:1], "_-") == "" {
		return fmt.Errorf("a secret's name is letters, digits, _ and -, at most %d, a letter or digit first", maxName)
	}
	return nil
}

const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// checkValue refuses what could not be kept, sent or redacted.
func checkValue(value string) error {
	switch {
	case value == "":
		return errors.New("the value is empty: leave the secret out, or remove it")
	case len(value) < MinValue:
		return fmt.Errorf("the value has %d bytes, allowed are %d and more: a shorter one would be redacted from texts that have nothing to do with it", len(value), MinValue)
	case len(value) > MaxValue:
		return fmt.Errorf("the value has %d bytes, at most %d are kept", len(value), MaxValue)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return errors.New("the value is not text: encode it, as base64 for one")
	case strings.TrimSpace(value) != value:
		return errors.New("the value begins or ends with a space or a line break: take it off")
	case strings.Contains(value, scheme):
		return fmt.Errorf("the value has %s in it, which stands for a secret: set the value itself", scheme)
	}
	return nil
}

// checkMarkers refuses values that would be seen in what stands in for values.
func checkMarkers(values []Value) error {
	var markers strings.Builder
	for _, v := range values {
		markers.WriteString(marker(v.Name()) + "\x00") // which no value has
	}
	for _, v := range values {
		if strings.Contains(markers.String(), v.Reveal()) {
			return fmt.Errorf("secret %s: its value is part of the name of a secret, or of the word redacted: choose another", v.Name())
		}
	}
	return nil
}

package llm

import (
	"bufio"
	"errors"
	"io"
)

// errLongEvent is an event that is larger than is allowed.
var errLongEvent = errors.New("an event is too large")

// An eventReader reads an event stream (WHATWG HTML, "Server-sent events"): lines that
// end in LF, CR or both, comments, and fields with or without a space behind the
// colon. An event that is cut off by the end is none.
type eventReader struct {
	in   *bufio.Reader
	most int // bytes of a line, and of the data of an event

	begun  bool // the first line was read
	skipLF bool // the last line ended in CR
	line   []byte
	data   []byte
}

func newEventReader(in io.Reader, most int) *eventReader {
	return &eventReader{in: bufio.NewReaderSize(in, 16<<10), most: most}
}

// next returns the kind and the data of the next event that has data; the data is good
// until the next call. At the end the error is io.EOF.
func (r *eventReader) next() (kind string, data []byte, err error) {
	r.data = r.data[:0]
	filled := false
	for {
		line, err := r.readLine()
		if err != nil {
			return "", nil, err
		}
		if len(line) == 0 {
			if filled {
				return kind, r.data[:len(r.data)-1], nil
			}
			kind = ""
			continue
		}
		switch name, value := field(line); name {
		case "event":
			kind = string(value)
		case "data":
			if len(r.data)+len(value) >= r.most {
				return "", nil, errLongEvent
			}
			r.data, filled = append(append(r.data, value...), '\n'), true
		}
	}
}

// field splits a line; a comment has an empty name.
func field(line []byte) (name string, value []byte) {
	for i, c := range line {
		if c == ':' {
			value = line[i+1:]
			if len(value) > 0 && value[0] == ' ' {
				value = value[1:]
			}
			return string(line[:i]), value
		}
	}
	return string(line), nil
}

// readLine returns the next whole line without its end; it is good until the next call.
func (r *eventReader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			return nil, err
		}
		skip := r.skipLF && c == '\n'
		r.skipLF = c == '\r'
		switch {
		case skip:
		case c == '\n' || c == '\r':
			line := r.line
			if !r.begun {
				r.begun = true
				line = withoutMark(line)
			}
			return line, nil
		case len(r.line) == r.most:
			return nil, errLongEvent
		default:
			r.line = append(r.line, c)
		}
	}
}

// withoutMark removes the byte order mark that a stream may begin with.
func withoutMark(line []byte) []byte {
	if len(line) >= 3 && string(line[:3]) == "\xEF\xBB\xBF" {
		return line[3:]
	}
	return line
}

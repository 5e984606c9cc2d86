package llm

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestEventStreams holds the reader to the algorithm of the WHATWG.
func TestEventStreams(t *testing.T) {
	for name, tt := range map[string]struct {
		stream string
		want   []string
	}{
		"one line":               {"data: a\n\n", []string{"a"}},
		"no space":               {"data:a\n\n", []string{"a"}},
		"one space is dropped":   {"data:  a \n\n", []string{" a "}},
		"several lines":          {"data: a\ndata:b\ndata\ndata: c\n\n", []string{"a\nb\n\nc"}},
		"CRLF":                   {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		"CRLF in an event":       {"data: a\r\ndata: b\r\n\r\n", []string{"a\nb"}},
		"CR":                     {"data: a\r\rdata: b\r\r", []string{"a", "b"}},
		"comments":               {": OPENROUTER PROCESSING\n\n:\n\ndata: a\n: x\n\n", []string{"a"}},
		"kind":                   {"event: error\ndata: a\n\ndata: b\n\n", []string{"error!a", "b"}},
		"kind of nothing":        {"event: error\n\ndata: b\n\n", []string{"b"}},
		"other fields":           {"retry: 10\nid: 7\nfoo: bar\ndata: a\n\n", []string{"a"}},
		"empty data":             {"data\n\ndata:\n\n", []string{"", ""}},
		"byte order mark":        {"\xEF\xBB\xBFdata: a\n\n", []string{"a"}},
		"mark, later":            {"data: a\n\n\xEF\xBB\xBFdata: b\n\n", []string{"a"}},
		"cut in an event":        {"data: a\n\ndata: b\n", []string{"a"}},
		"cut in a line":          {"data: a\n\ndata: b", []string{"a"}},
		"nothing":                {"", nil},
		"colon first, then data": {":data: a\ndata: b: c\n\n", []string{"b: c"}},
	} {
		for reader, in := range map[string]io.Reader{
			"whole": strings.NewReader(tt.stream), "by bytes": iotest.OneByteReader(strings.NewReader(tt.stream)),
		} {
			got, err := events(newEventReader(in, 100))
			if !slices.Equal(got, tt.want) || !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: %q, %v, want %q", name, reader, got, err, tt.want)
			}
		}
	}
}

func events(r *eventReader) (all []string, err error) {
	for {
		kind, data, err := r.next()
		if err != nil {
			return all, err
		}
		if kind != "" {
			kind += "!"
		}
		all = append(all, kind+string(data))
	}
}

func TestEventsAreBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		stream string
		fits   bool
	}{
		"a line that fits":      {"data: " + strings.Repeat("x", 94) + "\n\n", true},
		"a line that is longer": {"data: " + strings.Repeat("x", 95) + "\n\n", false},
		"a comment":             {":" + strings.Repeat("x", 100) + "\n\n", false},
		"lines that fit":        {strings.Repeat("data: "+strings.Repeat("x", 49)+"\n", 2) + "\n", true},
		"lines that are longer": {strings.Repeat("data: "+strings.Repeat("x", 50)+"\n", 2) + "\n", false},
		"empty lines of data":   {strings.Repeat("data\n", 200) + "\n", false},
	} {
		_, err := events(newEventReader(strings.NewReader(tt.stream), 100))
		if errors.Is(err, errLongEvent) == tt.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

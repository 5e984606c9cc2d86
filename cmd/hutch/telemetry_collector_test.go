package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	figures "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector is one that takes what comes, over HTTP as any other.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	raw    bytes.Buffer // all that came, unpacked
	spans  map[string]*traces.Span
	about  map[string]string
	series map[string][]*figures.HistogramDataPoint
	header http.Header
	came   int
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{spans: map[string]*traces.Span{}, series: map[string][]*figures.HistogramDataPoint{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			t.Error(err)
		}
	}))
	return c
}

func (c *collector) take(r *http.Request) error {
	if r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("Content-Encoding") != "gzip" {
		return fmt.Errorf("headers %v", r.Header)
	}
	unpacked, err := gzip.NewReader(r.Body)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(unpacked)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came++
	c.raw.Write(body)
	c.header = r.Header
	switch r.URL.Path {
	case "/v1/traces":
		var all traces.TracesData
		if err := proto.Unmarshal(body, &all); err != nil {
			return err
		}
		for _, of := range all.ResourceSpans {
			c.about = attributesOf(of.Resource.Attributes)
			for _, s := range of.ScopeSpans {
				for _, span := range s.Spans {
					c.spans[string(span.SpanId)] = span
				}
			}
		}
	case "/v1/metrics":
		var all figures.MetricsData
		if err := proto.Unmarshal(body, &all); err != nil {
			return err
		}
		for _, of := range all.ResourceMetrics {
			for _, s := range of.ScopeMetrics {
				for _, m := range s.Metrics {
					c.series[m.Name] = m.GetHistogram().DataPoints
				}
			}
		}
	default:
		return fmt.Errorf("path %s", r.URL.Path)
	}
	return nil
}

func attributesOf(all []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range all {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			m[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			m[a.Key] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_DoubleValue:
			m[a.Key] = "a number"
		case *common.AnyValue_ArrayValue:
			for _, one := range v.ArrayValue.Values {
				m[a.Key] += one.GetStringValue()
			}
		}
	}
	return m
}

// tree is what came, as lines that are indented below their parents.
func (c *collector) tree() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	below := map[string][]*traces.Span{}
	for _, s := range c.spans {
		parent := string(s.ParentSpanId)
		if c.spans[parent] == nil {
			parent = ""
		}
		below[parent] = append(below[parent], s)
	}
	var b strings.Builder
	var write func(id, margin string)
	write = func(id, margin string) {
		slices.SortFunc(below[id], func(a, b *traces.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
		for _, s := range below[id] {
			fmt.Fprintf(&b, "%s%s\n", margin, s.Name)
			write(string(s.SpanId), margin+"  ")
		}
	}
	write("", "")
	return b.String()
}

// named returns the first span of that name, and its attributes.
func (c *collector) named(t *testing.T, name string) (*traces.Span, map[string]string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *traces.Span
	for _, s := range c.spans {
		if s.Name == name && (found == nil || s.StartTimeUnixNano < found.StartTimeUnixNano) {
			found = s
		}
	}
	if found == nil {
		t.Fatalf("there is no span %s", name)
	}
	return found, attributesOf(found.Attributes)
}

// says reports whether a text is anywhere in what came.
func (c *collector) says(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.raw.Bytes(), []byte(text))
}

// asksScript is what the agent of these tests says: it calls a tool that asks the host.
const asksScript = `
- match: {role: tool}
  say: "a confidential answer"
- match: {text: go}
  say: "one moment. "
  call: {tool: asks, args: {word: "a confidential argument"}}
- say: "a confidential answer"
`

// aSecret is a value that is granted to the tool, and that the page it asks repeats.
const aSecret = "hunter2-hunter2-hunter2"

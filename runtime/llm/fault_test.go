package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/llm"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

// ask takes one turn in a bubble, where waiting takes no time.
func ask(t *testing.T, o llm.OpenAIOptions, answers ...llmtest.Answer) (got llmtest.Turn, took time.Duration, retries []llm.Retry, asked int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.OnRetry = func(r llm.Retry) { retries = append(retries, r) }
		m, server := against(t, o, answers...)
		begin := time.Now()
		got = llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
		took, asked = time.Since(begin), len(server.Requests())
	})
	return got, took, retries, asked
}

func busy(after string) llmtest.Answer {
	a := llmtest.Refuse(http.StatusTooManyRequests, "rate_limit_exceeded", "slow down")
	if after != "" {
		a = a.With("Retry-After", after)
	}
	return a
}

// TestWhatIsTriedAgain: 429, 5xx and faults of the network, as long as nothing was said.
func TestWhatIsTriedAgain(t *testing.T) {
	down := llmtest.Plain(http.StatusBadGateway, "text/html", "<html>bad gateway</html>")
	cutAt := func(n int) llmtest.Answer { a := saying("hi"); a.Cut = n; return a }
	hang := llmtest.Answer{Before: time.Hour}
	overloaded := llmtest.Stream(llmtest.Raw(`data: {"error":{"message":"Overloaded","type":"overloaded_error"}}` + "\n\n"))
	for name, tt := range map[string]struct {
		answers   []llmtest.Answer
		tries     int
		least, by time.Duration
		err       error
	}{
		"nothing is wrong":         {[]llmtest.Answer{saying("hi")}, 1, 0, 0, nil},
		"429":                      {[]llmtest.Answer{busy(""), saying("hi")}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil},
		"429, asked to wait":       {[]llmtest.Answer{busy("7"), saying("hi")}, 2, 7 * time.Second, 7700 * time.Millisecond, nil},
		"429, in milliseconds":     {[]llmtest.Answer{busy("").With("Retry-After-Ms", "1500"), saying("hi")}, 2, 1500 * time.Millisecond, 1650 * time.Millisecond, nil},
		"429, asked for a day":     {[]llmtest.Answer{busy("86400"), saying("hi")}, 2, time.Minute, time.Minute, nil},
		"429, asked for ages":      {[]llmtest.Answer{busy("1e300"), saying("hi")}, 2, time.Minute, time.Minute, nil},
		"429, until a date":        {[]llmtest.Answer{busy("Sat, 01 Jan 2000 00:00:30 GMT"), saying("hi")}, 2, 30 * time.Second, 33 * time.Second, nil}, // a bubble begins in 2000
		"429, nonsense":            {[]llmtest.Answer{busy("soon"), saying("hi")}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil},
		"429, before now":          {[]llmtest.Answer{busy("-5"), saying("hi")}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil},
		"500, then fine":           {[]llmtest.Answer{llmtest.Refuse(500, "", "oops"), saying("hi")}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil},
		"a proxy's page":           {[]llmtest.Answer{down, down, saying("hi")}, 3, 750 * time.Millisecond, 1500 * time.Millisecond, nil},
		"down for ever":            {[]llmtest.Answer{down, down, down, down}, 4, 1750 * time.Millisecond, 3500 * time.Millisecond, chat.ErrUnavailable},
		"no answer, a broken line": {[]llmtest.Answer{{Cut: -1}, saying("hi")}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil},
		"cut before a word":        {[]llmtest.Answer{cutAt(10), saying("hi")}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil},
		"ended before a word":      {[]llmtest.Answer{{Header: http.Header{"Content-Type": {"text/event-stream"}}}, saying("hi")}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil},
		"an error in the stream":   {[]llmtest.Answer{overloaded, saying("hi")}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil},
		"silence, then fine":       {[]llmtest.Answer{hang, saying("hi")}, 2, 60250 * time.Millisecond, 60500 * time.Millisecond, nil},
		"silence":                  {[]llmtest.Answer{hang, hang}, 2, 120 * time.Second, 120 * time.Second, chat.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			got, took, retries, asked := ask(t, llm.OpenAIOptions{}, tt.answers...)
			if asked != tt.tries || len(retries) != tt.tries-1 || took < tt.least || took > tt.by {
				t.Errorf("tried %d times in %v, told of %v; want %d in %v to %v", asked, took, retries, tt.tries, tt.least, tt.by)
			}
			if !errors.Is(got.Err, tt.err) || (tt.err == nil) != (got.Text == "hi") {
				t.Errorf("said %q, %v, want %v", got.Text, got.Err, tt.err)
			}
		})
	}
}

// TestWhatIsNotTriedAgain, and what is said of it.
func TestWhatIsNotTriedAgain(t *testing.T) {
	page := llmtest.Plain(200, "text/html; charset=utf-8", "<html>welcome</html>")
	whole := llmtest.Plain(200, "application/json", `{"choices":[{"message":{"content":"hi"}}]}`)
	inJSON := llmtest.Plain(200, "application/json", `{"error":{"message":"no such model","code":404}}`)
	started := llmtest.Stream(llmtest.Say("so"))
	failing := llmtest.Stream(llmtest.Say("so"), llmtest.Raw(`data: {"error":{"message":"the GPU is gone","code":502}}`+"\n\n"))
	object := llmtest.Stream(llmtest.Raw(`data: {"object":"error","message":"no such thing","type":"invalid_request_error","code":400}` + "\n\n"))
	for name, tt := range map[string]struct {
		answer llmtest.Answer
		err    error
		text   string
	}{
		"400":                   {llmtest.Refuse(400, "", "bad\nschema"), chat.ErrRefused, "refused by the provider: 400: bad schema"},
		"401":                   {llmtest.Refuse(401, "invalid_api_key", "Incorrect API key provided: sk-12*****89"), chat.ErrRefused, "refused by the provider: 401: it wants a key and was sent none: name one as key_env or key_file of the model"},
		"403":                   {llmtest.Refuse(403, "", "not in your country"), chat.ErrRefused, "refused by the provider: 403: not in your country"},
		"404":                   {llmtest.Refuse(404, "model_not_found", "no model x"), chat.ErrRefused, "refused by the provider: 404: no model x: check the model's name and the base URL"},
		"404, a page":           {llmtest.Plain(404, "text/html", "<html>"), chat.ErrRefused, "refused by the provider: 404 Not Found: check the model's name and the base URL"},
		"422, FastAPI":          {llmtest.Plain(422, "application/json", `{"detail":"top_k is wrong"}`), chat.ErrRefused, "refused by the provider: 422: top_k is wrong"},
		"422, FastAPI's list":   {llmtest.Plain(422, "application/json", `{"detail":[{"msg":"x"}]}`), chat.ErrRefused, "refused by the provider: 422 Unprocessable Entity"},
		"400, a text":           {llmtest.Plain(400, "application/json", `{"error":"no tools here"}`), chat.ErrRefused, "refused by the provider: 400: no tools here"},
		"400, a list":           {llmtest.Plain(400, "application/json", `[{"error":{"code":400,"message":"bad name"}}]`), chat.ErrRefused, "refused by the provider: 400: bad name"},
		"408":                   {llmtest.Refuse(408, "", "late"), chat.ErrRefused, "refused by the provider: 408: late"},
		"429, no money":         {llmtest.Refuse(429, "insufficient_quota", "You exceeded your current quota"), chat.ErrUnavailable, "the provider is unavailable: 429: You exceeded your current quota"},
		"429, told not to":      {busy("").With("X-Should-Retry", "false"), chat.ErrUnavailable, "the provider is unavailable: 429: slow down"},
		"500, told not to":      {llmtest.Refuse(500, "", "never").With("X-Should-Retry", "false"), chat.ErrUnavailable, "the provider is unavailable: 500: never"},
		"redirect":              {llmtest.Plain(307, "text/plain", "").With("Location", "http://other.test/"), chat.ErrRefused, "refused by the provider: it redirects, which is not followed: check the base URL"},
		"204":                   {llmtest.Answer{Status: 204}, chat.ErrMalformed, "not an answer: status 204 and no stream"},
		"a page":                {page, chat.ErrMalformed, `not an answer: it is "text/html; charset=utf-8" instead of an event stream: check that the base URL is the one that /chat/completions stands below`},
		"no stream":             {whole, chat.ErrMalformed, `not an answer: it is "application/json" instead of an event stream: check that the base URL is the one that /chat/completions stands below`},
		"an error with 200":     {inJSON, chat.ErrRefused, "refused by the provider: 404: no such model: check the model's name and the base URL"},
		"an error object":       {object, chat.ErrRefused, "refused by the provider: 400: no such thing"},
		"no JSON":               {llmtest.Stream(llmtest.Raw("data: {\"choices\":[\n\n")), chat.ErrMalformed, "not an answer: an event of its stream is no JSON object"},
		"another JSON":          {llmtest.Stream(llmtest.Raw("data: [1]\n\n")), chat.ErrMalformed, "not an answer: an event of its stream is no JSON object"},
		"a call without a name": {llmtest.Stream([]string{llmtest.ToolCall(map[string]any{"index": 0, "id": "x"})}, llmtest.Done()), chat.ErrMalformed, "not an answer: it calls a tool and does not say which"},
		"cut after a word":      {started, chat.ErrCut, "the answer was cut off: its stream ended without a finish_reason"},
		"broken after a word":   {broken(started), chat.ErrCut, "the answer was cut off: it closed the connection"},
		"an error after a word": {failing, chat.ErrUnavailable, "the provider is unavailable: 502: the GPU is gone"},
		"finished by an error":  {llmtest.Stream(llmtest.Say("so"), llmtest.Finish("error"), llmtest.Done()), chat.ErrCut, "the answer was cut off: it says that it ended with an error"},
		"silent after a word":   {hanging(started), chat.ErrTimeout, "the model took too long: nothing came for 1m0s, the limit idle of the model"},
		"slow for ever":         {slowly(started), chat.ErrTimeout, "the model took too long: no whole answer within 2m0s, the limit total of the model"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, retries, asked := ask(t, llm.OpenAIOptions{}, tt.answer)
			if asked != 1 || len(retries) > 0 {
				t.Errorf("tried %d times", asked)
			}
			if !errors.Is(got.Err, tt.err) || got.Err.Error() != tt.text {
				t.Errorf("%v\nwant %s", got.Err, tt.text)
			}
		})
	}
}

// Who has given a key is told to look at that one.
func TestAKeyThatIsRefused(t *testing.T) {
	got, _, _, _ := ask(t, llm.OpenAIOptions{Key: "sk-12345678"}, llmtest.Refuse(401, "invalid_api_key", "Incorrect API key provided: sk-12*****89"))
	if want := "refused by the provider: 401: check the key"; got.Err == nil || got.Err.Error() != want {
		t.Errorf("%v, want %s", got.Err, want)
	}
}

func broken(a llmtest.Answer) llmtest.Answer  { a.Cut = a.Size(); return a }
func hanging(a llmtest.Answer) llmtest.Answer { a.Hang = true; return a }

func slowly(a llmtest.Answer) llmtest.Answer {
	a.Events, a.Pace = append(slices.Clone(a.Events), slices.Repeat([]string{": wait\n\n"}, 100)...), 30*time.Second
	return a
}

func TestErrorsSayHowOftenItWasTried(t *testing.T) {
	got, _, _, _ := ask(t, llm.OpenAIOptions{Attempts: 2}, busy(""), busy(""))
	if want := "the provider is unavailable: 429: slow down (tried 2 times)"; got.Err == nil || got.Err.Error() != want {
		t.Errorf("%v, want %s", got.Err, want)
	}
}

// TestWaitingEnds: with the caller, and at once if no time would be left.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := against(t, llm.OpenAIOptions{}, busy("50"))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		begin := time.Now()
		got := llmtest.Take(t, m.Stream(ctx, llmtest.Ask("go")))
		if took := time.Since(begin); took > time.Second || !errors.Is(got.Err, chat.ErrUnavailable) {
			t.Errorf("with a deadline: after %v: %v", took, got.Err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m, _ := against(t, llm.OpenAIOptions{}, busy("50"))
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		time.AfterFunc(5*time.Second, cancel)
		got := llmtest.Take(t, m.Stream(ctx, llmtest.Ask("go")))
		if took := time.Since(begin); took != 5*time.Second || !errors.Is(got.Err, context.Canceled) {
			t.Errorf("cancelled: after %v: %v", took, got.Err)
		}
	})
}

// TestAWholeAnswerDoesNotWaitForItsEnd: what finished is an answer, even if the
// connection then stays open or breaks.
func TestAWholeAnswerDoesNotWaitForItsEnd(t *testing.T) {
	finished := llmtest.Stream(llmtest.Say("hi"), llmtest.Finish("stop"))
	for name, a := range map[string]llmtest.Answer{"open": hanging(finished), "broken": broken(finished)} {
		got, took, _, _ := ask(t, llm.OpenAIOptions{}, a)
		if got.Err != nil || got.Stop != chat.StopEnd || took > 5*time.Second {
			t.Errorf("%s: after %v: %q, %v", name, took, got.Stop, got.Err)
		}
	}
	done := hanging(saying("hi"))
	if got, took, _, _ := ask(t, llm.OpenAIOptions{}, done); got.Err != nil || took > 0 {
		t.Errorf("[DONE]: after %v: %v", took, got.Err)
	}
}

// TestASlowReaderIsNotASilentProvider: the time in which deltas are handled is not held
// against the provider.
func TestASlowReaderIsNotASilentProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := against(t, llm.OpenAIOptions{Idle: time.Second}, saying("a", "b", "c"))
		for _, err := range m.Stream(t.Context(), llmtest.Ask("go")) {
			if err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// TestAnswersCutAtAnyByte: none passes for a whole one.
func TestAnswersCutAtAnyByte(t *testing.T) {
	whole := llmtest.Stream(llmtest.Say("he", "llo"), llmtest.Call(0, "x", "f", `{"a":`, `1}`), llmtest.Finish("tool_calls"), llmtest.Usage(8, 4), llmtest.Done())
	finish := strings.Index(strings.Join(whole.Events, ""), `"finish_reason":"tool_calls"`)
	for _, end := range []string{"ends", "breaks"} {
		var answers []llmtest.Answer
		for n := 1; n <= whole.Size(); n++ {
			a := whole
			if end == "ends" {
				a.End = n
			} else {
				a.Cut = n
			}
			answers = append(answers, a)
		}
		m, _ := against(t, llm.OpenAIOptions{Attempts: 1}, answers...)
		for n := 1; n <= whole.Size(); n++ {
			got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
			if n < finish && !errors.Is(got.Err, chat.ErrCut) || got.Err == nil && summaryWithoutUsage(got) != `hello|f({"a":1}) calls` {
				t.Fatalf("%s after %d of %d bytes: %s, %v", end, n, whole.Size(), got, got.Err)
			}
			if !strings.HasPrefix("hello", got.Text) || n == whole.Size() && got.Err != nil {
				t.Fatalf("%s after %d bytes: %q, %v", end, n, got.Text, got.Err)
			}
		}
	}
}

func summaryWithoutUsage(got llmtest.Turn) string {
	got.Usage = nil
	return got.String()
}

// TestAnswersAreBounded: each bound lets through what is as large as it, and no more.
func TestAnswersAreBounded(t *testing.T) {
	finish := slices.Concat(llmtest.Finish("stop"), llmtest.Done())
	text := func(n int) [][]string {
		return [][]string{llmtest.Say(strings.Repeat("x", n/2), strings.Repeat("x", n-n/2)), finish}
	}
	arguments := func(n int) [][]string { return [][]string{llmtest.Call(0, "x", "f", strings.Repeat("x", n)), finish} }
	many := func(n int) (all [][]string) {
		for i := range n {
			all = append(all, llmtest.Call(i, fmt.Sprint(i), "f", "{}"))
		}
		return append(all, finish)
	}
	noise := func(n int) [][]string {
		return [][]string{slices.Repeat([]string{": " + strings.Repeat("x", 1<<16) + "\n"}, n), llmtest.Say("hi"), finish}
	}
	for name, tt := range map[string]struct {
		o     llm.OpenAIOptions
		make  func(n int) [][]string
		fits  int
		over  int
		words string
	}{
		"text":      {llm.OpenAIOptions{MaxAnswer: 1000}, text, 1000, 1001, "the answer is too large: more than 1000 bytes"},
		"arguments": {llm.OpenAIOptions{MaxArguments: 100}, arguments, 100, 101, "the answer is too large: a call of a tool has arguments of more than 100 bytes"},
		"calls":     {llm.OpenAIOptions{MaxCalls: 3}, many, 3, 4, "the answer is too large: more than 3 calls of tools at once"},
		"all calls": {llm.OpenAIOptions{MaxAnswer: 1000}, arguments, 999, 1000, "the answer is too large: more than 1000 bytes"},
		"an event":  {llm.OpenAIOptions{MaxAnswer: 1000}, func(n int) [][]string { return [][]string{llmtest.Say(strings.Repeat("x", n)), finish} }, 1000, 70_000, "the answer is too large: an event of its stream has more than 67536 bytes"},
		"a stream":  {llm.OpenAIOptions{MaxAnswer: 1 << 10}, noise, 17, 18, "the answer is too large: its stream has more than 1179648 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := against(t, tt.o, llmtest.Stream(tt.make(tt.fits)...), llmtest.Stream(tt.make(tt.over)...))
			if got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go"))); got.Err != nil {
				t.Errorf("%d: %v", tt.fits, got.Err)
			}
			got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
			if !errors.Is(got.Err, chat.ErrLimit) || got.Err.Error() != tt.words {
				t.Errorf("%d: %v, want %s", tt.over, got.Err, tt.words)
			}
		})
	}
}

// TestSilentEventsAreBounded: those in a row, and not those of a whole answer.
func TestSilentEventsAreBounded(t *testing.T) {
	silent := func(n int) []string { return slices.Repeat([]string{llmtest.Delta(map[string]any{})}, n) }
	finish := llmtest.Finish("stop")
	for name, tt := range map[string]struct {
		events [][]string
		err    error
	}{
		"in parts":         {[][]string{llmtest.Say("a"), silent(9_000), llmtest.Say("b"), silent(9_000), finish, llmtest.Done()}, nil},
		"too many":         {[][]string{llmtest.Say("a"), silent(10_001), finish, llmtest.Done()}, chat.ErrMalformed},
		"behind an answer": {[][]string{llmtest.Say("a"), finish, silent(20_000)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := against(t, llm.OpenAIOptions{Attempts: 1}, llmtest.Stream(tt.events...))
			if got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go"))); !errors.Is(got.Err, tt.err) {
				t.Errorf("%v, want %v", got.Err, tt.err)
			}
		})
	}
}

// TestErrorsAreReadWithinBounds: a provider that never ends an error page.
func TestErrorsAreReadWithinBounds(t *testing.T) {
	endless := llmtest.Plain(400, "application/json", `{"error":{"message":"`+strings.Repeat("x", 1<<20))
	endless.Hang = true
	got, took, _, _ := ask(t, llm.OpenAIOptions{}, endless)
	if want := "refused by the provider: 400 Bad Request"; got.Err == nil || got.Err.Error() != want || took > 0 {
		t.Errorf("after %v: %v", took, got.Err)
	}
	long := llmtest.Refuse(400, "", strings.Repeat("long ", 1000))
	if got, _, _, _ := ask(t, llm.OpenAIOptions{}, long); got.Err == nil || len(got.Err.Error()) > 400 {
		t.Errorf("%v", got.Err)
	}
}

// TestOverflowIsNamed in the words of many providers.
func TestOverflowIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		answer llmtest.Answer
		want   chat.OverflowError
	}{
		"OpenAI":           {llmtest.Refuse(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages."), chat.OverflowError{Which: "context", Most: 8192, Found: 9000}},
		"OpenAI, answer":   {llmtest.Refuse(400, "invalid_value", "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000."), chat.OverflowError{Which: "answer", Most: 16384, Found: 100000}},
		"vLLM":             {llmtest.Plain(400, "application/json", `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).","code":400}`), chat.OverflowError{Which: "context", Most: 4096, Found: 5000}},
		"OpenRouter":       {llmtest.Refuse(400, "", "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (39000 of text input, 1000 in the output)."), chat.OverflowError{Which: "context", Most: 32768, Found: 40000}},
		"llama.cpp":        {llmtest.Plain(400, "application/json", `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`), chat.OverflowError{Which: "context", Most: 4096, Found: 9000}},
		"Anthropic":        {llmtest.Refuse(400, "", "prompt is too long: 210000 tokens > 200000 maximum"), chat.OverflowError{Which: "context", Most: 200000, Found: 210000}},
		"Gemini":           {llmtest.Plain(400, "application/json", `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`), chat.OverflowError{Which: "context", Most: 1048576, Found: 1200000}},
		"Mistral":          {llmtest.Plain(400, "application/json", `{"object":"error","message":"Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error"}`), chat.OverflowError{Which: "context", Most: 32768, Found: 33000}},
		"DeepSeek, answer": {llmtest.Refuse(400, "", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), chat.OverflowError{Which: "answer", Most: 8192}},
		"Groq, per minute": {llmtest.Refuse(413, "rate_limit_exceeded", "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000"), chat.OverflowError{Which: "request", Most: 6000, Found: 7000}},
		"a proxy":          {llmtest.Plain(413, "text/html", "<html>"), chat.OverflowError{Which: "request"}},
		"in other words":   {llmtest.Refuse(400, "", "Input exceeds the context window of this model"), chat.OverflowError{Which: "context"}},
		"in the stream":    {llmtest.Stream(llmtest.Raw(`data: {"error":{"message":"too long","code":"context_length_exceeded"}}` + "\n\n")), chat.OverflowError{Which: "context"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, _, asked := ask(t, llm.OpenAIOptions{}, tt.answer)
			var is *chat.OverflowError
			if !errors.As(got.Err, &is) || *is != tt.want || !errors.Is(got.Err, chat.ErrOverflow) || asked != 1 {
				t.Errorf("%v, tried %d times, want %+v", got.Err, asked, tt.want)
			}
		})
	}
}

package chat

// Request is one turn of a model.
type Request struct {
	Model string
	// Messages are the whole conversation, oldest first. Each call of a tool in it has
	// its answer right behind the message that asked for it.
	Messages []Message
	// Tools are what the model may call, in this order.
	Tools []Function
	// MaxTokens bounds the answer; 0 is the provider's own bound.
	MaxTokens int
}

// Delta is a piece of what a model answers. Exactly one field is set, but that Stop and
// Usage may come together.
type Delta struct {
	// Text continues the answer.
	Text string
	// Reasoning continues what the model thinks, where it says so.
	Reasoning string
	// Call begins or continues a call of a tool.
	Call *CallDelta
	// Stop is why the model stopped; the last delta has it.
	Stop Stop
	// Usage is what the turn cost, as far as the provider says.
	Usage *Usage
}

// CallDelta is a piece of a call. The first one of an index has ID and Name.
type CallDelta struct {
	Index     int
	ID        string
	Name      string
	Arguments string // continues the text of the arguments
}

// Stop is why a model stopped.
type Stop string

// The reasons.
const (
	StopEnd    Stop = "end"    // it has answered
	StopCalls  Stop = "calls"  // it wants tools called
	StopLength Stop = "length" // MaxTokens, or the provider's own bound
	StopFilter Stop = "filter" // the provider withheld it
)

// Usage counts tokens. Totals include their parts; 0 is not known.
type Usage struct {
	Provider              string `json:"provider,omitempty"`
	Model                 string `json:"model,omitempty"`
	InputTokens           int64  `json:"inputTokens,omitempty"`
	OutputTokens          int64  `json:"outputTokens,omitempty"`
	TotalTokens           int64  `json:"totalTokens,omitempty"`
	ReasoningTokens       int64  `json:"reasoningTokens,omitempty"`
	CachedInputTokens     int64  `json:"cachedInputTokens,omitempty"`
	CacheWriteInputTokens int64  `json:"cacheWriteInputTokens,omitempty"`
}

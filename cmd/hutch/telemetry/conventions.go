package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// schemaURL names the conventions that are followed.
const schemaURL = "https://opentelemetry.io/schemas/1.41.0"

// Attributes of the conventions.
const (
	keyService        = attribute.Key("service.name")
	keyServiceVersion = attribute.Key("service.version")
	keyError          = attribute.Key("error.type")
	keyServer         = attribute.Key("server.address")
	keyServerPort     = attribute.Key("server.port")
	keyPeer           = attribute.Key("network.peer.address")
	keyMethod         = attribute.Key("http.request.method")
	keyRoute          = attribute.Key("http.route")
	keyStatus         = attribute.Key("http.response.status_code")
	keyMCPMethod      = attribute.Key("mcp.method.name")

	keyOperation    = attribute.Key("gen_ai.operation.name")
	keyProvider     = attribute.Key("gen_ai.provider.name")
	keyAgent        = attribute.Key("gen_ai.agent.name")
	keyConversation = attribute.Key("gen_ai.conversation.id")
	keyModel        = attribute.Key("gen_ai.request.model")
	keyMaxTokens    = attribute.Key("gen_ai.request.max_tokens")
	keyAnswered     = attribute.Key("gen_ai.response.model")
	keyFinish       = attribute.Key("gen_ai.response.finish_reasons")
	keyFirst        = attribute.Key("gen_ai.response.time_to_first_chunk")
	keyIn           = attribute.Key("gen_ai.usage.input_tokens")
	keyOut          = attribute.Key("gen_ai.usage.output_tokens")
	keyCached       = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	keyThought      = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	keyTokenType    = attribute.Key("gen_ai.token.type")
	keyTool         = attribute.Key("gen_ai.tool.name")
	keyToolType     = attribute.Key("gen_ai.tool.type")
	keyCall         = attribute.Key("gen_ai.tool.call.id")
	keyArguments    = attribute.Key("gen_ai.tool.call.arguments")
	keyResult       = attribute.Key("gen_ai.tool.call.result")
	keyInstructions = attribute.Key("gen_ai.system_instructions")
	keyInput        = attribute.Key("gen_ai.input.messages")
	keyOutput       = attribute.Key("gen_ai.output.messages")
)

// Attributes that are ours.
const (
	keyRequest    = attribute.Key("hutch.request.id")
	keyRun        = attribute.Key("hutch.run.id")
	keyOutcome    = attribute.Key("hutch.run.outcome")
	keyFace       = attribute.Key("hutch.face")
	keyCallStatus = attribute.Key("hutch.call.status")
	keyFuel       = attribute.Key("hutch.call.fuel")
	keyHostCalls  = attribute.Key("hutch.call.host_calls")
	keyModule     = attribute.Key("hutch.module.name")
	keyDigest     = attribute.Key("hutch.module.digest")
	keyOp         = attribute.Key("hutch.host_call.op")
	keyCode       = attribute.Key("hutch.host_call.code")
	keySent       = attribute.Key("hutch.host_call.sent")
	keyReceived   = attribute.Key("hutch.host_call.received")
	keyRedactions = attribute.Key("hutch.host_call.redactions")
)

// Operations, and the provider of models that are hutch's own.
const (
	opRun  = "invoke_agent"
	opChat = "chat"
	opTool = "execute_tool"

	ownProvider = "hutch"
)

// meters are the figures.
type meters struct {
	operations, requests, hostCalls metric.Float64Histogram // seconds
	tokens                          metric.Int64Histogram
}

func newMeters(m metric.Meter) (all meters, err error) {
	for _, h := range []struct {
		to          *metric.Float64Histogram
		name, means string
		first       float64
	}{
		{&all.operations, "gen_ai.client.operation.duration", "How long runs, answers of models and calls of tools took.", .01},
		{&all.requests, "http.server.request.duration", "How long HTTP requests took, streams included.", .005},
		{&all.hostCalls, "hutch.host_call.duration", "How long operations took that tools asked of the host.", .001},
	} {
		if *h.to, err = m.Float64Histogram(h.name, metric.WithUnit("s"), metric.WithDescription(h.means), metric.WithExplicitBucketBoundaries(doubling(h.first, 2, 14)...)); err != nil {
			return all, err
		}
	}
	all.tokens, err = m.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"),
		metric.WithDescription("Tokens that models read and wrote."), metric.WithExplicitBucketBoundaries(doubling(1, 4, 14)...))
	return all, err
}

// doubling are n bounds of buckets, each that many times the one before.
func doubling(first, times float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = first
		first *= times
	}
	return all
}

package capability

import (
	"strings"
	"testing"
)

// Digests of modules in tests.
var (
	digestA = strings.Repeat("a", 64)
	digestB = strings.Repeat("b", 64)
	defsA   = strings.Repeat("1", 64)
	defsB   = strings.Repeat("2", 64)
)

// full is the example of the grammar, with each part of it.
var full = strings.NewReplacer("DIGEST", "sha256:"+digestA, "DEFS", "sha256:"+defsA).Replace(`# who may do what
version: 1
defaults: {limits: {memory: 64MiB, timeout: 30s, output: 1MiB, host_calls: 1000}, approval: allow}
modules:
  github.wasm:                    # file name in the tool folder
    digest: DIGEST
    definitions: DEFS
    prefix: gh_
    grant:
      http:
        - {host: api.github.com, methods: [GET, POST], paths: [/repos/], ports: [443], max_response: 4MiB, rate: 60/min}
        # asked once for each host
        - {host: "*", methods: [GET], approval: ask}
        - {host: nas.lan, allow_private: [192.168.1.7/32]}
      secrets: [{name: github_token, header: Authorization, prefix: "Bearer ", host: api.github.com}]
      kv: {max: 1MiB, ttl: 720h}
      tracker: [tasks:read, "steps:write@project-slug"]
      conversation: [send]
      bridge: ["mcp:files/read_file", "a2a:reviewer"]
      tool: [word_count]
      fs: [{path: /srv/docs, mode: ro}]
    config: {base_url: https://api.github.com, api-key: secret://github_token}
    tools:
      create_issue: {approval: ask, grant: {http: [{host: api.github.com, methods: [POST], paths: [/repos/]}]}, args: {title: {max_length: 200}}}
    agents: [coder, reviewer]
    limits: {timeout: 10s, calls_per_day: 5000, egress_per_day: 100MiB}
    signature: ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
`)

func mustParse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// granting returns a policy that grants something to x.wasm, written as YAML.
func granting(grant string) string {
	return "version: 1\nmodules:\n  x.wasm:\n    digest: sha256:" + digestA + "\n    grant: " + grant + "\n"
}

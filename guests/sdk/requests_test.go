package sdk

import (
	"strings"
	"testing"
)

func asking(r Requests) *Module {
	return &Module{Requests: r, Tools: []Tool{Define(Spec{Name: "a", Description: "A."}, act)}}
}

// What is asked for is written as a policy file has it.
func TestRequests(t *testing.T) {
	got, err := asking(Requests{
		HTTP: []HTTP{
			{Host: "*", Reason: "Reads pages."},
			{Methods: []string{"GET"}, MaxResponse: "2MiB", Reason: "Reads what it is told to."},
			{Scheme: "http", Host: "a.example.org", Methods: []string{"POST"}, Paths: []string{"/v1/"}, Ports: []int{8080},
				MaxRequest: "1KiB", MaxResponse: "4MiB", Rate: "60/min", Reason: "Sends."},
		},
		Secrets: []Secret{{Name: "key", Header: "Authorization", Prefix: "Bearer ", Host: "a.example.org", Paths: []string{"/v1/"}, Reason: "Pays."}},
		KV:      &KV{Max: "64KiB", TTL: "24h", Reason: "Remembers."},
		Tracker: []Scope{{Name: "tasks:read", Reason: "Lists tasks."}},
	}).Describe()
	want := `"requests":{"http":[{"host":"*","reason":"Reads pages."},{"methods":["GET"],"max_response":"2MiB","reason":"Reads what it is told to."},{"scheme":"http","host":"a.example.org","methods":["POST"],` +
		`"paths":["/v1/"],"ports":[8080],"max_request":"1KiB","max_response":"4MiB","rate":"60/min","reason":"Sends."}],` +
		`"kv":{"max":"64KiB","ttl":"24h","reason":"Remembers."},` +
		`"secrets":[{"name":"key","header":"Authorization","prefix":"Bearer ","host":"a.example.org","paths":["/v1/"],"reason":"Pays."}],` +
		`"tracker":[{"name":"tasks:read","reason":"Lists tasks."}]}`
	if err != nil || !strings.Contains(string(got), want) {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestRequestsForNothing(t *testing.T) {
	got, err := asking(Requests{HTTP: []HTTP{}}).Describe()
	if err != nil || strings.Contains(string(got), "requests") || !strings.Contains(string(got), `"readOnlyHint":true`) {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestRequestsThatLackSomething(t *testing.T) {
	const noReason = "reason has 0 bytes, must have 1 to 300: an operator decides by it"
	for want, r := range map[string]Requests{
		"http[0]: no host; name one, or leave scheme, paths, ports and rate out as well to ask for whatever is granted": {
			HTTP: []HTTP{{Ports: []int{80}, Reason: "r"}}},
		"http[1]: " + noReason:                                    {HTTP: []HTTP{{Host: "a", Reason: "r"}, {Host: "a"}}},
		"http[0]: " + noReason:                                    {HTTP: []HTTP{{}}},
		"tracker[0]: no name; name a scope, such as tasks:read":   {Tracker: []Scope{{Reason: "r"}}},
		"tracker[0]: " + noReason:                                 {Tracker: []Scope{{Name: "tasks:read"}}},
		"kv: " + noReason:                                         {KV: &KV{}},
		"kv: " + strings.Replace(noReason, "has 0", "has 301", 1): {KV: &KV{Reason: strings.Repeat("x", 301)}},
		"secrets[0]: no name":                                     {Secrets: []Secret{{Header: "A", Host: "a", Reason: "r"}}},
		"secrets[0]: must have one of header and query":           {Secrets: []Secret{{Name: "n", Header: "A", Query: "b", Host: "a", Reason: "r"}}},
		`secrets[0]: host is "*"; a secret goes to one host`:      {Secrets: []Secret{{Name: "n", Header: "A", Host: "*", Reason: "r"}}},
		"secrets[0]: no host; name one":                           {Secrets: []Secret{{Name: "n", Query: "q", Reason: "r"}}},
		"secrets[0]: " + noReason:                                 {Secrets: []Secret{{Name: "n", Query: "q", Host: "a"}}},
	} {
		if got, err := asking(r).Describe(); err == nil || err.Error() != "requests: "+want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

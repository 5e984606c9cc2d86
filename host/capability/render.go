package capability

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Binding is what a decision is made for: both are 64 lower-case hex digits;
// Definitions may be empty, and then the bytes alone count.
type Binding struct{ Digest, Definitions string }

// Render returns the smallest policy that gives g to a module.
func Render(module string, b Binding, g Grant) string {
	lines := []string{"version: 1", "modules:", "  " + scalarText(module) + ":"}
	for _, line := range slices.Concat(b.lines(), g.yaml()) {
		lines = append(lines, "    "+line)
	}
	return strings.Join(lines, "\n") + "\n"
}

func (b Binding) lines() (lines []string) {
	if b.Digest != "" {
		lines = append(lines, "digest: sha256:"+b.Digest)
	}
	if b.Definitions != "" {
		lines = append(lines, "definitions: sha256:"+b.Definitions)
	}
	return lines
}

// yaml returns g as the key grant and its lines.
func (g Grant) yaml() []string {
	lines := []string{"grant:"}
	for _, kind := range g.Kinds() {
		for _, line := range g.yamlOf(kind) {
			lines = append(lines, "  "+line)
		}
	}
	if len(lines) == 1 {
		return []string{"grant: {}"}
	}
	return lines
}

// yamlOf returns the lines of one kind.
func (g Grant) yamlOf(kind string) []string {
	switch kind {
	case kindKV:
		return []string{"kv: " + g.KV.yaml()}
	case kindTracker, kindConversation, kindBridge, kindTool:
		return []string{kind + ": " + flowList(*g.names(kind))}
	}
	lines := []string{kind + ":"}
	for _, item := range g.yamlItems(kind) {
		lines = append(lines, "  - "+item)
	}
	return lines
}

// yamlItems returns the rules of a kind that has rules, one a line.
func (g Grant) yamlItems(kind string) (items []string) {
	switch kind {
	case kindHTTP:
		for _, r := range g.HTTP {
			items = append(items, r.yaml())
		}
	case kindSecrets:
		for _, s := range g.Secrets {
			items = append(items, s.yaml())
		}
	case kindFS:
		for _, f := range g.FS {
			items = append(items, flowMap("path", scalarText(f.Path), "mode", f.Mode))
		}
	}
	return items
}

func (r HTTPRule) yaml() string {
	return flowMap(
		"scheme", r.Scheme,
		"host", scalarText(r.Host),
		"methods", listText(r.Methods),
		"paths", listText(r.Paths),
		"ports", portsText(r.Ports),
		"max_request", sizeText(r.MaxRequest),
		"max_response", sizeText(r.MaxResponse),
		"rate", r.Rate.String(),
		"allow_private", privateText(r),
		"approval", string(r.Approval),
	)
}

func (s SecretRule) yaml() string {
	return flowMap(
		"name", scalarText(s.Name),
		"header", scalarText(s.Header),
		"query", scalarText(s.Query),
		"prefix", scalarText(s.Prefix),
		"host", scalarText(s.Host),
		"paths", listText(s.Paths),
	)
}

func (r KVRule) yaml() string {
	ttl := ""
	if r.TTL != 0 {
		ttl = formatDuration(r.TTL)
	}
	return flowMap("max", sizeText(r.Max), "ttl", ttl)
}

// flowMap writes keys and texts in turns, without the empty ones.
func flowMap(pairs ...string) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			parts = append(parts, pairs[i]+": "+pairs[i+1])
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func flowList(texts []string) string {
	var parts []string
	for _, text := range texts {
		parts = append(parts, scalarText(text))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func listText(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return flowList(texts)
}

func portsText(ports []int) string {
	if len(ports) == 0 {
		return ""
	}
	return "[" + joinPorts(ports) + "]"
}

func privateText(r HTTPRule) string {
	if len(r.AllowPrivate) == 0 {
		return ""
	}
	var texts []string
	for _, p := range r.AllowPrivate {
		texts = append(texts, p.String())
	}
	return flowList(texts)
}

func sizeText(n int64) string {
	if n == 0 {
		return ""
	}
	return formatSize(n)
}

// scalarText writes text plainly where no reader of YAML can take it for
// something else, and else in double quotes. Some take a colon between brackets
// for the end of a key.
func scalarText(text string) string {
	if text == "" {
		return ""
	}
	plain := strings.Trim(text, letters+digits+"_./-@") == "" && strings.Trim(text[:1], letters+"/") == ""
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}
	if plain && !slices.Contains(words, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}

// Request is an HTTP request that a module made.
type Request struct {
	Method string
	URL    *url.URL
}

// Least returns the narrowest rules that let requests through: one for each
// scheme, host and port, with the methods and paths that were used. Requests
// that no rule could match are left out.
func Least(requests []Request) (rules []HTTPRule) {
	for _, q := range requests {
		t, refusal := targetOf(q.Method, q.URL)
		if refusal != nil || !slices.Contains(knownMethods(), q.Method) {
			continue
		}
		one := t.rule()
		i := slices.IndexFunc(rules, func(r HTTPRule) bool {
			return r.Scheme == one.Scheme && r.Host == one.Host && slices.Equal(r.Ports, one.Ports)
		})
		if i < 0 {
			rules = append(rules, one)
			continue
		}
		rules[i].Methods = sortedUnion(rules[i].Methods, one.Methods)
		rules[i].Paths = sortedUnion(rules[i].Paths, one.Paths)
	}
	for i := range rules {
		rules[i].Paths = fewPaths(rules[i].Paths)
	}
	slices.SortFunc(rules, func(a, b HTTPRule) int { return cmp.Compare(a.yaml(), b.yaml()) })
	return rules
}

// rule returns the rule that is about t alone.
func (t target) rule() HTTPRule {
	r := HTTPRule{Host: t.host, Methods: []string{t.method}, Paths: []string{"/"}}
	if t.scheme != schemeHTTPS {
		r.Scheme = t.scheme
	}
	if t.port != defaultPort(t.scheme) {
		r.Ports = []int{t.port}
	}
	r.Paths = []string{deepest(segmented(t.path))}
	return r
}

// deepest returns the longest prefix of a path that a rule can name: the path
// itself, or the folder that is left without what cannot be written.
func deepest(p string) string {
	if at := strings.Index(p, "//"); at >= 0 {
		p = p[:at+1]
	}
	for p != "/" {
		if clean, err := parsePath(p); err == nil && clean == p {
			return p
		}
		p = p[:strings.LastIndexByte(strings.TrimSuffix(p, "/"), '/')+1]
	}
	return p
}

func sortedUnion(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// fewPaths keeps a list readable: above eight paths, the folders they lie in.
func fewPaths(paths []string) []string {
	const most = 8
	for len(paths) > most {
		var folders []string
		for _, p := range paths {
			folder := path.Dir(strings.TrimSuffix(p, "/"))
			if folder != "/" {
				folder += "/"
			}
			folders = sortedUnion(folders, []string{folder})
		}
		paths = folders
	}
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return slices.ContainsFunc(paths, func(q string) bool { return p != q && below(q, p) })
	})
}

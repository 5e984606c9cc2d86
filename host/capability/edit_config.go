package capability

import (
	"maps"
	"slices"
)

// SetConfig returns the text with what one module reads as its configuration set;
// none of it if config is empty. The rest is kept as [SetGrant] does.
func SetConfig(file string, text []byte, module string, config map[string]string) ([]byte, error) {
	now, err := Parse(file, text)
	if err != nil {
		return nil, err
	}
	if e, _ := now.Entry(module); maps.Equal(e.Config, config) {
		return text, nil
	}
	return edit(file, text, module, func(e *Entry) {
		if e.Config = maps.Clone(config); len(config) == 0 {
			e.Config = nil
		}
	}, func(t *editor) { t.setConfig(config) }, func(t *editor) { t.replaceConfig(config) })
}

// setConfig changes value by value what is written as lines.
func (t *editor) setConfig(config map[string]string) {
	_, entry := t.spans()
	if entry == nil || t.child(entry, keyConfig) == nil || len(config) == 0 {
		t.replaceConfig(config)
		return
	}
	old := t.child(entry, keyConfig)
	if old.value.flow || len(old.value.pairs) == 0 {
		t.replaceConfig(config)
		return
	}
	for _, p := range old.value.pairs {
		if _, stays := config[p.key]; !stays {
			t.cut(t.child(t.config(), p.key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		t.setValue(key, config[key])
	}
}

// config is where the entry's configuration stands, which has to be there.
func (t *editor) config() *span {
	_, entry := t.spans()
	return t.child(entry, keyConfig)
}

func (t *editor) setValue(key, value string) {
	c := t.config()
	old := t.child(c, key)
	switch {
	case old == nil:
		t.insert(c.end, c.below, []string{configLine(key, value)})
	case old.value.text != value:
		line := configLine(key, value) + comment(t.lines[old.first-1], old.value)
		t.cut(old)
		t.insert(old.first, old.indent, []string{line})
	}
}

func (t *editor) replaceConfig(config map[string]string) {
	if len(config) == 0 {
		t.remove(keyConfig)
		t.dropEmpty()
		return
	}
	lines := []string{keyConfig + ":"}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		lines = append(lines, "  "+configLine(key, config[key]))
	}
	t.replace(keyConfig, lines)
}

func configLine(key, value string) string {
	if value == "" {
		return scalarText(key) + `: ""`
	}
	return scalarText(key) + ": " + scalarText(value)
}

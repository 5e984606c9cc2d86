package registry

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// bilingual is a module with one tool in two languages, and one in English alone.
func bilingual(title string) dialecttest.Module {
	schema := json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","description":"The id."}},"required":["id"]}`)
	return dialecttest.Module{Tools: []tool.Spec{
		{Name: "take", Title: "Take", Description: "Takes.", InputSchema: schema, Translations: map[string]tool.Translation{
			"ru": {Title: title, Description: "Берёт.", Parameters: map[string]string{"id": "Ключ"}}}},
		{Name: "zone", Title: "Zone", Description: "Zones.", InputSchema: schema},
	}}
}

// newSpeaking is a world in which the policy says the language of all files.
func newSpeaking(t *testing.T) (w *world, speak func(string)) {
	language := make(chan string, 1)
	language <- ""
	w = newWorldWith(t, func(o *Options) {
		o.Language = func(tool.Module) string {
			now := <-language
			language <- now
			return now
		}
	})
	return w, func(now string) {
		<-language
		language <- now
		w.Reconsider(w.Context())
	}
}

// C-26: the language of the policy is that of the texts and of nothing else, and who
// listens is told when it changes.
func TestC_26_ToolsAreDescribedInALanguage(t *testing.T) {
	w, speak := newSpeaking(t)
	w.apply(w.module("x.wasm", bilingual("Взять")))
	english := w.List(tool.Caller{})
	before := w.Modules()[0].Definitions
	told := make(chan struct{}, 9)
	defer w.Subscribe(func() { told <- struct{}{} })()
	speak("ru")
	<-told
	list := w.List(tool.Caller{})
	if s := list[0]; s.Name != "take" || s.Title != "Взять" || s.Description != "Берёт." || s.Translations != nil ||
		string(s.InputSchema) != strings.Replace(string(english[0].InputSchema), "The id.", "Ключ", 1) {
		t.Errorf("in Russian it is %+v, %s", s, s.InputSchema)
	}
	if *list[0].Annotations.ReadOnlyHint != *english[0].Annotations.ReadOnlyHint {
		t.Errorf("its hints are %+v, were %+v", list[0].Annotations, english[0].Annotations)
	}
	if s := list[1]; s.Title != "Zone" || s.Description != "Zones." {
		t.Errorf("without a translation it is %+v", s)
	}
	if m := w.Modules()[0]; m.Definitions != before || m.Tools[0].Published.Title != "Взять" {
		t.Errorf("an operator sees %+v; definitions were %s", m, before)
	}
	if _, err := w.text("take", `{"id":"1"}`); err != nil {
		t.Error(err)
	}
	speak("de")
	<-told
	if s := w.List(tool.Caller{})[0]; s.Title != "Take" {
		t.Errorf("in an unknown language it is %+v", s)
	}
}

// A decision is about all texts of a module, in whatever language they are shown.
func TestC_26_TranslationsAreBound(t *testing.T) {
	definitions := func(title string) string {
		w := newWorld(t)
		w.apply(w.module("x.wasm", bilingual(title)))
		return w.definitionsOf("x.wasm")
	}
	if same := definitions("Взять"); same != definitions("Взять") || same == definitions("Отдать") {
		t.Errorf("the definitions are %s", same)
	}
}

// A translation of what is not there makes the module unusable.
func TestTranslationsOfNothingAreRejected(t *testing.T) {
	w := newWorld(t)
	m := bilingual("Взять")
	m.Tools[0].Translations["ru"].Parameters["other"] = "Другой"
	w.apply(w.module("x.wasm", m))
	w.says("x.wasm", tool.Rejected, `parameter "other": the input schema has no such property`)
}

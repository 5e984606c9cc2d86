package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/hutch-run/hutch/protocol/tool"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// russianOfSeed are the words of the design, by tool: the description begins with them.
func russianOfSeed() map[string]string {
	return map[string]string{
		"list_tasks": "Получить список задач с фильтрацией", "get_task": "Получить задачу по ID", "create_task": "Создать новую задачу",
		"update_task": "Обновить поля задачи", "take_task": "Атомарно назначить задачу агенту, если она свободна",
		"reject_task": "Отклонить задачу с причиной", "assign_task": "Назначить задачу другому", "watch_task": "Подписаться на уведомления",
		"list_steps": "Этапы задачи", "add_step": "Добавить этап в чеклист", "complete_step": "Отметить этап выполненным",
		"update_step": "Обновить название этапа", "send_message": "Отправить сообщение в чат или комментарий к задаче",
		"list_messages": "Получить сообщения", "reply_message": "Ответить в треде", "list_projects": "Список активных проектов",
		"get_project": "Информация о проекте", "list_members": "Участники проекта", "get_member": "Информация об участнике",
		"update_my_status": "Обновить свой статус", "upload_file": "Загрузить файл к сообщению", "list_files": "Файлы задачи/проекта",
		"download_file": "Скачать файл",
	}
}

// S1-023…048, S1-055, C-26: with lang: ru in the policy every tool of the tracker is described in
// Russian, to clients of both eras, to models and to operators; nothing has to be approved, and
// clients are told that the list is another one.
func TestC_26_ToolsInRussian(t *testing.T) {
	cfg, p := shippedConfig(t)
	s := startServer(t, cfg, p, quiet)
	defer s.halt(t)
	modules := []string{"tasks.wasm", "steps.wasm", "messages.wasm", "projects.wasm", "members.wasm", "files.wasm"}
	s.awaitReadyModule(t, modules...)
	old := s.clientOf(t, "2025-11-25", "")
	defer old.close(t)
	now := s.clientOf(t, "2026-07-28", "")
	defer now.close(t)
	english := s.shown(t, old)
	policy := "version: 1\nmodules:\n"
	for _, name := range modules {
		policy += "  " + name + ": {config: {lang: ru}}\n"
	}
	s.decide(t, policy)
	for s.shown(t, old)["list_tasks"].Title == english["list_tasks"].Title {
		await(t, old.changed) // others may have been told of before
	}
	for _, c := range []*client{old, now} {
		russian := s.shown(t, c)
		if got, want := slices.Sorted(maps.Keys(russian)), slices.Sorted(maps.Keys(english)); !slices.Equal(got, want) {
			t.Fatalf("listed are %q, were %q", got, want)
		}
		checkRussian(t, russian, english)
		if list := russian["list_tasks"]; list.Title != "Список задач" || list.Description != "Получить список задач с фильтрацией" ||
			list.about("project_id") != "ID проекта" || list.about("assignee") != "Slug исполнителя" {
			t.Errorf("list_tasks is %+v", list)
		}
		if take := russian["take_task"]; take.Title != "Взять задачу в работу" || take.Description != "Атомарно назначить задачу агенту, если она свободна" ||
			take.about("task_id") != "ID или ключ задачи (TE-15)" || take.about("agent_slug") != "Slug агента" {
			t.Errorf("take_task is %+v", take)
		}
	}
	for _, spec := range s.app.tools.List(tool.Caller{Principal: "local"}) {
		if want := russianOfSeed()[spec.Name]; !strings.HasPrefix(tool.ToOpenAI(spec).Function.Description, want) || !strings.HasPrefix(tool.ToAnthropic(spec).Description, want) {
			t.Errorf("a model reads of %s: %s", spec.Name, spec.Description)
		}
	}
	for _, row := range listTools(s.app.modules.Modules()) {
		if want := russianOfSeed()[row.Name]; !strings.HasPrefix(row.Description, want) {
			t.Errorf("an operator reads of %s: %s", row.Name, row.Description)
		}
	}
}

// checkRussian wants each tool of the tracker to be described in Russian, and to be the same
// tool.
func checkRussian(t *testing.T, russian, english map[string]shownTool) {
	t.Helper()
	for _, group := range trackerTools() {
		for _, name := range group {
			ru, en := russian[name], english[name]
			if !inRussian(ru.Title) || !inRussian(ru.Description) || !strings.HasPrefix(ru.Description, russianOfSeed()[name]) {
				t.Errorf("%s is %q, %q", name, ru.Title, ru.Description)
			}
			for parameter := range en.InputSchema.Properties {
				if text := ru.about(parameter); !inRussian(text) && text != "Base64" {
					t.Errorf("%s of %s is %q", parameter, name, text)
				}
			}
			if ru.bare != en.bare {
				t.Errorf("the schema of %s is %s, was %s", name, ru.bare, en.bare)
			}
		}
	}
}

func inRussian(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) })
}

// A shownTool is a tool as a client reads it.
type shownTool struct {
	Title, Description string
	InputSchema        struct {
		Properties map[string]map[string]any
		Required   []string
	}
	bare string // the schema without descriptions
}

func (s shownTool) about(parameter string) string {
	text, _ := s.InputSchema.Properties[parameter]["description"].(string)
	return text
}

func (s *served) shown(t *testing.T, c *client) map[string]shownTool {
	t.Helper()
	listed, err := c.ListTools(t.Context(), &sdk.ListToolsParams{})
	must(t, err)
	all := map[string]shownTool{}
	for _, one := range listed.Tools {
		raw, err := json.Marshal(one)
		must(t, err)
		var shown shownTool
		must(t, json.Unmarshal(raw, &shown))
		bare := map[string]map[string]any{}
		for name, property := range shown.InputSchema.Properties {
			bare[name] = maps.Clone(property)
			delete(bare[name], "description")
		}
		schema, err := json.Marshal([]any{bare, shown.InputSchema.Required})
		must(t, err)
		shown.bare = string(schema)
		all[one.Name] = shown
	}
	return all
}

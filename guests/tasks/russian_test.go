package main

import (
	"strings"
	"testing"
)

// S1-023…030, S1-047, S1-048, S1-055, C-26: what the tools say under lang: ru, in the words of
// the design.
func TestC_26_RussianDefinitions(t *testing.T) {
	for name, want := range map[string]string{
		"list_tasks": "Получить список задач с фильтрацией", "get_task": "Получить задачу по ID", "create_task": "Создать новую задачу",
		"update_task": "Обновить поля задачи", "take_task": "Атомарно назначить задачу агенту, если она свободна",
		"reject_task": "Отклонить задачу с причиной", "assign_task": "Назначить задачу другому", "watch_task": "Подписаться на уведомления",
		"unwatch_task": "Отписаться от уведомлений",
	} {
		d := definitionOf(t, name)
		ru := d.Translations["ru"]
		if !strings.HasPrefix(ru.Description, want) || ru.Title == "" {
			t.Errorf("%s is %q, %q", name, ru.Title, ru.Description)
		}
		if len(ru.Parameters) != len(d.InputSchema.Properties) {
			t.Errorf("%s: %d of %d parameters are described", name, len(ru.Parameters), len(d.InputSchema.Properties))
		}
	}
	list, take := definitionOf(t, "list_tasks").Translations["ru"], definitionOf(t, "take_task").Translations["ru"]
	if list.Title != "Список задач" || list.Description != "Получить список задач с фильтрацией" || list.Parameters["project_id"] != "ID проекта" || list.Parameters["assignee"] != "Slug исполнителя" {
		t.Errorf("list_tasks is %+v", list)
	}
	if take.Description != "Атомарно назначить задачу агенту, если она свободна" || take.Title != "Взять задачу в работу" || take.Parameters["task_id"] != "ID или ключ задачи (TE-15)" || take.Parameters["agent_slug"] != "Slug агента" {
		t.Errorf("take_task is %+v", take)
	}
}

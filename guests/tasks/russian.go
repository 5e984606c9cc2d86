package main

import "github.com/hutch-run/hutch/guests/sdk/tracker"

// What the tools with the most parameters are called in Russian.
var (
	createInRussian = tracker.InRussian("Создать задачу", "Создать новую задачу в проекте, а с parent_id подзадачу. Подзадачи для того, что могут взять другие; для своего чеклиста есть add_step.", map[string]string{
		"project_slug":  "Slug или ID проекта, обязателен",
		"project_id":    "То же, что project_slug",
		"title":         "Что сделать, одной строкой",
		"description":   "Всё, что для этого нужно",
		"type":          "Тип, без него task",
		"priority":      "Приоритет, без него medium",
		"status":        "Статус, без него todo",
		"assignee_slug": "Slug исполнителя",
		"assignee":      "То же, что assignee_slug",
		"parent_id":     "Задача, частью которой она станет",
		"labels":        "Метки",
		"blocked_by":    "Задачи, которые нужно сделать раньше",
	})

	listInRussian = tracker.InRussian("Список задач", "Получить список задач с фильтрацией", map[string]string{
		"project_id":    "ID проекта",
		"project_slug":  "То же, что project_id",
		"status":        "Статус",
		"statuses":      "Несколько статусов вместо status",
		"assignee":      "Slug исполнителя",
		"assignee_slug": "То же, что assignee",
		"labels":        "Метки, которые есть все сразу",
		"type":          "Тип",
		"priority":      "Приоритет",
		"parent_id":     "Только подзадачи этой задачи",
		"q":             "Текст в названии, описании или ключе",
		"ready":         "Только те, что можно начать: к выполнению и не заблокированы",
		"limit":         "Сколько самое большее показать",
		"cursor":        "Где продолжить: из ответа на предыдущий вызов",
	})

	updateInRussian = tracker.InRussian("Изменить задачу", "Обновить поля задачи: меняется то, что указано. Когда работа закончена, оставь комментарий и поставь in_review.", map[string]string{
		"task_id":       "ID или ключ задачи (TE-15)",
		"title":         "Новое название",
		"description":   "Новое описание целиком",
		"type":          "Тип",
		"status":        "Новый статус",
		"priority":      "Приоритет",
		"assignee_slug": "Slug исполнителя, пустой текст снимает его",
		"assignee":      "То же, что assignee_slug",
		"parent_id":     "Задача, частью которой она будет; пустой текст, если никакой",
		"labels":        "Все метки, которые у неё будут",
		"blocked_by":    "Все задачи, которые нужно сделать раньше",
		"version":       "Менять, только если версия всё ещё эта",
	})
)

package trackerrest

import "github.com/hutch-run/hutch/protocol/tracker"

func stepRoutes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/tasks/{id}/steps", Scope: tracker.StepsRead, Tools: []string{"list_steps"}, Summary: "list the steps of a task in their order",
			name: "listSteps", answer: typeOf[[]tracker.StepOut](), do: func(c *call) (any, error) { return c.service.ListSteps(c.ctx(), c.at("id")) },
		},
		{
			Method: "POST", Path: "/tasks/{id}/steps", Scope: tracker.StepsWrite, Tools: []string{"add_step"}, Summary: "add a step to a task", name: "addStep", status: 201,
			body: typeOf[tracker.AddStep](), required: []string{"title"}, answer: typeOf[tracker.StepOut](), do: func(c *call) (any, error) {
				in := tracker.AddStep{IdempotencyKey: c.key()}
				return with(c, &in, func() (any, error) { return c.service.AddStep(c.ctx(), c.at("id"), in) })
			},
		},
		{
			Method: "GET", Path: "/tasks/{id}/steps/{ref}", Scope: tracker.StepsRead, Reason: byOthers, Summary: "read a step, by its id or its index from 0 on",
			name: "getStep", answer: typeOf[tracker.StepOut](), do: func(c *call) (any, error) { return c.service.GetStep(c.ctx(), c.at("id"), c.at("ref")) },
		},
		{
			Method: "PATCH", Path: "/tasks/{id}/steps/{ref}", Scope: tracker.StepsWrite, Tools: []string{"complete_step", "update_step"},
			Summary: "complete a step, or change it; without fields it is completed", name: "updateStep", body: typeOf[tracker.UpdateStep](), answer: typeOf[tracker.StepOut](),
			do: func(c *call) (any, error) {
				var in tracker.UpdateStep
				return with(c, &in, func() (any, error) { return c.service.UpdateStep(c.ctx(), c.at("id"), c.at("ref"), in) })
			},
		},
		{
			Method: "DELETE", Path: "/tasks/{id}/steps/{ref}", Scope: tracker.StepsWrite, Reason: rare, Summary: "delete a step", name: "deleteStep", status: 204,
			do: func(c *call) (any, error) { return nil, c.service.DeleteStep(c.ctx(), c.at("id"), c.at("ref")) },
		},
	}
}

func messageRoutes() []Route {
	said := map[string]string{"text": "content"}
	newest := typeOf[tracker.Page[tracker.MessageOut]]()
	return []Route{
		{
			Method: "GET", Path: "/tasks/{id}/comments", Scope: tracker.MessagesRead, Tools: []string{"list_messages", "list_comments"},
			Summary: "read the newest comments of a task, oldest first", name: "listComments", query: paged(), answer: newest, do: func(c *call) (any, error) {
				return c.messages(tracker.MessageQuery{TaskID: c.at("id")})
			},
		},
		{
			Method: "POST", Path: "/tasks/{id}/comments", Scope: tracker.MessagesWrite, Tools: []string{"send_message", "add_comment"}, Summary: "comment on a task",
			name: "addComment", status: 201, body: typeOf[tracker.Reply](), required: []string{"content"}, aliases: said, answer: typeOf[tracker.MessageOut](),
			do: func(c *call) (any, error) { return c.send("", c.at("id")) },
		},
		{
			Method: "GET", Path: "/chats", Scope: tracker.MessagesRead, Reason: byOthers, Summary: "list the chats that the caller reads", name: "listChats",
			query:  paged(text("project_id", "a project's id or slug").or("project_slug"), flag("archived", "those too")),
			answer: typeOf[tracker.Page[tracker.ChatOut]](), do: func(c *call) (any, error) {
				return c.paged(func(p tracker.Paging) (any, error) {
					return c.service.ListChats(c.ctx(), tracker.ChatQuery{Project: c.param("project_id"), Archived: c.flag("archived"), Paging: p})
				})
			},
		},
		{
			Method: "POST", Path: "/chats", Scope: tracker.Admin, Reason: forPeople, Summary: "make a chat", name: "createChat", status: 201,
			body: typeOf[tracker.CreateChat](), required: []string{"slug"}, aliases: map[string]string{"project_id": "project_slug"}, answer: typeOf[tracker.ChatOut](),
			do: func(c *call) (any, error) {
				in := tracker.CreateChat{IdempotencyKey: c.key()}
				return with(c, &in, func() (any, error) { return c.service.CreateChat(c.ctx(), in) })
			},
		},
		{
			Method: "GET", Path: "/chats/{id}", Scope: tracker.MessagesRead, Reason: byOthers, Summary: "read a chat", name: "getChat", answer: typeOf[tracker.ChatOut](),
			do: func(c *call) (any, error) { return c.service.GetChat(c.ctx(), c.at("id")) },
		},
		{
			Method: "PATCH", Path: "/chats/{id}", Scope: tracker.Admin, Reason: forPeople, Summary: "change a chat", name: "updateChat", body: typeOf[tracker.UpdateChat](),
			answer: typeOf[tracker.ChatOut](), do: func(c *call) (any, error) {
				var in tracker.UpdateChat
				return with(c, &in, func() (any, error) { return c.service.UpdateChat(c.ctx(), c.at("id"), in) })
			},
		},
		{
			Method: "GET", Path: "/chats/{id}/messages", Scope: tracker.MessagesRead, Tools: []string{"list_messages", "read_messages"},
			Summary: "read the newest messages of a chat, oldest first", name: "listMessages", query: paged(), answer: newest, do: func(c *call) (any, error) {
				return c.messages(tracker.MessageQuery{ChatID: c.at("id")})
			},
		},
		{
			Method: "POST", Path: "/chats/{id}/messages", Scope: tracker.MessagesWrite, Tools: []string{"send_message"}, Summary: "send a message to a chat",
			name: "sendMessage", status: 201, body: typeOf[tracker.Reply](), required: []string{"content"}, aliases: said, answer: typeOf[tracker.MessageOut](),
			do: func(c *call) (any, error) { return c.send(c.at("id"), "") },
		},
		{
			Method: "GET", Path: "/messages/{id}", Scope: tracker.MessagesRead, Reason: byOthers, Summary: "read a message", name: "getMessage", answer: typeOf[tracker.MessageOut](),
			do: func(c *call) (any, error) { return c.service.GetMessage(c.ctx(), c.at("id")) },
		},
		{
			Method: "GET", Path: "/messages/{id}/replies", Scope: tracker.MessagesRead, Reason: byOthers, Summary: "read the newest answers to a message, oldest first",
			name: "listReplies", query: paged(), answer: newest, do: func(c *call) (any, error) { return c.messages(tracker.MessageQuery{ParentID: c.at("id")}) },
		},
		{
			Method: "POST", Path: "/messages/{id}/replies", Scope: tracker.MessagesWrite, Tools: []string{"reply_message"}, Summary: "answer a message where it stands",
			name: "replyMessage", status: 201, body: typeOf[tracker.Reply](), required: []string{"content"}, aliases: said, answer: typeOf[tracker.MessageOut](),
			do: func(c *call) (any, error) {
				in := tracker.Reply{IdempotencyKey: c.key()}
				return with(c, &in, func() (any, error) { return c.service.ReplyMessage(c.ctx(), c.at("id"), in) })
			},
		},
	}
}

func fileRoutes() []Route {
	files := typeOf[tracker.Page[tracker.AttachmentOut]]()
	upload := func(path, name, what string, into func(*tracker.UploadFile, string)) Route {
		return Route{
			Method: "POST", Path: path, Scope: tracker.FilesWrite, Tools: []string{"upload_file"},
			Summary: "keep a file at a " + what + ": base64 in JSON, or the bytes themselves as application/octet-stream with the query filename",
			name:    name, status: 201, query: []param{text("filename", "of a body that is the file itself")}, body: typeOf[tracker.UploadFile](),
			required: []string{"filename", "content"}, many: tracker.MaxFileBody, answer: typeOf[tracker.AttachmentOut](),
			do: func(c *call) (any, error) {
				in, err := c.upload()
				if err != nil {
					return nil, err
				}
				into(&in, c.at("id"))
				return c.service.UploadFile(c.ctx(), in)
			},
		}
	}
	list := func(path, name, what string, tools []string, query func(id string) tracker.FileQuery) Route {
		r := Route{
			Method: "GET", Path: path, Scope: tracker.FilesRead, Tools: tools, Summary: "list the files of a " + what + ", the oldest first", name: name,
			query: paged(), answer: files, do: func(c *call) (any, error) {
				return c.paged(func(p tracker.Paging) (any, error) {
					q := query(c.at("id"))
					q.Paging = p
					return c.service.ListFiles(c.ctx(), q)
				})
			},
		}
		if tools == nil {
			r.Reason = byOthers
		}
		return r
	}
	listed := []string{"list_files"}
	return []Route{
		upload("/tasks/{id}/files", "uploadTaskFile", "task", func(in *tracker.UploadFile, id string) { in.TaskID, in.MessageID = id, "" }),
		list("/tasks/{id}/files", "listTaskFiles", "task and its messages", listed, func(id string) tracker.FileQuery { return tracker.FileQuery{TaskID: id} }),
		upload("/messages/{id}/files", "uploadMessageFile", "message", func(in *tracker.UploadFile, id string) { in.TaskID, in.MessageID = "", id }),
		list("/messages/{id}/files", "listMessageFiles", "message", nil, func(id string) tracker.FileQuery { return tracker.FileQuery{MessageID: id} }),
		list("/projects/{id}/files", "listProjectFiles", "project", listed, func(id string) tracker.FileQuery { return tracker.FileQuery{ProjectID: id} }),
		{
			Method: "GET", Path: "/attachments/{id}", Scope: tracker.FilesRead, Tools: []string{"download_file"}, name: "downloadFile",
			Summary: "read a file: base64 in JSON, or the bytes themselves where application/octet-stream is accepted",
			answer:  typeOf[tracker.FileOut](), do: (*call).download,
		},
	}
}

func projectRoutes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/projects", Scope: tracker.ProjectsRead, Tools: []string{"list_projects"}, Summary: "list the projects", name: "listProjects",
			query: paged(flag("archived", "those too")), answer: typeOf[tracker.Page[tracker.ProjectOut]](), do: func(c *call) (any, error) {
				return c.paged(func(p tracker.Paging) (any, error) {
					return c.service.ListProjects(c.ctx(), tracker.ProjectQuery{Archived: c.flag("archived"), Paging: p})
				})
			},
		},
		{
			Method: "POST", Path: "/projects", Scope: tracker.Admin, Reason: forPeople, Summary: "make a project", name: "createProject", status: 201,
			body: typeOf[tracker.CreateProject](), required: []string{"slug"}, answer: typeOf[tracker.ProjectOut](), do: func(c *call) (any, error) {
				in := tracker.CreateProject{IdempotencyKey: c.key()}
				return with(c, &in, func() (any, error) { return c.service.CreateProject(c.ctx(), in) })
			},
		},
		{
			Method: "GET", Path: "/projects/{id}", Scope: tracker.ProjectsRead, Tools: []string{"get_project"}, Summary: "read a project", name: "getProject",
			answer: typeOf[tracker.ProjectOut](), do: func(c *call) (any, error) { return c.service.GetProject(c.ctx(), c.at("id")) },
		},
		{
			Method: "PATCH", Path: "/projects/{id}", Scope: tracker.Admin, Reason: forPeople, Summary: "change a project", name: "updateProject",
			body: typeOf[tracker.UpdateProject](), answer: typeOf[tracker.ProjectOut](), do: func(c *call) (any, error) {
				var in tracker.UpdateProject
				return with(c, &in, func() (any, error) { return c.service.UpdateProject(c.ctx(), c.at("id"), in) })
			},
		},
	}
}

func memberRoutes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/members", Scope: tracker.MembersRead, Tools: []string{"list_members"}, Summary: "list the members", name: "listMembers",
			query: paged(
				text("project_id", "a project's id or slug").or("project_slug"), text("kind", "human or agent"), flag("archived", "those too")),
			answer: typeOf[tracker.Page[tracker.MemberOut]](), do: func(c *call) (any, error) {
				return c.paged(func(p tracker.Paging) (any, error) {
					q := tracker.MemberQuery{Project: c.param("project_id"), Kind: c.param("kind"), Archived: c.flag("archived"), Paging: p}
					return c.service.ListMembers(c.ctx(), q)
				})
			},
		},
		{
			Method: "POST", Path: "/members", Scope: tracker.Admin, Reason: forPeople, Summary: "make a member", name: "createMember", status: 201,
			body: typeOf[tracker.CreateMember](), required: []string{"slug"}, answer: typeOf[tracker.MemberOut](), do: func(c *call) (any, error) {
				in := tracker.CreateMember{IdempotencyKey: c.key()}
				return with(c, &in, func() (any, error) { return c.service.CreateMember(c.ctx(), in) })
			},
		},
		{
			Method: "PATCH", Path: "/members/me", Scope: tracker.MembersSelf, Tools: []string{"update_my_status"}, Summary: "change one's own status", name: "updateMyStatus",
			body: typeOf[tracker.MyStatus](), required: []string{"status"}, answer: typeOf[tracker.MyStatus](), do: func(c *call) (any, error) {
				var in tracker.MyStatus
				return with(c, &in, func() (any, error) { return c.service.UpdateMyStatus(c.ctx(), in) })
			},
		},
		{
			Method: "GET", Path: "/members/{slug}", Scope: tracker.MembersRead, Tools: []string{"get_member"}, Summary: "read a member; me is the caller", name: "getMember",
			answer: typeOf[tracker.MemberOut](), do: func(c *call) (any, error) { return c.service.GetMember(c.ctx(), c.at("slug")) },
		},
		{
			Method: "PATCH", Path: "/members/{slug}", Scope: tracker.Admin, Reason: forPeople, Summary: "change a member", name: "updateMember",
			body: typeOf[tracker.UpdateMember](), answer: typeOf[tracker.MemberOut](), do: func(c *call) (any, error) {
				var in tracker.UpdateMember
				return with(c, &in, func() (any, error) { return c.service.UpdateMember(c.ctx(), c.at("slug"), in) })
			},
		},
	}
}

func queueRoutes() []Route {
	return []Route{
		{
			Method: "POST", Path: "/members/me/heartbeat", Scope: tracker.MembersSelf, Reason: forSocket, Summary: "stay online without a socket, and say what one does",
			name: "heartbeat", status: 204, body: typeOf[tracker.Beat](), do: func(c *call) (any, error) {
				var in tracker.Beat
				return with(c, &in, func() (any, error) {
					return nil, c.service.Heartbeat(c.ctx(), tracker.Heartbeat{Status: in.Status, CurrentTasks: in.CurrentTasks})
				})
			},
		},
		{
			Method: "GET", Path: "/events", Scope: tracker.TasksRead, Reason: forSocket, Summary: "read one's events that wait, oldest first", name: "listEvents",
			query: []param{
				number("after", "the seq behind which to begin", 0, 1<<53), number("limit", "how many, default 50", 1, tracker.MaxPage),
				number("wait", "seconds to wait for the first one", 0, maxWait),
			},
			answer: typeOf[tracker.Page[tracker.EventOut]](), do: (*call).events,
		},
		{
			Method: "POST", Path: "/events/ack", Scope: tracker.TasksRead, Reason: forSocket, Summary: "say that events were accepted", name: "ackEvents", status: 204,
			body: typeOf[tracker.AckEvents](), required: []string{"ids"}, do: func(c *call) (any, error) {
				var in tracker.AckEvents
				return with(c, &in, func() (any, error) { return nil, c.ack(in) })
			},
		},
		{
			Method: "GET", Path: "/members/{slug}/parked", Scope: tracker.TasksRead, Reason: forPeople, Summary: "list the events that an agent never accepted", name: "listParked",
			query: paged(), answer: typeOf[tracker.Page[tracker.EventOut]](), do: func(c *call) (any, error) {
				return c.paged(func(p tracker.Paging) (any, error) {
					return ParkedPage(c.ctx(), c.service, c.at("slug"), p)
				})
			},
		},
		{
			Method: "POST", Path: "/members/{slug}/parked/{id}/redrive", Scope: tracker.TasksRead, Reason: forPeople, Summary: "send a parked event again", name: "redrive", status: 204,
			do: func(c *call) (any, error) { return nil, c.service.Redrive(c.ctx(), c.at("slug"), c.at("id")) },
		},
	}
}

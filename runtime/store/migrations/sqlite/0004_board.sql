-- The tracker's board. A body is the whole thing as JSON; beside it stands what it is found
-- by. Ids are compared as text, and those made later are greater.
create table board_project (
  id       text    primary key,
  slug     text    not null unique,
  key      text    not null unique,
  archived integer not null,
  body     text    not null
) strict, without rowid;

create table board_member (
  id       text    primary key,
  slug     text    not null unique,
  kind     text    not null,
  archived integer not null,
  online   integer not null,
  seen     integer not null,
  announce integer not null,
  changed  integer not null,
  body     text    not null
) strict, without rowid;

create index board_member_kind on board_member (kind, slug);

create index board_member_online on board_member (slug, seen) where online = 1;

create index board_member_announce on board_member (slug, changed) where announce = 1;

create table board_chat (
  id       text    primary key,
  slug     text    not null unique,
  project  text    not null,
  archived integer not null,
  body     text    not null
) strict, without rowid;

create index board_chat_project on board_chat (project, slug);

-- What tasks are chosen by is in short rows; what is shown of one is in board_task_body.
create table board_task (
  num      integer primary key,
  id       text    not null unique,
  key      text    not null unique,
  project  text    not null,
  number   integer not null,
  parent   text    not null,
  type     text    not null,
  priority text    not null,
  status   text    not null,
  assignee text    not null,
  creator  text    not null,
  open     integer not null,
  tags     text    not null
) strict;

create index board_task_project on board_task (project, id);

create index board_task_project_status on board_task (project, status, id);

create index board_task_status on board_task (status, id);

create index board_task_assignee on board_task (assignee, id);

create index board_task_assignee_status on board_task (assignee, status, id);

create index board_task_creator on board_task (creator, id);

create index board_task_parent on board_task (parent, id);

create index board_task_type on board_task (type, id);

create index board_task_priority on board_task (priority, id);

create index board_task_number on board_task (number, id);

create table board_task_body (
  task   integer primary key references board_task (num),
  search text    not null,
  body   text    not null
) strict;

-- Finds three letters and more anywhere in a text. It reads what it takes away from the body,
-- which must still be there then.
create virtual table board_search using fts5 (search, content='board_task_body', content_rowid='task', tokenize='trigram');

-- The labels, watchers and blockers of tasks, with the number of the row of each.
create table board_tag (
  kind  text not null,
  value text not null,
  task  text not null,
  num   integer not null,
  primary key (kind, value, task)
) strict, without rowid;

create table board_step (
  id       text    primary key,
  task     text    not null,
  position integer not null,
  body     text    not null
) strict, without rowid;

create index board_step_task on board_step (task, position);

create table board_message (
  num    integer primary key,
  id     text    not null unique,
  chat   text    not null,
  task   text    not null,
  parent text    not null,
  body   text    not null
) strict;

create index board_message_chat on board_message (chat, id);

create index board_message_task on board_message (task, id);

create index board_message_parent on board_message (parent, id);

create table board_file (
  id      text    primary key,
  task    text    not null,
  message text    not null,
  project text    not null,
  digest  text    not null,
  body    text    not null
) strict, without rowid;

create index board_file_task on board_file (task, id);

create index board_file_message on board_file (message, id);

create index board_file_project on board_file (project, id);

create index board_file_digest on board_file (digest);

create table board_blob (
  num    integer primary key,
  digest text    not null unique,
  bytes  blob    not null
) strict;

create table board_activity (
  num  integer primary key,
  id   text    not null unique,
  task text    not null,
  body text    not null
) strict;

create index board_activity_task on board_activity (task, id);

create table board_answer (
  num     integer primary key,
  member  text    not null,
  key     text    not null,
  request text    not null,
  at      integer not null,
  body    text    not null,
  unique (member, key)
) strict;

create index board_answer_at on board_answer (at);

-- A queue's last number is known when its events are gone. Waiting is how many are in it.
create table board_queue (
  member  text    primary key,
  last    integer not null,
  waiting integer not null
) strict, without rowid;

create table board_event (
  num  integer primary key,
  id   text    not null unique,
  name text    not null,
  at   integer not null,
  data text    not null
) strict;

create table board_delivery (
  member text    not null,
  number integer not null,
  event  text    not null references board_event (id),
  at     integer not null,
  tries  integer not null,
  parked integer not null,
  primary key (member, number)
) strict, without rowid;

create index board_delivery_parked on board_delivery (member, parked, number);

create unique index board_delivery_event on board_delivery (event, member);

create index board_delivery_at on board_delivery (at);

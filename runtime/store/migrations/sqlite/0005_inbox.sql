-- What is in the inboxes of agents. A body is the whole item as JSON; beside it stands what it
-- is found by. Of an agent and an event there is one id.
create table inbox_item (
  num      integer primary key autoincrement,
  id       text    not null unique,
  agent    text    not null,
  task     text    not null,
  open     integer not null,
  changed  integer not null,
  revision integer not null,
  body     text    not null
) strict;

create index inbox_item_agent on inbox_item (agent, num);

create index inbox_item_task on inbox_item (agent, task, num);

create index inbox_item_open on inbox_item (agent, num) where open = 1;

create index inbox_item_ended on inbox_item (agent, num) where open = 0;

create index inbox_item_old on inbox_item (agent, changed) where open = 0;

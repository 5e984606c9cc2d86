-- A thread's name is its owner's own. One without a name was deleted: what is left of it
-- goes in small steps, and its name is free again at once.
create table thread (
  id          integer primary key,
  owner       text    not null,
  name        text,
  agent       text    not null,
  title       text    not null,
  head        integer not null,
  last        integer not null,
  messages    integer not null,
  bytes       integer not null,
  event_bytes integer not null,
  created     integer not null,
  updated     integer not null,
  waiting     text    not null,
  unique (owner, name)
) strict;

-- A state may be large, and a thread's row is written with every change of it.
create table thread_state (
  thread integer primary key references thread (id),
  body   text    not null
) strict;

create index thread_updated on thread (updated, id) where name is not null;

create index thread_owner on thread (owner, updated, id) where name is not null;

create index thread_name on thread (name, updated, id) where name is not null;

create index thread_gone on thread (id) where name is null;

create table thread_message (
  id     integer primary key,
  thread integer not null references thread (id),
  number integer not null,
  name   text    not null,
  size   integer not null,
  body   text    not null,
  unique (thread, number),
  unique (thread, name)
) strict;

create table thread_event (
  id     integer primary key,
  thread integer not null references thread (id),
  number integer not null,
  run    text    not null,
  size   integer not null,
  body   text    not null,
  unique (thread, number)
) strict;

create index thread_event_run on thread_event (thread, run);

-- Rows are never made again under an id that was used, so that ids are the order in which
-- runs were submitted. A run has events as long as kept is 1.
create table thread_run (
  id      integer primary key autoincrement,
  thread  integer not null references thread (id),
  name    text    not null,
  parent  text    not null,
  cause   text    not null,
  agent   text    not null,
  status  text    not null,
  digest  text    not null,
  code    text    not null,
  message text    not null,
  usage   text    not null,
  first   integer not null,
  last    integer not null,
  created integer not null,
  started integer,
  ended   integer,
  kept    integer not null,
  unique (thread, name)
) strict;

create index thread_run_thread on thread_run (thread);

create index thread_run_unfinished on thread_run (id, thread) where ended is null;

create index thread_run_busy on thread_run (thread) where ended is null;

create index thread_run_ended on thread_run (ended, id) where kept = 1;

create index thread_run_old on thread_run (ended, id) where kept = 0;

-- Work that a change caused, to be done once the change is there.
create table job (
  id         integer primary key autoincrement,
  kind       text    not null,
  key        text    not null,
  not_before integer not null,
  payload    blob    not null,
  unique (kind, key)
) strict;

create index job_due on job (kind, not_before, id);

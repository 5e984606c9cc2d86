-- A space is what one module may keep values in. Its version is that of the value
-- written last, so that one written again after it was deleted gets a version never
-- seen before.
create table kv_space (
  id      integer primary key,
  name    text    not null unique,
  version integer not null,
  bytes   integer not null
) strict;

-- Values may be large, and rows beyond a quarter of a page spill in a table without
-- rowid, at several times the size: so it has one. The value stands last: what is behind it
-- could only be read through it.
create table kv (
  id      integer primary key,
  space   integer not null references kv_space (id),
  key     text    not null,
  size    integer not null,
  version integer not null,
  writer  text    not null,
  updated integer not null,
  expires integer,
  value   blob    not null,
  unique (space, key)
) strict;

create index kv_expires on kv (expires, space, size) where expires is not null;

-- What people decided. Nothing in it ever changes.
create table decision (
  id          integer primary key autoincrement,
  at          integer not null,
  who         text    not null,
  action      text    not null,
  module      text    not null,
  digest      text    not null,
  definitions text    not null,
  granted     text    not null
) strict;

create index decision_module on decision (module, id);

create trigger decision_is_kept before delete on decision
begin select raise(abort, 'decisions are never deleted'); end;

create trigger decision_is_not_replaced before insert on decision when exists (select 1 from decision where id = new.id)
begin select raise(abort, 'decisions are never replaced'); end;

create trigger decision_is_fixed before update on decision
begin select raise(abort, 'decisions are never changed'); end;

-- Which versions of a module were accepted, in which order, and which one is now.
create table pin (
  id          integer primary key,
  module      text    not null,
  digest      text    not null,
  definitions text    not null,
  rank        integer not null,
  live        integer not null,
  at          integer not null,
  unique (module, digest)
) strict;

create unique index pin_live on pin (module) where live = 1;

create table counter (
  id      integer primary key,
  subject text    not null,
  day     integer not null,
  calls   integer not null,
  bytes   integer not null,
  unique (subject, day)
) strict;

create index counter_day on counter (day);

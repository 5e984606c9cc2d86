-- Who may come in at a listener. Of a token's text there is nothing but its hash.
create table token (
  id        integer primary key,
  key       text    not null unique,
  name      text    not null unique,
  principal text    not null,
  scopes    text    not null,
  hash      blob    not null,
  created   integer not null,
  expires   integer
) strict;

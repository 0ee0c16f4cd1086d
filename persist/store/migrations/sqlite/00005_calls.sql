-- +goose Up
CREATE TABLE files (
  name TEXT PRIMARY KEY,
  size BIGINT NOT NULL -- bytes that were read
);

CREATE TABLE standing (
  id   TEXT PRIMARY KEY,
  line TEXT NOT NULL
);

CREATE TABLE invocations (
  seq     INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  created BIGINT NOT NULL, -- microseconds since 1970
  ended   BIGINT,
  tool    TEXT NOT NULL,
  server  TEXT NOT NULL,
  actor   TEXT NOT NULL,
  client  TEXT NOT NULL,
  profile TEXT NOT NULL,
  status  TEXT NOT NULL,
  class   TEXT NOT NULL,
  approved_by TEXT NOT NULL,
  address TEXT NOT NULL, -- of the client
  hub     TEXT NOT NULL,
  worth   BIGINT NOT NULL, -- the order in which calls of one actor go: 0, 1 denied, 2 approved
  kept     BIGINT NOT NULL DEFAULT 0, -- characters of its result that its caller did not get
  deferred BIGINT NOT NULL DEFAULT 0  -- tokens of tools that the list of its caller deferred
);
CREATE INDEX invocations_created ON invocations (created);
CREATE INDEX invocations_tool ON invocations (tool, created);
CREATE INDEX invocations_server ON invocations (server, created);
CREATE INDEX invocations_actor ON invocations (actor, created);
CREATE INDEX invocations_client ON invocations (client, created);
CREATE INDEX invocations_profile ON invocations (profile, created);
CREATE INDEX invocations_status ON invocations (status, created);
CREATE INDEX invocations_class ON invocations (class, created);
CREATE INDEX invocations_worth ON invocations (actor, worth, seq);

CREATE TABLE lines (
  n    INTEGER PRIMARY KEY, -- in the order in which they came
  seq  BIGINT,              -- of the invocation; none of what belongs to no call
  ends BOOLEAN NOT NULL,    -- it is the last one of its call
  line TEXT NOT NULL
);
CREATE INDEX lines_seq ON lines (seq, n);

CREATE VIRTUAL TABLE words USING fts5 (body, content = '', contentless_delete = 1);

CREATE TABLE indexed (n BIGINT NOT NULL); -- one row: words of lines up to that one can be found
INSERT INTO indexed (n) VALUES (0);

-- Delegations: from one person to another, for a time.

-- Who may answer what another person is asked. types is a JSON list, level 0 for all.
-- A row is never deleted: ended_at ends it early.
CREATE TABLE delegation (
  tenant      TEXT NOT NULL REFERENCES tenant (id),
  id          TEXT NOT NULL,
  from_id     TEXT NOT NULL CHECK (from_id <> ''),
  to_id       TEXT NOT NULL CHECK (to_id <> ''),
  starts_at   INTEGER NOT NULL,
  ends_at     INTEGER NOT NULL,
  types       TEXT NOT NULL,
  level       INTEGER NOT NULL CHECK (level BETWEEN 0 AND 5),
  created_at  INTEGER NOT NULL,
  created_by  TEXT NOT NULL CHECK (created_by <> ''),
  ended_at    INTEGER,
  ended_by    TEXT NOT NULL,
  PRIMARY KEY (tenant, id),
  CHECK (starts_at < ends_at),
  CHECK (from_id <> to_id),
  CHECK ((ended_at IS NULL) = (ended_by = ''))
) STRICT, WITHOUT ROWID;
CREATE INDEX delegation_from ON delegation (tenant, from_id, ends_at);
CREATE INDEX delegation_to ON delegation (tenant, to_id, ends_at);

CREATE TRIGGER delegation_frozen BEFORE UPDATE OF tenant, id, from_id, to_id, starts_at, ends_at, types, level, created_at, created_by ON delegation
BEGIN SELECT raise(ABORT, 'a delegation is frozen when it is made'); END;
CREATE TRIGGER delegation_ended BEFORE UPDATE ON delegation WHEN OLD.ended_at IS NOT NULL
BEGIN SELECT raise(ABORT, 'an ended delegation stays ended'); END;

-- Whose right a vote uses, '' for the voter's own.
ALTER TABLE vote ADD COLUMN for_id TEXT NOT NULL DEFAULT '';
ALTER TABLE vote ADD COLUMN for_name TEXT NOT NULL DEFAULT '';

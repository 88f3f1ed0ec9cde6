-- Delegations: from one person to another, for a time.

-- Who may answer what another person is asked. types is a JSON list, level 0 for all.
-- A row is never deleted: ended_at ends it early.
CREATE TABLE delegation (
  tenant      TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  id          TEXT COLLATE "C" NOT NULL,
  from_id     TEXT COLLATE "C" NOT NULL CHECK (from_id <> ''),
  to_id       TEXT COLLATE "C" NOT NULL CHECK (to_id <> ''),
  starts_at   BIGINT NOT NULL,
  ends_at     BIGINT NOT NULL,
  types       TEXT NOT NULL,
  level       INTEGER NOT NULL CHECK (level BETWEEN 0 AND 5),
  created_at  BIGINT NOT NULL,
  created_by  TEXT NOT NULL CHECK (created_by <> ''),
  ended_at    BIGINT,
  ended_by    TEXT NOT NULL,
  PRIMARY KEY (tenant, id),
  CHECK (starts_at < ends_at),
  CHECK (from_id <> to_id),
  CHECK ((ended_at IS NULL) = (ended_by = ''))
);
CREATE INDEX delegation_from ON delegation (tenant, from_id, ends_at);
CREATE INDEX delegation_to ON delegation (tenant, to_id, ends_at);

CREATE TRIGGER delegation_frozen BEFORE UPDATE OF tenant, id, from_id, to_id, starts_at, ends_at, types, level, created_at, created_by ON delegation
FOR EACH ROW
EXECUTE FUNCTION gatehouse_forbid('a delegation is frozen when it is made');
CREATE TRIGGER delegation_ended BEFORE UPDATE ON delegation
FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL)
EXECUTE FUNCTION gatehouse_forbid('an ended delegation stays ended');

CREATE POLICY wall ON delegation
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE delegation ENABLE ROW LEVEL SECURITY;
ALTER TABLE delegation FORCE ROW LEVEL SECURITY;

-- Whose right a vote uses, '' for the voter's own.
ALTER TABLE vote ADD COLUMN for_id TEXT NOT NULL DEFAULT '';
ALTER TABLE vote ADD COLUMN for_name TEXT NOT NULL DEFAULT '';

-- Grants: approvals given in advance.

-- What one person lets one agent do, for a time. amounts and used_amounts are JSON
-- lists, end_reason is '' while the grant is not ended early. A row is never deleted.
CREATE TABLE action_grant (
  tenant        TEXT NOT NULL REFERENCES tenant (id),
  id            TEXT NOT NULL CHECK (id <> ''),
  grantor_id    TEXT NOT NULL CHECK (grantor_id <> ''),
  agent_id      TEXT NOT NULL CHECK (agent_id <> ''),
  connector     TEXT NOT NULL CHECK (connector <> ''),
  fingerprint   TEXT NOT NULL,
  operation     TEXT NOT NULL CHECK (operation <> ''),
  condition     TEXT NOT NULL CHECK (condition <> ''),
  level         INTEGER NOT NULL CHECK (level BETWEEN 1 AND 3),
  count         INTEGER NOT NULL CHECK (count BETWEEN 1 AND 1000),
  amounts       TEXT NOT NULL,
  used          INTEGER NOT NULL CHECK (used BETWEEN 0 AND count),
  used_amounts  TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  expires_at    INTEGER NOT NULL,
  ended_at      INTEGER,
  ended_by      TEXT NOT NULL,
  end_reason    TEXT NOT NULL CHECK (end_reason IN ('', 'revoked', 'used_up', 'right_lost', 'policy')),
  PRIMARY KEY (tenant, id),
  CHECK (created_at < expires_at AND expires_at <= created_at + 86400000000),
  CHECK (grantor_id <> agent_id),
  CHECK ((ended_at IS NULL) = (end_reason = '') AND (ended_at IS NULL) = (ended_by = '')),
  CHECK (used < count OR ended_at IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX action_grant_open ON action_grant (tenant, agent_id, expires_at) WHERE ended_at IS NULL;

CREATE TRIGGER action_grant_frozen BEFORE UPDATE OF tenant, id, grantor_id, agent_id, connector, fingerprint, operation,
  condition, level, count, amounts, created_at, expires_at ON action_grant
BEGIN SELECT raise(ABORT, 'a grant is frozen when it is created'); END;
CREATE TRIGGER action_grant_ended BEFORE UPDATE ON action_grant WHEN OLD.ended_at IS NOT NULL
BEGIN SELECT raise(ABORT, 'an ended grant stays ended'); END;
CREATE TRIGGER action_grant_used BEFORE UPDATE OF used ON action_grant WHEN NEW.used < OLD.used
BEGIN SELECT raise(ABORT, 'what a grant has used is never given back'); END;

-- The grant that gave a vote, '' for none.
ALTER TABLE vote ADD COLUMN grant_id TEXT NOT NULL DEFAULT '';
CREATE INDEX vote_grant ON vote (tenant, grant_id) WHERE grant_id <> '';

-- An action may be decided by a grant. SQLite changes a CHECK of a large table without
-- a copy only so: https://www.sqlite.org/lang_altertable.html, section 7.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'decided_via = ''policy'' OR', 'decided_via = ''policy'' OR decided_via = ''grant'' OR')
WHERE type = 'table' AND name = 'action';
PRAGMA writable_schema = RESET;

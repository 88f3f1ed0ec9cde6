-- Mandates: plans of agents that people approved.

-- body is the whole mandate as JSON, of which the columns are copies. A row is never
-- deleted. A mandate is only ever narrowed: its count and its end never grow.
CREATE TABLE mandate (
  tenant      TEXT NOT NULL REFERENCES tenant (id),
  id          TEXT NOT NULL CHECK (id <> ''),
  agent_id    TEXT NOT NULL CHECK (agent_id <> ''),
  count       INTEGER NOT NULL CHECK (count BETWEEN 0 AND 1000),
  used        INTEGER NOT NULL CHECK (used BETWEEN 0 AND count),
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  ended_at    INTEGER,
  body        TEXT NOT NULL CHECK (body <> ''),
  PRIMARY KEY (tenant, id),
  CHECK (created_at < expires_at AND expires_at <= created_at + 2678400000000),
  CHECK (used < count OR ended_at IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX mandate_open ON mandate (tenant, agent_id, expires_at) WHERE ended_at IS NULL;

CREATE TRIGGER mandate_frozen BEFORE UPDATE OF tenant, id, agent_id, created_at ON mandate
BEGIN SELECT raise(ABORT, 'a mandate is frozen when it is approved'); END;
CREATE TRIGGER mandate_wider BEFORE UPDATE ON mandate WHEN NEW.count > OLD.count OR NEW.expires_at > OLD.expires_at
BEGIN SELECT raise(ABORT, 'a mandate is never widened'); END;
CREATE TRIGGER mandate_ended BEFORE UPDATE ON mandate WHEN OLD.ended_at IS NOT NULL
BEGIN SELECT raise(ABORT, 'an ended mandate stays ended'); END;
CREATE TRIGGER mandate_used BEFORE UPDATE OF used ON mandate WHEN NEW.used < OLD.used
BEGIN SELECT raise(ABORT, 'what a mandate has used is never given back'); END;

-- An action may be decided by a mandate. SQLite changes a CHECK of a large table without
-- a copy only so: https://www.sqlite.org/lang_altertable.html, section 7.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'decided_via = ''grant'' OR', 'decided_via = ''grant'' OR decided_via = ''mandate'' OR')
WHERE type = 'table' AND name = 'action';
PRAGMA writable_schema = RESET;

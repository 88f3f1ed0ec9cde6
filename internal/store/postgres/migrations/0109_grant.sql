-- Grants: approvals given in advance.

-- What one person lets one agent do, for a time. amounts and used_amounts are JSON
-- lists, end_reason is '' while the grant is not ended early. A row is never deleted.
CREATE TABLE action_grant (
  tenant        TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  id            TEXT COLLATE "C" NOT NULL CHECK (id <> ''),
  grantor_id    TEXT NOT NULL CHECK (grantor_id <> ''),
  agent_id      TEXT COLLATE "C" NOT NULL CHECK (agent_id <> ''),
  connector     TEXT NOT NULL CHECK (connector <> ''),
  fingerprint   TEXT NOT NULL,
  operation     TEXT NOT NULL CHECK (operation <> ''),
  condition     TEXT NOT NULL CHECK (condition <> ''),
  level         INTEGER NOT NULL CHECK (level BETWEEN 1 AND 3),
  count         INTEGER NOT NULL CHECK (count BETWEEN 1 AND 1000),
  amounts       TEXT NOT NULL,
  used          INTEGER NOT NULL CHECK (used BETWEEN 0 AND count),
  used_amounts  TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  expires_at    BIGINT NOT NULL,
  ended_at      BIGINT,
  ended_by      TEXT NOT NULL,
  end_reason    TEXT NOT NULL CHECK (end_reason IN ('', 'revoked', 'used_up', 'right_lost', 'policy')),
  PRIMARY KEY (tenant, id),
  CHECK (created_at < expires_at AND expires_at <= created_at + 86400000000),
  CHECK (grantor_id <> agent_id),
  CHECK ((ended_at IS NULL) = (end_reason = '') AND (ended_at IS NULL) = (ended_by = '')),
  CHECK (used < count OR ended_at IS NOT NULL)
);
CREATE INDEX action_grant_open ON action_grant (tenant, agent_id, expires_at) WHERE ended_at IS NULL;

CREATE TRIGGER action_grant_frozen BEFORE UPDATE OF tenant, id, grantor_id, agent_id, connector, fingerprint, operation,
  condition, level, count, amounts, created_at, expires_at ON action_grant
FOR EACH ROW
EXECUTE FUNCTION gatehouse_forbid('a grant is frozen when it is created');
CREATE TRIGGER action_grant_ended BEFORE UPDATE ON action_grant
FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL)
EXECUTE FUNCTION gatehouse_forbid('an ended grant stays ended');
CREATE TRIGGER action_grant_used BEFORE UPDATE OF used ON action_grant
FOR EACH ROW WHEN (NEW.used < OLD.used)
EXECUTE FUNCTION gatehouse_forbid('what a grant has used is never given back');

CREATE POLICY wall ON action_grant
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE action_grant ENABLE ROW LEVEL SECURITY;
ALTER TABLE action_grant FORCE ROW LEVEL SECURITY;

-- The grant that gave a vote, '' for none.
ALTER TABLE vote ADD COLUMN grant_id TEXT NOT NULL DEFAULT '';
CREATE INDEX vote_grant ON vote (tenant, grant_id) WHERE grant_id <> '';

-- An action may be decided by a grant.
CREATE OR REPLACE FUNCTION gatehouse_action_holds(id TEXT, status TEXT, risk INTEGER, decided_via TEXT, decided_at BIGINT,
  expires_at BIGINT, finished_at BIGINT, reversed_by TEXT, failure_code TEXT, failure_detail TEXT)
RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN id <> '' AND risk BETWEEN 1 AND 5
    AND status IN ('pending', 'approved', 'rejected', 'denied', 'expired', 'canceled', 'superseded', 'pushing',
      'applied', 'failed', 'unknown', 'reversed')
    AND decided_via IN ('', 'api', 'api:bulk-decide', 'console', 'cli', 'slack', 'link', 'policy', 'grant', 'client')
    AND (status = 'pending' OR decided_at IS NOT NULL)
    AND (status <> 'pending' OR expires_at IS NOT NULL AND decided_at IS NULL)
    AND (status NOT IN ('approved', 'pushing') OR finished_at IS NULL)
    AND (status <> 'reversed' OR reversed_by IS NOT NULL)
    AND (failure_code IS NULL) = (failure_detail IS NULL);
END $$;

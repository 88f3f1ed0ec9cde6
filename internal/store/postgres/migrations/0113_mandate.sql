-- Mandates: plans of agents that people approved.

-- body is the whole mandate as JSON, of which the columns are copies. A row is never
-- deleted. A mandate is only ever narrowed: its count and its end never grow.
CREATE TABLE mandate (
  tenant      TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  id          TEXT COLLATE "C" NOT NULL CHECK (id <> ''),
  agent_id    TEXT COLLATE "C" NOT NULL CHECK (agent_id <> ''),
  count       INTEGER NOT NULL CHECK (count BETWEEN 0 AND 1000),
  used        INTEGER NOT NULL CHECK (used BETWEEN 0 AND count),
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,
  ended_at    BIGINT,
  body        TEXT NOT NULL CHECK (body <> ''),
  PRIMARY KEY (tenant, id),
  CHECK (created_at < expires_at AND expires_at <= created_at + 2678400000000),
  CHECK (used < count OR ended_at IS NOT NULL)
);
CREATE INDEX mandate_open ON mandate (tenant, agent_id, expires_at) WHERE ended_at IS NULL;

CREATE TRIGGER mandate_frozen BEFORE UPDATE OF tenant, id, agent_id, created_at ON mandate
FOR EACH ROW
EXECUTE FUNCTION gatehouse_forbid('a mandate is frozen when it is approved');
CREATE TRIGGER mandate_wider BEFORE UPDATE ON mandate
FOR EACH ROW WHEN (NEW.count > OLD.count OR NEW.expires_at > OLD.expires_at)
EXECUTE FUNCTION gatehouse_forbid('a mandate is never widened');
CREATE TRIGGER mandate_ended BEFORE UPDATE ON mandate
FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL)
EXECUTE FUNCTION gatehouse_forbid('an ended mandate stays ended');
CREATE TRIGGER mandate_used BEFORE UPDATE OF used ON mandate
FOR EACH ROW WHEN (NEW.used < OLD.used)
EXECUTE FUNCTION gatehouse_forbid('what a mandate has used is never given back');

CREATE POLICY wall ON mandate
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE mandate ENABLE ROW LEVEL SECURITY;
ALTER TABLE mandate FORCE ROW LEVEL SECURITY;

-- An action may be decided by a mandate.
DO $$
BEGIN
  EXECUTE replace(pg_get_functiondef('gatehouse_action_holds'::regproc), '''grant'',', '''grant'', ''mandate'',');
END $$;

-- What an agent may read besides what it proposed or started itself: the actions
-- and child runs of its runs, and the revisions of its actions. thing is an id.
CREATE TABLE reader (
  tenant        TEXT COLLATE "C" NOT NULL,
  principal_id  TEXT COLLATE "C" NOT NULL,
  thing         TEXT COLLATE "C" NOT NULL CHECK (thing <> ''),
  PRIMARY KEY (tenant, principal_id, thing),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
);
CREATE INDEX reader_thing ON reader (tenant, thing);

INSERT INTO reader (tenant, principal_id, thing)
WITH RECURSIVE line (tenant, principal_id, id) AS (
  SELECT r.tenant, r.starter_id COLLATE "C", r.id FROM run r JOIN principal p ON p.tenant = r.tenant AND p.id = r.starter_id WHERE p.kind = 'agent'
  UNION
  SELECT l.tenant, l.principal_id, c.id FROM line l JOIN run c ON c.tenant = l.tenant AND c.parent_run = l.id
),
proposed (tenant, principal_id, id) AS (
  SELECT a.tenant, a.proposer_id COLLATE "C", a.id FROM action a JOIN principal p ON p.tenant = a.tenant AND p.id = a.proposer_id WHERE p.kind = 'agent'
  UNION
  SELECT l.tenant, l.principal_id, s.action_id FROM line l JOIN step s ON s.tenant = l.tenant AND s.run_id = l.id WHERE s.action_id IS NOT NULL
),
own (tenant, principal_id, id) AS (
  SELECT tenant, principal_id, id FROM proposed
  UNION
  SELECT o.tenant, o.principal_id, a.id FROM own o JOIN action a ON a.tenant = o.tenant AND a.supersedes = o.id
)
SELECT l.tenant, l.principal_id, l.id FROM line l JOIN run r ON r.tenant = l.tenant AND r.id = l.id WHERE r.starter_id <> l.principal_id
UNION
SELECT o.tenant, o.principal_id, o.id FROM own o
WHERE NOT EXISTS (SELECT 1 FROM action a WHERE a.tenant = o.tenant AND a.id = o.id AND a.proposer_id = o.principal_id);

-- The decisions in bulk of one person within the last minute: a JSON list of
-- microseconds since 1970, oldest first.
CREATE TABLE bulk_calls (
  tenant  TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  person  TEXT COLLATE "C" NOT NULL CHECK (person <> ''),
  times   TEXT NOT NULL,
  PRIMARY KEY (tenant, person)
);

DO $$
DECLARE
  t TEXT;
BEGIN
  FOREACH t IN ARRAY ARRAY['reader', 'bulk_calls'] LOOP
    EXECUTE format($p$CREATE POLICY wall ON %I
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*')$p$, t);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;

-- A channel that the client names is stored as "client".
CREATE OR REPLACE FUNCTION gatehouse_action_holds(id TEXT, status TEXT, risk INTEGER, decided_via TEXT, decided_at BIGINT, expires_at BIGINT,
  finished_at BIGINT, reversed_by TEXT, failure_code TEXT, failure_detail TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN id <> '' AND risk BETWEEN 1 AND 5
    AND status IN ('pending', 'approved', 'rejected', 'denied', 'expired', 'canceled', 'superseded', 'pushing', 'applied', 'failed',
      'unknown', 'reversed')
    AND decided_via IN ('', 'api', 'api:bulk-decide', 'console', 'cli', 'slack', 'link', 'policy', 'client')
    AND (status = 'pending' OR decided_at IS NOT NULL)
    AND (status <> 'pending' OR expires_at IS NOT NULL AND decided_at IS NULL)
    AND (status NOT IN ('approved', 'pushing') OR finished_at IS NULL)
    AND (status <> 'reversed' OR reversed_by IS NOT NULL)
    AND (failure_code IS NULL) = (failure_detail IS NULL);
END $$;

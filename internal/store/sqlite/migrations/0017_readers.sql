-- What an agent may read besides what it proposed or started itself: the actions
-- and child runs of its runs, and the revisions of its actions. thing is an id.
CREATE TABLE reader (
  tenant        TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  thing         TEXT NOT NULL CHECK (thing <> ''),
  PRIMARY KEY (tenant, principal_id, thing),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX reader_thing ON reader (tenant, thing);

INSERT INTO reader (tenant, principal_id, thing)
WITH RECURSIVE line (tenant, principal_id, id) AS (
  SELECT r.tenant, r.starter_id, r.id FROM run r JOIN principal p ON p.tenant = r.tenant AND p.id = r.starter_id WHERE p.kind = 'agent'
  UNION
  SELECT l.tenant, l.principal_id, c.id FROM line l JOIN run c ON c.tenant = l.tenant AND c.parent_run = l.id
),
own (tenant, principal_id, id) AS (
  SELECT a.tenant, a.proposer_id, a.id FROM action a JOIN principal p ON p.tenant = a.tenant AND p.id = a.proposer_id WHERE p.kind = 'agent'
  UNION
  SELECT l.tenant, l.principal_id, s.action_id FROM line l JOIN step s ON s.tenant = l.tenant AND s.run_id = l.id WHERE s.action_id IS NOT NULL
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
  tenant  TEXT NOT NULL REFERENCES tenant (id),
  person  TEXT NOT NULL CHECK (person <> ''),
  times   TEXT NOT NULL,
  PRIMARY KEY (tenant, person)
) STRICT, WITHOUT ROWID;

-- A channel that the client names is stored as "client".
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'OR decided_via = ''policy'')', 'OR decided_via = ''policy'' OR decided_via = ''client'')')
WHERE type = 'table' AND name = 'action';
PRAGMA writable_schema = RESET;

-- Since when a principal may approve: NULL for one from before, which counts
-- since it was created.
ALTER TABLE principal ADD COLUMN approver_since BIGINT;

-- The action by which a policy version was approved, '' for one that was applied
-- directly. One action applies one version.
ALTER TABLE policy_version ADD COLUMN action_id TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE UNIQUE INDEX policy_version_action ON policy_version (tenant, action_id) WHERE action_id <> '';

-- What was changed of rights and rules, for administrators to look at.
CREATE TABLE notice (
  tenant        TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  id            TEXT COLLATE "C" NOT NULL,
  at            BIGINT NOT NULL,
  kind          TEXT NOT NULL CHECK (kind <> ''),
  subject       TEXT COLLATE "C" NOT NULL,
  subject_name  TEXT NOT NULL,
  actor         TEXT COLLATE "C" NOT NULL CHECK (actor <> ''),
  actor_name    TEXT NOT NULL,
  via           TEXT NOT NULL,
  from_tenant   TEXT COLLATE "C" NOT NULL,
  detail        TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
);

-- Which administrator has dismissed which notice.
CREATE TABLE notice_dismissed (
  tenant        TEXT COLLATE "C" NOT NULL,
  principal_id  TEXT COLLATE "C" NOT NULL,
  notice_id     TEXT COLLATE "C" NOT NULL,
  at            BIGINT NOT NULL,
  PRIMARY KEY (tenant, principal_id, notice_id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id),
  FOREIGN KEY (tenant, notice_id) REFERENCES notice (tenant, id)
);

DO $$
DECLARE
  name TEXT;
BEGIN
  FOREACH name IN ARRAY ARRAY['notice', 'notice_dismissed'] LOOP
    EXECUTE format($p$CREATE POLICY wall ON %I
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*')$p$, name);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
  END LOOP;
END $$;

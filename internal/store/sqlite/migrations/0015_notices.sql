-- Since when a principal may approve: NULL for one from before, which counts
-- since it was created.
ALTER TABLE principal ADD COLUMN approver_since INTEGER;

-- The action by which a policy version was approved, '' for one that was applied
-- directly. One action applies one version.
ALTER TABLE policy_version ADD COLUMN action_id TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX policy_version_action ON policy_version (tenant, action_id) WHERE action_id <> '';

-- What was changed of rights and rules, for administrators to look at.
CREATE TABLE notice (
  tenant        TEXT NOT NULL REFERENCES tenant (id),
  id            TEXT NOT NULL,
  at            INTEGER NOT NULL,
  kind          TEXT NOT NULL CHECK (kind <> ''),
  subject       TEXT NOT NULL,
  subject_name  TEXT NOT NULL,
  actor         TEXT NOT NULL CHECK (actor <> ''),
  actor_name    TEXT NOT NULL,
  via           TEXT NOT NULL,
  from_tenant   TEXT NOT NULL,
  detail        TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Which administrator has dismissed which notice.
CREATE TABLE notice_dismissed (
  tenant        TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  notice_id     TEXT NOT NULL,
  at            INTEGER NOT NULL,
  PRIMARY KEY (tenant, principal_id, notice_id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id),
  FOREIGN KEY (tenant, notice_id) REFERENCES notice (tenant, id)
) STRICT, WITHOUT ROWID;

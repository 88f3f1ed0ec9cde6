-- Named sets of people. Who is a member stands at the principals, which are
-- locked wherever a vote is counted.
CREATE TABLE principal_group (
  tenant      TEXT NOT NULL REFERENCES tenant (id),
  name        TEXT NOT NULL CHECK (name <> ''),
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- A list of {"group", "from"}, "" for none.
ALTER TABLE principal ADD COLUMN groups TEXT NOT NULL DEFAULT '';
-- The groups that an approval asks, "" for none.
ALTER TABLE approval ADD COLUMN groups TEXT NOT NULL DEFAULT '';
DROP TRIGGER approval_frozen;
CREATE TRIGGER approval_frozen BEFORE UPDATE OF seq, tenant, id, required, roles, people, excluded, expires_at, created_at,
  confirm_prompt, confirm_value, groups ON approval
BEGIN SELECT RAISE(ROLLBACK, 'an approval is frozen when it is created'); END;

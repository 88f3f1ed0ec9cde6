-- Named sets of people. Who is a member stands at the principals, which are
-- locked wherever a vote is counted.
CREATE TABLE principal_group (
  tenant      TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  name        TEXT COLLATE "C" NOT NULL CHECK (name <> ''),
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (tenant, name)
);
CREATE POLICY wall ON principal_group
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE principal_group ENABLE ROW LEVEL SECURITY;
ALTER TABLE principal_group FORCE ROW LEVEL SECURITY;

-- A list of {"group", "from"}, "" for none.
ALTER TABLE principal ADD COLUMN groups TEXT NOT NULL DEFAULT '';
-- The groups that an approval asks, "" for none.
ALTER TABLE approval ADD COLUMN groups TEXT NOT NULL DEFAULT '';
DROP TRIGGER approval_frozen ON approval;
CREATE TRIGGER approval_frozen BEFORE UPDATE OF seq, tenant, id, required, roles, people, excluded, expires_at, created_at,
  confirm_prompt, confirm_value, groups ON approval
FOR EACH ROW
EXECUTE FUNCTION gatehouse_forbid('an approval is frozen when it is created');

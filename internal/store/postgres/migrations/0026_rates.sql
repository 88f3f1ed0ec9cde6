-- The rate limit of a principal over all replicas: full_at is when its bucket is
-- full again (microseconds since 1970). A principal far below the limit has no
-- row, or an old one.
CREATE TABLE rate_spent (
  tenant        TEXT COLLATE "C" NOT NULL,
  principal_id  TEXT COLLATE "C" NOT NULL,
  full_at       BIGINT NOT NULL,
  PRIMARY KEY (tenant, principal_id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
);
CREATE POLICY wall ON rate_spent
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE rate_spent ENABLE ROW LEVEL SECURITY;
ALTER TABLE rate_spent FORCE ROW LEVEL SECURITY;

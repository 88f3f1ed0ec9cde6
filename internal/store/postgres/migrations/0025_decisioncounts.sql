-- The requests for a decision, by UTC day (its first microsecond since 1970),
-- endpoint and result. Replicas add to the same rows.
CREATE TABLE decision_count (
  tenant    TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  day       BIGINT NOT NULL CHECK (day % 86400000000 = 0),
  endpoint  TEXT COLLATE "C" NOT NULL CHECK (endpoint IN ('decide', 'bulk-decide', 'approve', 'reject', 'console')),
  result    TEXT COLLATE "C" NOT NULL CHECK (result IN ('won', 'voted', 'replayed', 'conflict', 'refused')),
  n         BIGINT NOT NULL CHECK (n > 0),
  PRIMARY KEY (tenant, day, endpoint, result)
);
CREATE POLICY wall ON decision_count
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE decision_count ENABLE ROW LEVEL SECURITY;
ALTER TABLE decision_count FORCE ROW LEVEL SECURITY;

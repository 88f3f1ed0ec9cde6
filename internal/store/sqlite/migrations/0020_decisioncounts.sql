-- The requests for a decision, by UTC day (its first microsecond since 1970),
-- endpoint and result.
CREATE TABLE decision_count (
  tenant    TEXT NOT NULL REFERENCES tenant (id),
  day       INTEGER NOT NULL CHECK (day % 86400000000 = 0),
  endpoint  TEXT NOT NULL CHECK (endpoint IN ('decide', 'bulk-decide', 'approve', 'reject', 'console')),
  result    TEXT NOT NULL CHECK (result IN ('won', 'voted', 'replayed', 'conflict', 'refused')),
  n         INTEGER NOT NULL CHECK (n > 0),
  PRIMARY KEY (tenant, day, endpoint, result)
) STRICT, WITHOUT ROWID;

-- The keys that sign the links of mails, and what those links ask.

-- A key of a tenant, sealed under a master key that is not in the store; master is
-- that key's id. One of each purpose is in use: neither retired nor revoked.
CREATE TABLE ring_key (
  tenant      TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  id          TEXT COLLATE "C" NOT NULL,
  number      BIGINT NOT NULL CHECK (number BETWEEN 1 AND 4294967295),
  purpose     TEXT COLLATE "C" NOT NULL CHECK (purpose <> ''),
  sealed      BYTEA NOT NULL CHECK (length(sealed) > 32),
  master      TEXT COLLATE "C" NOT NULL CHECK (master <> ''),
  created_at  BIGINT NOT NULL,
  created_by  TEXT COLLATE "C" NOT NULL CHECK (created_by <> ''),
  retired_at  BIGINT,
  ends_at     BIGINT,
  revoked_at  BIGINT,
  PRIMARY KEY (tenant, id),
  CHECK (ends_at IS NULL OR retired_at IS NOT NULL),
  CHECK (revoked_at IS NULL OR retired_at IS NOT NULL)
);
CREATE UNIQUE INDEX ring_key_number ON ring_key (number);
CREATE UNIQUE INDEX ring_key_in_use ON ring_key (tenant, purpose) WHERE retired_at IS NULL;
CREATE INDEX ring_key_age ON ring_key (purpose, created_at) WHERE retired_at IS NULL;

-- One approval for one recipient. The action may be archived meanwhile.
CREATE TABLE review (
  tenant       TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  id           TEXT COLLATE "C" NOT NULL,
  action_id    TEXT COLLATE "C" NOT NULL CHECK (action_id <> ''),
  approval_id  TEXT COLLATE "C" NOT NULL CHECK (approval_id <> ''),
  recipient    TEXT COLLATE "C" NOT NULL CHECK (recipient <> ''),
  created_at   BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL,
  tries        INTEGER NOT NULL CHECK (tries BETWEEN 0 AND 5),
  PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX review_once ON review (tenant, approval_id, recipient);
CREATE INDEX review_expired ON review (expires_at);

CREATE POLICY wall ON ring_key
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE ring_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE ring_key FORCE ROW LEVEL SECURITY;

CREATE POLICY wall ON review
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE review ENABLE ROW LEVEL SECURITY;
ALTER TABLE review FORCE ROW LEVEL SECURITY;

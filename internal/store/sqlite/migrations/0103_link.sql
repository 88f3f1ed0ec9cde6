-- The keys that sign the links of mails, and what those links ask.

-- A key of a tenant, sealed under a master key that is not in the store; master is
-- that key's id. One of each purpose is in use: neither retired nor revoked.
CREATE TABLE ring_key (
  tenant      TEXT NOT NULL REFERENCES tenant (id),
  id          TEXT NOT NULL,
  number      INTEGER NOT NULL CHECK (number BETWEEN 1 AND 4294967295),
  purpose     TEXT NOT NULL CHECK (purpose <> ''),
  sealed      BLOB NOT NULL CHECK (length(sealed) > 32),
  master      TEXT NOT NULL CHECK (master <> ''),
  created_at  INTEGER NOT NULL,
  created_by  TEXT NOT NULL CHECK (created_by <> ''),
  retired_at  INTEGER,
  ends_at     INTEGER,
  revoked_at  INTEGER,
  PRIMARY KEY (tenant, id),
  CHECK (ends_at IS NULL OR retired_at IS NOT NULL),
  CHECK (revoked_at IS NULL OR retired_at IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX ring_key_number ON ring_key (number);
CREATE UNIQUE INDEX ring_key_in_use ON ring_key (tenant, purpose) WHERE retired_at IS NULL;
CREATE INDEX ring_key_age ON ring_key (purpose, created_at) WHERE retired_at IS NULL;

-- One approval for one recipient. The action may be archived meanwhile.
CREATE TABLE review (
  tenant       TEXT NOT NULL REFERENCES tenant (id),
  id           TEXT NOT NULL,
  action_id    TEXT NOT NULL CHECK (action_id <> ''),
  approval_id  TEXT NOT NULL CHECK (approval_id <> ''),
  recipient    TEXT NOT NULL CHECK (recipient <> ''),
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  tries        INTEGER NOT NULL CHECK (tries BETWEEN 0 AND 5),
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX review_once ON review (tenant, approval_id, recipient);
CREATE INDEX review_expired ON review (expires_at);

-- Secrets: credentials of connectors that are kept in the store.

-- A value is sealed under a key of the ring, with tenant, name and version as its
-- place; the key itself opens only under the right master key. A revoked secret has
-- no value. The row stays, so that no version is used twice.
CREATE TABLE secret (
  tenant      TEXT NOT NULL REFERENCES tenant (id),
  name        TEXT NOT NULL CHECK (name <> ''),
  version     INTEGER NOT NULL CHECK (version >= 1),
  ring_key    TEXT,
  sealed      BLOB CHECK (length(sealed) > 32),
  set_at      INTEGER NOT NULL,
  set_by      TEXT NOT NULL CHECK (set_by <> ''),
  revoked_at  INTEGER,
  revoked_by  TEXT NOT NULL,
  used_at     INTEGER,
  PRIMARY KEY (tenant, name),
  FOREIGN KEY (tenant, ring_key) REFERENCES ring_key (tenant, id),
  CHECK ((sealed IS NULL) = (revoked_at IS NOT NULL)),
  CHECK ((sealed IS NULL) = (ring_key IS NULL)),
  CHECK ((revoked_at IS NULL) = (revoked_by = ''))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER secret_version BEFORE UPDATE OF tenant, name, version ON secret
WHEN NEW.tenant <> OLD.tenant OR NEW.name <> OLD.name OR NEW.version NOT IN (OLD.version, OLD.version + 1)
BEGIN SELECT raise(ABORT, 'the version of a secret goes up by one'); END;
CREATE TRIGGER secret_value BEFORE UPDATE OF sealed ON secret
WHEN NEW.version = OLD.version AND NEW.sealed IS NOT NULL AND NEW.sealed IS NOT OLD.sealed
BEGIN SELECT raise(ABORT, 'another value of a secret is another version'); END;

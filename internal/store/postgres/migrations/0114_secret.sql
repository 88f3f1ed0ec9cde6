-- Secrets: credentials of connectors that are kept in the store.

-- A value is sealed under a key of the ring, with tenant, name and version as its
-- place; the key itself opens only under the right master key. A revoked secret has
-- no value. The row stays, so that no version is used twice.
CREATE TABLE secret (
  tenant      TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  name        TEXT COLLATE "C" NOT NULL CHECK (name <> ''),
  version     INTEGER NOT NULL CHECK (version >= 1),
  ring_key    TEXT COLLATE "C",
  sealed      BYTEA CHECK (length(sealed) > 32),
  set_at      BIGINT NOT NULL,
  set_by      TEXT COLLATE "C" NOT NULL CHECK (set_by <> ''),
  revoked_at  BIGINT,
  revoked_by  TEXT COLLATE "C" NOT NULL,
  used_at     BIGINT,
  PRIMARY KEY (tenant, name),
  FOREIGN KEY (tenant, ring_key) REFERENCES ring_key (tenant, id),
  CHECK ((sealed IS NULL) = (revoked_at IS NOT NULL)),
  CHECK ((sealed IS NULL) = (ring_key IS NULL)),
  CHECK ((revoked_at IS NULL) = (revoked_by = ''))
);

CREATE TRIGGER secret_version BEFORE UPDATE OF tenant, name, version ON secret
FOR EACH ROW WHEN (NEW.tenant <> OLD.tenant OR NEW.name <> OLD.name OR NEW.version NOT IN (OLD.version, OLD.version + 1))
EXECUTE FUNCTION gatehouse_forbid('the version of a secret goes up by one');
CREATE TRIGGER secret_value BEFORE UPDATE OF sealed ON secret
FOR EACH ROW WHEN (NEW.version = OLD.version AND NEW.sealed IS NOT NULL AND NEW.sealed IS DISTINCT FROM OLD.sealed)
EXECUTE FUNCTION gatehouse_forbid('another value of a secret is another version');

CREATE POLICY wall ON secret
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE secret FORCE ROW LEVEL SECURITY;

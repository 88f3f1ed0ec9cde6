-- Connectors in the store.

-- source is the section connectors of a configuration file. The newest version is in
-- force. action_id is the action that approved it; one action stores one version.
CREATE TABLE connector_version (
  tenant      TEXT NOT NULL REFERENCES tenant (id),
  version     INTEGER NOT NULL CHECK (version >= 1),
  source      TEXT NOT NULL CHECK (source <> ''),
  sha256      TEXT NOT NULL CHECK (length(sha256) = 64),
  applied_by  TEXT NOT NULL CHECK (applied_by <> ''),
  applied_at  INTEGER NOT NULL,
  action_id   TEXT NOT NULL CHECK (action_id <> ''),
  PRIMARY KEY (tenant, version),
  UNIQUE (tenant, action_id)
) STRICT;

CREATE TRIGGER connector_version_frozen BEFORE UPDATE ON connector_version
BEGIN SELECT raise(ABORT, 'a version of the connectors never changes'); END;
CREATE TRIGGER connector_version_kept BEFORE DELETE ON connector_version
BEGIN SELECT raise(ABORT, 'a version of the connectors is never deleted'); END;

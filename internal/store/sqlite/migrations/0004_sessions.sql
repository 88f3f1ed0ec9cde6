-- Who is signed in, and with what. Secrets are stored as their SHA-256 only.

CREATE TABLE session (
  hash          BLOB PRIMARY KEY CHECK (length(hash) = 32),
  tenant        TEXT NOT NULL,
  id            TEXT NOT NULL CHECK (id <> ''),
  principal_id  TEXT NOT NULL,
  method        TEXT NOT NULL CHECK (method IN ('setup', 'oidc', 'passkey')),
  credential    TEXT NOT NULL,
  user_agent    TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  last_seen_at  INTEGER NOT NULL,
  expires_at    INTEGER NOT NULL CHECK (expires_at > created_at),
  revoked_at    INTEGER,
  UNIQUE (tenant, id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_principal ON session (tenant, principal_id, id);
CREATE TRIGGER session_revoked BEFORE UPDATE ON session WHEN OLD.revoked_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a revoked session stays revoked'); END;
CREATE TRIGGER session_frozen BEFORE UPDATE OF hash, tenant, id, principal_id, method, credential, created_at ON session
BEGIN SELECT RAISE(ABORT, 'a session stays whose it is'); END;
CREATE TRIGGER session_person BEFORE INSERT ON session
WHEN (SELECT kind FROM principal WHERE tenant = NEW.tenant AND id = NEW.principal_id) <> 'person'
BEGIN SELECT RAISE(ABORT, 'only a person has sessions'); END;

CREATE TABLE setup_link (
  hash          BLOB PRIMARY KEY CHECK (length(hash) = 32),
  tenant        TEXT NOT NULL,
  id            TEXT NOT NULL CHECK (id <> ''),
  principal_id  TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  expires_at    INTEGER NOT NULL,
  used_at       INTEGER,
  UNIQUE (tenant, id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX setup_link_principal ON setup_link (tenant, principal_id);
CREATE TRIGGER setup_link_used BEFORE UPDATE ON setup_link WHEN OLD.used_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a set-up link works once'); END;

CREATE TABLE external_identity (
  tenant        TEXT NOT NULL,
  issuer        TEXT NOT NULL CHECK (issuer <> ''),
  subject       TEXT NOT NULL CHECK (subject <> ''),
  principal_id  TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (tenant, issuer, subject),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX external_identity_principal ON external_identity (tenant, principal_id);

CREATE TABLE passkey (
  tenant         TEXT NOT NULL,
  id             TEXT NOT NULL CHECK (id <> ''),
  principal_id   TEXT NOT NULL,
  name           TEXT NOT NULL,
  credential_id  BLOB NOT NULL UNIQUE CHECK (length(credential_id) BETWEEN 1 AND 1023),
  credential     BLOB NOT NULL,
  sign_count     INTEGER NOT NULL CHECK (sign_count >= 0),
  created_at     INTEGER NOT NULL,
  last_used_at   INTEGER,
  PRIMARY KEY (tenant, id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX passkey_principal ON passkey (tenant, principal_id, id);

CREATE TABLE ceremony (
  hash        BLOB PRIMARY KEY CHECK (length(hash) = 32),
  tenant      TEXT NOT NULL,
  session_id  TEXT NOT NULL,
  data        BLOB NOT NULL,
  expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ceremony_age ON ceremony (expires_at);

CREATE TABLE step_up (
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL CHECK (id <> ''),
  session_id  TEXT NOT NULL,
  action_id   TEXT NOT NULL,
  digest      TEXT NOT NULL CHECK (digest <> ''),
  method      TEXT NOT NULL CHECK (method IN ('passkey', 'oidc', 'edit_token')),
  at          INTEGER NOT NULL,
  used_at     INTEGER,
  PRIMARY KEY (tenant, id),
  FOREIGN KEY (tenant, session_id) REFERENCES session (tenant, id),
  FOREIGN KEY (tenant, action_id) REFERENCES action (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX step_up_open ON step_up (tenant, session_id, action_id, id) WHERE used_at IS NULL;
CREATE TRIGGER step_up_used BEFORE UPDATE ON step_up WHEN OLD.used_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a step-up works once'); END;
CREATE TRIGGER step_up_frozen BEFORE UPDATE OF tenant, id, session_id, action_id, digest, method, at ON step_up
BEGIN SELECT RAISE(ABORT, 'a step-up stays what it was given for'); END;

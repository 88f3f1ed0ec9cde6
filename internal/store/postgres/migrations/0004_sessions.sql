-- Who is signed in, and with what. Secrets are stored as their SHA-256 only.

CREATE TABLE session (
  hash          BYTEA PRIMARY KEY CHECK (octet_length(hash) = 32),
  tenant        TEXT COLLATE "C" NOT NULL,
  id            TEXT COLLATE "C" NOT NULL CHECK (id <> ''),
  principal_id  TEXT COLLATE "C" NOT NULL,
  method        TEXT NOT NULL CHECK (method IN ('setup', 'oidc', 'passkey')),
  credential    TEXT COLLATE "C" NOT NULL,
  user_agent    TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  last_seen_at  BIGINT NOT NULL,
  expires_at    BIGINT NOT NULL CHECK (expires_at > created_at),
  revoked_at    BIGINT,
  UNIQUE (tenant, id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
);
CREATE INDEX session_principal ON session (tenant, principal_id, id);
CREATE TRIGGER session_revoked BEFORE UPDATE ON session
FOR EACH ROW WHEN (OLD.revoked_at IS NOT NULL)
EXECUTE FUNCTION gatehouse_forbid('a revoked session stays revoked');
CREATE TRIGGER session_frozen BEFORE UPDATE OF hash, tenant, id, principal_id, method, credential, created_at ON session
FOR EACH ROW
EXECUTE FUNCTION gatehouse_forbid('a session stays whose it is');
CREATE FUNCTION gatehouse_person() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM principal WHERE tenant = NEW.tenant AND id = NEW.principal_id AND kind <> 'person') THEN
    RAISE EXCEPTION USING ERRCODE = 'GH001', MESSAGE = 'only a person has sessions';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER session_person BEFORE INSERT ON session
FOR EACH ROW
EXECUTE FUNCTION gatehouse_person();

CREATE TABLE setup_link (
  hash          BYTEA PRIMARY KEY CHECK (octet_length(hash) = 32),
  tenant        TEXT COLLATE "C" NOT NULL,
  id            TEXT COLLATE "C" NOT NULL CHECK (id <> ''),
  principal_id  TEXT COLLATE "C" NOT NULL,
  created_at    BIGINT NOT NULL,
  expires_at    BIGINT NOT NULL,
  used_at       BIGINT,
  UNIQUE (tenant, id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
);
CREATE INDEX setup_link_principal ON setup_link (tenant, principal_id);
CREATE TRIGGER setup_link_used BEFORE UPDATE ON setup_link
FOR EACH ROW WHEN (OLD.used_at IS NOT NULL)
EXECUTE FUNCTION gatehouse_forbid('a set-up link works once');

CREATE TABLE external_identity (
  tenant        TEXT COLLATE "C" NOT NULL,
  issuer        TEXT COLLATE "C" NOT NULL CHECK (issuer <> ''),
  subject       TEXT COLLATE "C" NOT NULL CHECK (subject <> ''),
  principal_id  TEXT COLLATE "C" NOT NULL,
  created_at    BIGINT NOT NULL,
  PRIMARY KEY (tenant, issuer, subject),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
);
CREATE INDEX external_identity_principal ON external_identity (tenant, principal_id);

CREATE TABLE passkey (
  tenant         TEXT COLLATE "C" NOT NULL,
  id             TEXT COLLATE "C" NOT NULL CHECK (id <> ''),
  principal_id   TEXT COLLATE "C" NOT NULL,
  name           TEXT NOT NULL,
  credential_id  BYTEA NOT NULL UNIQUE CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
  credential     BYTEA NOT NULL,
  sign_count     BIGINT NOT NULL CHECK (sign_count >= 0),
  created_at     BIGINT NOT NULL,
  last_used_at   BIGINT,
  PRIMARY KEY (tenant, id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
);
CREATE INDEX passkey_principal ON passkey (tenant, principal_id, id);

CREATE TABLE ceremony (
  hash        BYTEA PRIMARY KEY CHECK (octet_length(hash) = 32),
  tenant      TEXT COLLATE "C" NOT NULL,
  session_id  TEXT COLLATE "C" NOT NULL,
  data        BYTEA NOT NULL,
  expires_at  BIGINT NOT NULL
);
CREATE INDEX ceremony_age ON ceremony (expires_at);

CREATE TABLE step_up (
  tenant      TEXT COLLATE "C" NOT NULL,
  id          TEXT COLLATE "C" NOT NULL CHECK (id <> ''),
  session_id  TEXT COLLATE "C" NOT NULL,
  action_id   TEXT COLLATE "C" NOT NULL,
  digest      TEXT COLLATE "C" NOT NULL CHECK (digest <> ''),
  method      TEXT NOT NULL CHECK (method IN ('passkey', 'oidc', 'edit_token')),
  at          BIGINT NOT NULL,
  used_at     BIGINT,
  PRIMARY KEY (tenant, id),
  FOREIGN KEY (tenant, session_id) REFERENCES session (tenant, id),
  FOREIGN KEY (tenant, action_id) REFERENCES action (tenant, id)
);
CREATE INDEX step_up_open ON step_up (tenant, session_id, action_id, id) WHERE used_at IS NULL;
CREATE TRIGGER step_up_used BEFORE UPDATE ON step_up
FOR EACH ROW WHEN (OLD.used_at IS NOT NULL)
EXECUTE FUNCTION gatehouse_forbid('a step-up works once');
CREATE TRIGGER step_up_frozen BEFORE UPDATE OF tenant, id, session_id, action_id, digest, method, at ON step_up
FOR EACH ROW
EXECUTE FUNCTION gatehouse_forbid('a step-up stays what it was given for');

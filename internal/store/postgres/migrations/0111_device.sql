-- The browsers in which people get notifications by web push. last_message is the
-- notification that was accepted last, last_error is '' after a success.
CREATE TABLE device (
  tenant        TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  id            TEXT COLLATE "C" NOT NULL CHECK (id <> ''),
  principal_id  TEXT COLLATE "C" NOT NULL CHECK (principal_id <> ''),
  endpoint      TEXT COLLATE "C" NOT NULL CHECK (endpoint LIKE 'https://%' AND length(endpoint) <= 2048),
  p256dh        BYTEA NOT NULL CHECK (length(p256dh) = 65),
  auth          BYTEA NOT NULL CHECK (length(auth) = 16),
  label         TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  last_sent_at  BIGINT,
  last_message  TEXT NOT NULL,
  last_error    TEXT NOT NULL,
  PRIMARY KEY (tenant, id),
  CHECK ((last_sent_at IS NULL) = (last_message = ''))
);
CREATE UNIQUE INDEX device_endpoint ON device (tenant, endpoint);
CREATE INDEX device_principal ON device (tenant, principal_id);

CREATE POLICY wall ON device
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE device ENABLE ROW LEVEL SECURITY;
ALTER TABLE device FORCE ROW LEVEL SECURITY;

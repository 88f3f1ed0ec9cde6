-- The browsers in which people get notifications by web push. last_message is the
-- notification that was accepted last, last_error is '' after a success.
CREATE TABLE device (
  tenant        TEXT NOT NULL REFERENCES tenant (id),
  id            TEXT NOT NULL CHECK (id <> ''),
  principal_id  TEXT NOT NULL CHECK (principal_id <> ''),
  endpoint      TEXT NOT NULL CHECK (endpoint LIKE 'https://%' AND length(endpoint) <= 2048),
  p256dh        BLOB NOT NULL CHECK (length(p256dh) = 65),
  auth          BLOB NOT NULL CHECK (length(auth) = 16),
  label         TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  last_sent_at  INTEGER,
  last_message  TEXT NOT NULL,
  last_error    TEXT NOT NULL,
  PRIMARY KEY (tenant, id),
  CHECK ((last_sent_at IS NULL) = (last_message = ''))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX device_endpoint ON device (tenant, endpoint);
CREATE INDEX device_principal ON device (tenant, principal_id);

-- What each person does not want on a channel: muted is a JSON array of topics, and
-- quiet_from to quiet_to are hours in which messages wait, '' for none.
CREATE TABLE notification_preference (
  tenant        TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  principal_id  TEXT COLLATE "C" NOT NULL CHECK (principal_id <> ''),
  channel       TEXT COLLATE "C" NOT NULL CHECK (channel <> ''),
  muted         TEXT NOT NULL CHECK (muted LIKE '[%]'),
  quiet_from    TEXT NOT NULL,
  quiet_to      TEXT NOT NULL,
  quiet_zone    TEXT NOT NULL,
  changed_at    BIGINT NOT NULL,
  PRIMARY KEY (tenant, principal_id, channel),
  CHECK ((quiet_from = '') = (quiet_to = '')),
  CHECK (quiet_from <> quiet_to OR quiet_from = '')
);

CREATE POLICY wall ON notification_preference
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE notification_preference ENABLE ROW LEVEL SECURITY;
ALTER TABLE notification_preference FORCE ROW LEVEL SECURITY;

-- What each person does not want on a channel: muted is a JSON array of topics, and
-- quiet_from to quiet_to are hours in which messages wait, '' for none.
CREATE TABLE notification_preference (
  tenant        TEXT NOT NULL REFERENCES tenant (id),
  principal_id  TEXT NOT NULL CHECK (principal_id <> ''),
  channel       TEXT NOT NULL CHECK (channel <> ''),
  muted         TEXT NOT NULL CHECK (muted LIKE '[%]'),
  quiet_from    TEXT NOT NULL,
  quiet_to      TEXT NOT NULL,
  quiet_zone    TEXT NOT NULL,
  changed_at    INTEGER NOT NULL,
  PRIMARY KEY (tenant, principal_id, channel),
  CHECK ((quiet_from = '') = (quiet_to = '')),
  CHECK (quiet_from <> quiet_to OR quiet_from = '')
) STRICT, WITHOUT ROWID;

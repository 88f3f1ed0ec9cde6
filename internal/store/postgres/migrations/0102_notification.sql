-- Who is told what over which channel, and how far each message came. Rows follow
-- from the audit log, which is written in the transaction of what it tells.

-- The first entry of each log that was not looked at for whom to tell.
CREATE TABLE notification_position (
  tenant  TEXT COLLATE "C" PRIMARY KEY REFERENCES tenant (id),
  next    BIGINT NOT NULL CHECK (next >= 0)
);

-- entry is the index of the log's entry, -1 for none; recipient is '' where the
-- channel is a place of its own. due_at is when a queued message is sent and when the
-- lease of a sent one ends.
CREATE TABLE notification (
  tenant       TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  id           TEXT COLLATE "C" NOT NULL,
  created_at   BIGINT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind <> ''),
  action_id    TEXT COLLATE "C" NOT NULL DEFAULT '',
  entry        BIGINT NOT NULL CHECK (entry >= -1),
  channel      TEXT COLLATE "C" NOT NULL CHECK (channel <> ''),
  recipient    TEXT COLLATE "C" NOT NULL,
  status       TEXT NOT NULL CHECK (status IN ('queued', 'sent', 'accepted', 'delivered', 'failed', 'muted')),
  attempts     INTEGER NOT NULL CHECK (attempts >= 0),
  last_error   TEXT NOT NULL,
  due_at       BIGINT,
  finished_at  BIGINT,
  generation   INTEGER NOT NULL CHECK (generation >= 0),
  lease_owner  TEXT NOT NULL,
  ref          TEXT NOT NULL,
  data         TEXT NOT NULL,
  PRIMARY KEY (tenant, id),
  CHECK ((status IN ('queued', 'sent')) = (due_at IS NOT NULL)),
  CHECK ((status IN ('queued', 'sent')) = (finished_at IS NULL)),
  CHECK ((status = 'sent') = (lease_owner <> ''))
);
CREATE UNIQUE INDEX notification_once ON notification (tenant, entry, kind, channel, recipient) WHERE entry >= 0;
CREATE INDEX notification_due ON notification (channel, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX notification_action ON notification (tenant, action_id, id);
CREATE INDEX notification_recent ON notification (tenant, channel, recipient, created_at);
CREATE INDEX notification_finished ON notification (finished_at) WHERE finished_at IS NOT NULL;

-- How each channel fares. failing_since is set at the third failure in a row, off_at
-- when the receiver says that it is gone.
CREATE TABLE channel_state (
  tenant         TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  channel        TEXT COLLATE "C" NOT NULL CHECK (channel <> ''),
  failures       INTEGER NOT NULL CHECK (failures >= 0),
  failing_since  BIGINT,
  off_at         BIGINT,
  last_error     TEXT NOT NULL,
  last_ok_at     BIGINT,
  PRIMARY KEY (tenant, channel)
);

CREATE POLICY wall ON notification_position
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE notification_position ENABLE ROW LEVEL SECURITY;
ALTER TABLE notification_position FORCE ROW LEVEL SECURITY;
CREATE POLICY wall ON notification
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE notification ENABLE ROW LEVEL SECURITY;
ALTER TABLE notification FORCE ROW LEVEL SECURITY;
CREATE POLICY wall ON channel_state
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE channel_state ENABLE ROW LEVEL SECURITY;
ALTER TABLE channel_state FORCE ROW LEVEL SECURITY;

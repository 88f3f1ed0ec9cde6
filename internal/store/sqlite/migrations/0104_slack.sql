-- Deciding from Slack. A click is stored before Slack is answered, and carried out
-- afterwards under a lease: key is unique, so that the same interaction, delivered
-- again, is one click. choice is '' where result is only to be answered.
CREATE TABLE slack_click (
  tenant       TEXT NOT NULL REFERENCES tenant (id),
  id           TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  key          BLOB NOT NULL CHECK (length(key) = 32),
  channel      TEXT NOT NULL CHECK (channel <> ''),
  place        TEXT NOT NULL,
  ts           TEXT NOT NULL,
  issuer       TEXT NOT NULL CHECK (issuer <> ''),
  slack_user   TEXT NOT NULL CHECK (slack_user <> ''),
  action_id    TEXT NOT NULL,
  digest       TEXT NOT NULL,
  choice       TEXT NOT NULL CHECK (choice IN ('', 'approved', 'rejected')),
  reason       TEXT NOT NULL,
  result       TEXT NOT NULL,
  said         TEXT NOT NULL,
  attempts     INTEGER NOT NULL CHECK (attempts >= 0),
  last_error   TEXT NOT NULL,
  due_at       INTEGER,
  finished_at  INTEGER,
  generation   INTEGER NOT NULL CHECK (generation >= 0),
  lease_owner  TEXT NOT NULL,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, key),
  CHECK ((due_at IS NULL) = (finished_at IS NOT NULL)),
  CHECK (choice <> '' OR result <> ''),
  CHECK (finished_at IS NULL OR result <> '')
) STRICT, WITHOUT ROWID;
CREATE INDEX slack_click_due ON slack_click (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX slack_click_open ON slack_click (tenant, action_id) WHERE result = '';
CREATE INDEX slack_click_finished ON slack_click (finished_at) WHERE finished_at IS NOT NULL;

-- The messages that are kept in line with their action. wanted counts the reasons to
-- write one again; one holder of a lease writes it at a time.
CREATE TABLE notification_card (
  tenant       TEXT NOT NULL REFERENCES tenant (id),
  channel      TEXT NOT NULL CHECK (channel <> ''),
  action_id    TEXT NOT NULL CHECK (action_id <> ''),
  ref          TEXT NOT NULL CHECK (ref <> ''),
  wanted       INTEGER NOT NULL CHECK (wanted >= 0),
  shown        TEXT NOT NULL,
  due_at       INTEGER,
  attempts     INTEGER NOT NULL CHECK (attempts >= 0),
  generation   INTEGER NOT NULL CHECK (generation >= 0),
  lease_owner  TEXT NOT NULL,
  last_error   TEXT NOT NULL,
  updated_at   INTEGER NOT NULL,
  PRIMARY KEY (tenant, channel, action_id),
  CHECK (lease_owner = '' OR due_at IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX notification_card_due ON notification_card (channel, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX notification_card_action ON notification_card (tenant, action_id);
CREATE INDEX notification_card_old ON notification_card (updated_at) WHERE due_at IS NULL;

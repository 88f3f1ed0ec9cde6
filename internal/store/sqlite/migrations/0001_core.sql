-- The gate's tables. Times are microseconds since 1970, UTC. Optional texts are
-- '' when absent, optional times and references NULL. seq is the row's number
-- inside this file and never shown; children point to their action by it.

-- The one row that is nobody's: the highest reading of the clock that was
-- stored, and the number of the last batch, by which an unclear commit is known.
CREATE TABLE meta (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  clock  INTEGER NOT NULL CHECK (clock >= 0),
  batch  INTEGER NOT NULL CHECK (batch >= 0)
) STRICT;
INSERT INTO meta VALUES (1, 0, 0);
CREATE TRIGGER meta_forward BEFORE UPDATE ON meta WHEN NEW.clock < OLD.clock OR NEW.batch < OLD.batch
BEGIN SELECT RAISE(ABORT, 'the clock never runs backwards'); END;

CREATE TABLE tenant (
  id          TEXT PRIMARY KEY CHECK (id <> ''),
  created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- People and programs.

CREATE TABLE principal (
  tenant      TEXT NOT NULL REFERENCES tenant (id),
  id          TEXT NOT NULL CHECK (id <> ''),
  name        TEXT NOT NULL COLLATE NOCASE CHECK (name <> ''),
  kind        TEXT NOT NULL CHECK (kind IN ('person', 'agent', 'service')),
  roles       TEXT NOT NULL,
  person      TEXT NOT NULL CHECK (person <> ''),
  sponsor     TEXT NOT NULL,
  disabled    INTEGER NOT NULL CHECK (disabled IN (0, 1)),
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, name),
  CHECK (sponsor = '' OR kind = 'agent')
) STRICT, WITHOUT ROWID;

CREATE TABLE api_key (
  hash          BLOB PRIMARY KEY CHECK (length(hash) = 32),
  tenant        TEXT NOT NULL,
  id            TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  revoked_at    INTEGER,
  UNIQUE (tenant, id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX api_key_principal ON api_key (tenant, principal_id, id);
CREATE TRIGGER api_key_revoked BEFORE UPDATE ON api_key WHEN OLD.revoked_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a revoked key stays revoked'); END;

CREATE TABLE edit_token (
  tenant        TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  hash          BLOB NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (tenant, principal_id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  seq           INTEGER PRIMARY KEY,
  tenant        TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  route         TEXT NOT NULL,
  key           TEXT NOT NULL,
  body_hash     BLOB NOT NULL CHECK (length(body_hash) = 32),
  created_at    INTEGER NOT NULL,
  body          BLOB,
  UNIQUE (tenant, principal_id, route, key)
) STRICT;
CREATE INDEX idempotency_age ON idempotency (created_at);

-- Policies.

CREATE TABLE policy_version (
  tenant      TEXT NOT NULL REFERENCES tenant (id),
  version     INTEGER NOT NULL CHECK (version >= 1),
  source      TEXT NOT NULL,
  sha256      TEXT NOT NULL,
  applied_by  TEXT NOT NULL,
  applied_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant, version)
) STRICT;
CREATE TRIGGER policy_version_frozen BEFORE UPDATE ON policy_version
BEGIN SELECT RAISE(ABORT, 'a policy version never changes'); END;

CREATE TABLE policy_active (
  tenant   TEXT PRIMARY KEY,
  version  INTEGER NOT NULL,
  FOREIGN KEY (tenant, version) REFERENCES policy_version (tenant, version)
) STRICT, WITHOUT ROWID;

-- Actions: what moves is narrow and in action; what never changes, and may be
-- a megabyte, is in proposal, so that a transition does not rewrite it.

CREATE TABLE action (
  seq              INTEGER PRIMARY KEY,
  tenant           TEXT NOT NULL REFERENCES tenant (id),
  id               TEXT NOT NULL CHECK (id <> ''),
  status           TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'denied', 'expired', 'canceled',
                     'superseded', 'pushing', 'applied', 'failed', 'unknown', 'reversed')),
  action_type      TEXT NOT NULL,
  risk             INTEGER NOT NULL CHECK (risk BETWEEN 1 AND 5),
  proposer_id      TEXT NOT NULL,
  idempotency_key  TEXT,
  proposed_at      INTEGER NOT NULL,
  expires_at       INTEGER,
  decided_by       TEXT NOT NULL,
  decided_via      TEXT NOT NULL CHECK (decided_via IN ('', 'api', 'api:bulk-decide', 'console', 'cli', 'slack', 'link', 'policy')),
  decided_at       INTEGER,
  finished_at      INTEGER,
  failure_code     TEXT,
  failure_detail   TEXT,
  supersedes       TEXT,
  superseded_by    TEXT,
  reverses         TEXT,
  reversed_by      TEXT,
  UNIQUE (tenant, id),
  UNIQUE (tenant, idempotency_key),
  FOREIGN KEY (tenant, supersedes) REFERENCES action (tenant, id) DEFERRABLE INITIALLY DEFERRED,
  FOREIGN KEY (tenant, superseded_by) REFERENCES action (tenant, id) DEFERRABLE INITIALLY DEFERRED,
  FOREIGN KEY (tenant, reverses) REFERENCES action (tenant, id) DEFERRABLE INITIALLY DEFERRED,
  FOREIGN KEY (tenant, reversed_by) REFERENCES action (tenant, id) DEFERRABLE INITIALLY DEFERRED,
  CHECK (status = 'pending' OR decided_at IS NOT NULL),
  CHECK (status <> 'pending' OR expires_at IS NOT NULL AND decided_at IS NULL),
  CHECK (status NOT IN ('approved', 'pushing') OR finished_at IS NULL),
  CHECK (status <> 'reversed' OR reversed_by IS NOT NULL),
  CHECK ((failure_code IS NULL) = (failure_detail IS NULL))
) STRICT;
CREATE INDEX action_status ON action (tenant, status, id);
CREATE INDEX action_type ON action (tenant, action_type, id);
CREATE INDEX action_proposer ON action (tenant, proposer_id, id);
CREATE INDEX action_reverses ON action (tenant, reverses, id) WHERE reverses IS NOT NULL;
-- The inbox, risk by risk: by age, and, for the small buckets of what is due
-- soon, by expiry. Both hold all that sorting needs. The last serves the sweeper.
CREATE INDEX action_inbox ON action (tenant, risk, id, expires_at) WHERE status = 'pending';
CREATE INDEX action_due ON action (tenant, risk, expires_at, id) WHERE status = 'pending';
CREATE INDEX action_expiry ON action (expires_at) WHERE status = 'pending';
CREATE TRIGGER action_absorbed BEFORE UPDATE OF status ON action
WHEN OLD.status IN ('rejected', 'denied', 'expired', 'canceled', 'superseded', 'reversed')
BEGIN SELECT RAISE(ABORT, 'no transition leads out of this state'); END;
CREATE TRIGGER action_kept BEFORE DELETE ON action
BEGIN SELECT RAISE(ABORT, 'actions are never deleted'); END;

CREATE TABLE proposal (
  seq              INTEGER PRIMARY KEY REFERENCES action (seq),
  tenant           TEXT NOT NULL,
  revision         INTEGER NOT NULL CHECK (revision >= 1),
  connector        TEXT NOT NULL,
  operation        TEXT NOT NULL,
  entity_type      TEXT NOT NULL,
  entity_ref       TEXT NOT NULL,
  entity_refs      TEXT NOT NULL,
  target_version   TEXT NOT NULL,
  claimed_risk     INTEGER NOT NULL CHECK (claimed_risk BETWEEN 0 AND 5),
  amount           TEXT,
  currency         TEXT,
  on_behalf_of     TEXT NOT NULL,
  expires_in       INTEGER NOT NULL CHECK (expires_in >= 0),
  hold             INTEGER NOT NULL CHECK (hold >= 0),
  digest           TEXT NOT NULL,
  fingerprint      TEXT NOT NULL,
  content_hash     BLOB NOT NULL CHECK (length(content_hash) = 32),
  policy_outcome   TEXT NOT NULL CHECK (policy_outcome IN ('', 'allow', 'deny', 'needs_approval')),
  policy_version   INTEGER NOT NULL CHECK (policy_version >= 0),
  policy_rules     TEXT NOT NULL,
  policy_reasons   TEXT NOT NULL,
  proposed_by      TEXT NOT NULL,
  rationale        TEXT NOT NULL,
  search           TEXT NOT NULL,
  proposed_change  TEXT NOT NULL,
  current_state    TEXT NOT NULL,
  context          TEXT NOT NULL,
  metadata         TEXT NOT NULL,
  extra            TEXT NOT NULL
) STRICT;
CREATE TRIGGER proposal_frozen BEFORE UPDATE ON proposal
BEGIN SELECT RAISE(ABORT, 'a proposal never changes'); END;
CREATE TRIGGER proposal_kept BEFORE DELETE ON proposal
BEGIN SELECT RAISE(ABORT, 'proposals are never deleted'); END;

CREATE TABLE approval (
  seq             INTEGER PRIMARY KEY REFERENCES action (seq),
  tenant          TEXT NOT NULL,
  id              TEXT NOT NULL CHECK (id <> ''),
  status          TEXT NOT NULL CHECK (status IN ('requested', 'approved', 'rejected', 'expired', 'canceled')),
  required        INTEGER NOT NULL CHECK (required >= 1),
  roles           TEXT NOT NULL,
  people          TEXT NOT NULL,
  excluded        TEXT NOT NULL,
  expires_at      INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  confirm_prompt  TEXT,
  confirm_value   TEXT,
  UNIQUE (tenant, id),
  CHECK ((confirm_prompt IS NULL) = (confirm_value IS NULL))
) STRICT;
CREATE TRIGGER approval_absorbed BEFORE UPDATE ON approval WHEN OLD.status <> 'requested'
BEGIN SELECT RAISE(ABORT, 'no transition leads out of this state'); END;
CREATE TRIGGER approval_frozen BEFORE UPDATE OF seq, tenant, id, required, roles, people, excluded, expires_at, created_at,
  confirm_prompt, confirm_value ON approval
BEGIN SELECT RAISE(ABORT, 'an approval is frozen when it is created'); END;

CREATE TABLE vote (
  seq           INTEGER NOT NULL REFERENCES approval (seq),
  person        TEXT NOT NULL CHECK (person <> ''),
  tenant        TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  name          TEXT NOT NULL,
  decision      TEXT NOT NULL CHECK (decision IN ('approved', 'rejected')),
  notes         TEXT NOT NULL,
  via           TEXT NOT NULL,
  digest        TEXT NOT NULL,
  at            INTEGER NOT NULL,
  PRIMARY KEY (seq, person)
) STRICT, WITHOUT ROWID;

-- The outbox.

CREATE TABLE push (
  seq              INTEGER PRIMARY KEY,
  tenant           TEXT NOT NULL,
  id               TEXT NOT NULL CHECK (id <> ''),
  action_seq       INTEGER NOT NULL UNIQUE REFERENCES action (seq),
  action_id        TEXT NOT NULL,
  connector        TEXT NOT NULL,
  idempotency_key  TEXT NOT NULL,
  digest           TEXT NOT NULL,
  status           TEXT NOT NULL CHECK (status IN ('queued', 'picking', 'sent', 'applied', 'failed', 'unknown', 'canceled')),
  attempts         INTEGER NOT NULL CHECK (attempts >= 0),
  attempt_base     INTEGER NOT NULL CHECK (attempt_base BETWEEN 0 AND attempts),
  last_error       TEXT NOT NULL,
  error_code       TEXT NOT NULL,
  not_before       INTEGER NOT NULL,
  next_attempt     INTEGER,
  due_at           INTEGER NOT NULL GENERATED ALWAYS AS (max(not_before, coalesce(next_attempt, not_before))) STORED,
  created_at       INTEGER NOT NULL,
  picked_at        INTEGER,
  sent_at          INTEGER,
  applied_at       INTEGER,
  finished_at      INTEGER,
  generation       INTEGER NOT NULL CHECK (generation >= 0),
  lease_owner      TEXT NOT NULL,
  lease_until      INTEGER,
  replays          INTEGER NOT NULL CHECK (replays >= 0),
  UNIQUE (tenant, id),
  CHECK (status NOT IN ('picking', 'sent') OR lease_until IS NOT NULL AND generation >= 1),
  CHECK (status <> 'sent' OR attempts >= 1)
) STRICT;
CREATE INDEX push_status ON push (tenant, status, id);
CREATE INDEX push_due ON push (due_at, seq) WHERE status = 'queued';
CREATE INDEX push_lease ON push (lease_until) WHERE status IN ('picking', 'sent');
CREATE TRIGGER push_absorbed BEFORE UPDATE OF status ON push
WHEN OLD.status IN ('applied', 'canceled') AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'no transition leads out of this state'); END;
CREATE TRIGGER push_fenced BEFORE UPDATE OF generation ON push WHEN NEW.generation < OLD.generation
BEGIN SELECT RAISE(ABORT, 'a generation never falls'); END;

CREATE TABLE receipt (
  seq                INTEGER PRIMARY KEY,
  tenant             TEXT NOT NULL,
  id                 TEXT NOT NULL CHECK (id <> ''),
  action_seq         INTEGER NOT NULL REFERENCES action (seq),
  action_id          TEXT NOT NULL,
  push_id            TEXT NOT NULL,
  idempotency_key    TEXT NOT NULL,
  attempt            INTEGER NOT NULL CHECK (attempt >= 0),
  generation         INTEGER NOT NULL CHECK (generation >= 0),
  outcome            TEXT NOT NULL CHECK (outcome IN ('applied', 'terminal', 'not_sent', 'transient', 'ambiguous')),
  error_code         TEXT NOT NULL,
  error              TEXT NOT NULL,
  external_id        TEXT NOT NULL,
  reversible         INTEGER NOT NULL CHECK (reversible IN (0, 1)),
  late               INTEGER NOT NULL CHECK (late IN (0, 1)),
  source             TEXT NOT NULL,
  at                 INTEGER NOT NULL,
  request_metadata   TEXT NOT NULL,
  response_metadata  TEXT NOT NULL,
  reversal           TEXT NOT NULL,
  UNIQUE (tenant, id),
  FOREIGN KEY (tenant, push_id) REFERENCES push (tenant, id)
) STRICT;
CREATE INDEX receipt_action ON receipt (action_seq, seq);
CREATE INDEX receipt_success ON receipt (tenant, idempotency_key, seq) WHERE outcome = 'applied';
CREATE TRIGGER receipt_frozen BEFORE UPDATE ON receipt
BEGIN SELECT RAISE(ABORT, 'a receipt never changes'); END;
CREATE TRIGGER receipt_kept BEFORE DELETE ON receipt
BEGIN SELECT RAISE(ABORT, 'receipts are never deleted'); END;

-- Amounts are millionths, rounded away from zero.
CREATE TABLE ceiling_claim (
  action_seq   INTEGER NOT NULL REFERENCES action (seq),
  ceiling      TEXT NOT NULL,
  scope        TEXT NOT NULL,
  tenant       TEXT NOT NULL,
  amount       INTEGER NOT NULL CHECK (amount >= 0),
  reserved_at  INTEGER NOT NULL,
  released_at  INTEGER,
  PRIMARY KEY (action_seq, ceiling, scope)
) STRICT, WITHOUT ROWID;
CREATE INDEX ceiling_used ON ceiling_claim (tenant, ceiling, scope, reserved_at, amount) WHERE released_at IS NULL;

-- What decisions and applications teach.

CREATE TABLE corpus (
  tenant       TEXT NOT NULL,
  id           TEXT NOT NULL CHECK (id <> ''),
  action_seq   INTEGER NOT NULL REFERENCES action (seq),
  action_id    TEXT NOT NULL,
  action_type  TEXT NOT NULL,
  outcome      TEXT NOT NULL CHECK (outcome IN ('approved', 'rejected')),
  decided_by   TEXT NOT NULL,
  notes        TEXT NOT NULL,
  at           INTEGER NOT NULL,
  features     TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE mirror (
  seq           INTEGER PRIMARY KEY,
  tenant        TEXT NOT NULL,
  action_seq    INTEGER NOT NULL UNIQUE REFERENCES action (seq),
  action_id     TEXT NOT NULL,
  action_type   TEXT NOT NULL,
  connector     TEXT NOT NULL,
  operation     TEXT NOT NULL,
  target        TEXT NOT NULL,
  digest        TEXT NOT NULL,
  external_id   TEXT NOT NULL,
  receipt_id    TEXT NOT NULL,
  applied_at    INTEGER NOT NULL,
  before_state  TEXT NOT NULL,
  after_state   TEXT NOT NULL
) STRICT;
CREATE INDEX mirror_tenant ON mirror (tenant, seq);

-- The audit log. A leaf has no number until the sequencer gives it one, and
-- never changes after that.

CREATE TABLE audit_leaf (
  seq        INTEGER PRIMARY KEY,
  tenant     TEXT NOT NULL,
  action_id  TEXT NOT NULL,
  number     INTEGER CHECK (number >= 0),
  hash       BLOB CHECK (length(hash) = 32),
  body       TEXT NOT NULL,
  CHECK ((number IS NULL) = (hash IS NULL))
) STRICT;
CREATE UNIQUE INDEX audit_number ON audit_leaf (tenant, number) WHERE number IS NOT NULL;
CREATE INDEX audit_waiting ON audit_leaf (seq) WHERE number IS NULL;
CREATE INDEX audit_action ON audit_leaf (tenant, action_id, number) WHERE number IS NOT NULL AND action_id <> '';
CREATE TRIGGER audit_leaf_frozen BEFORE UPDATE ON audit_leaf WHEN OLD.number IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a numbered leaf never changes'); END;
CREATE TRIGGER audit_leaf_body BEFORE UPDATE OF seq, tenant, action_id, body ON audit_leaf
BEGIN SELECT RAISE(ABORT, 'a leaf is only numbered'); END;
CREATE TRIGGER audit_leaf_kept BEFORE DELETE ON audit_leaf
BEGIN SELECT RAISE(ABORT, 'audit leaves are never deleted'); END;

CREATE TABLE audit_log (
  tenant  TEXT PRIMARY KEY,
  size    INTEGER NOT NULL CHECK (size >= 0),
  hashes  INTEGER NOT NULL CHECK (hashes >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_hash (
  tenant    TEXT NOT NULL,
  position  INTEGER NOT NULL CHECK (position >= 0),
  hash      BLOB NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (tenant, position)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_hash_frozen BEFORE UPDATE ON audit_hash
BEGIN SELECT RAISE(ABORT, 'a tree hash never changes'); END;
CREATE TRIGGER audit_hash_kept BEFORE DELETE ON audit_hash
BEGIN SELECT RAISE(ABORT, 'tree hashes are never deleted'); END;

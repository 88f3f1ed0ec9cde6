-- The tables of a store in one SQLite file. Every store starts with this file.
--
-- Times are microseconds since 1970, UTC. An absent text is '', an absent time or
-- reference is NULL. JSON is TEXT: its bytes are what was hashed. seq numbers a
-- row in this file and is never shown; child rows refer to their action by it.
--
-- The constraints and triggers repeat the rules of the program, so that a fault of
-- the program or a statement typed by hand does not break them.
--
-- Two rules make them cheap. A trigger that says RAISE(ABORT) makes SQLite copy
-- every page that the statement changes; the triggers of rows that are updated often
-- say RAISE(ROLLBACK) and end the transaction. SQLite builds a table for each IN
-- with more than two values every time the statement runs; the checks of such rows
-- compare one value after the other instead.

-- ---------------------------------------------------------------------------
-- The store
-- ---------------------------------------------------------------------------

-- meta has one row: the highest clock reading that was stored, the number of the
-- last batch, which tells whether an unclear commit took place, and the highest
-- audit leaf below which every leaf has its number.
CREATE TABLE meta (
  id        INTEGER PRIMARY KEY CHECK (id = 1),
  clock     INTEGER NOT NULL CHECK (clock >= 0),
  batch     INTEGER NOT NULL CHECK (batch >= 0),
  numbered  INTEGER NOT NULL DEFAULT 0 CHECK (numbered >= 0)
) STRICT;
INSERT INTO meta (id, clock, batch, numbered) VALUES (1, 0, 0, 0);
CREATE TRIGGER meta_forward BEFORE UPDATE ON meta WHEN NEW.clock < OLD.clock OR NEW.batch < OLD.batch
BEGIN SELECT RAISE(ABORT, 'the clock never runs backwards'); END;

CREATE TABLE tenant (
  id          TEXT PRIMARY KEY CHECK (id <> ''),
  created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- The default tenant always exists.
INSERT INTO tenant (id, created_at) VALUES ('default', CAST(unixepoch('subsec') * 1000000 AS INTEGER));

-- ---------------------------------------------------------------------------
-- Identity
-- ---------------------------------------------------------------------------

-- People, agents and services. groups is a JSON list of {"group", "from"}, '' for
-- none. approver_since is when the principal got the right to approve; NULL means
-- since created_at.
CREATE TABLE principal (
  tenant          TEXT NOT NULL REFERENCES tenant (id),
  id              TEXT NOT NULL CHECK (id <> ''),
  name            TEXT NOT NULL COLLATE NOCASE CHECK (name <> ''),
  kind            TEXT NOT NULL CHECK (kind IN ('person', 'agent', 'service')),
  roles           TEXT NOT NULL,
  groups          TEXT NOT NULL DEFAULT '',
  person          TEXT NOT NULL CHECK (person <> ''),
  sponsor         TEXT NOT NULL,
  disabled        INTEGER NOT NULL CHECK (disabled IN (0, 1)),
  approver_since  INTEGER,
  created_at      INTEGER NOT NULL,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, name),
  CHECK (sponsor = '' OR kind = 'agent')
) STRICT, WITHOUT ROWID;
-- Finds the persons who may decide, to answer whether anybody may decide a proposal.
CREATE INDEX principal_approver ON principal (tenant, id)
WHERE kind = 'person' AND NOT disabled AND (instr(roles, '"approver"') > 0 OR instr(roles, '"admin"') > 0);

-- Named sets of people. principal.groups holds the members, because a vote is counted
-- with the principals locked.
CREATE TABLE principal_group (
  tenant      TEXT NOT NULL REFERENCES tenant (id),
  name        TEXT NOT NULL CHECK (name <> ''),
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
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

-- The things that an agent may read besides what it proposed or started itself: the
-- actions and child runs of its runs, and the revisions of its actions. thing is an
-- id.
CREATE TABLE reader (
  tenant        TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  thing         TEXT NOT NULL CHECK (thing <> ''),
  PRIMARY KEY (tenant, principal_id, thing),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX reader_thing ON reader (tenant, thing);

-- The stored answers of requests with an idempotency key.
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

-- The bulk decisions of one person within the last minute: a JSON list of
-- microseconds since 1970, oldest first.
CREATE TABLE bulk_calls (
  tenant  TEXT NOT NULL REFERENCES tenant (id),
  person  TEXT NOT NULL CHECK (person <> ''),
  times   TEXT NOT NULL,
  PRIMARY KEY (tenant, person)
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------
-- Policies and notices
-- ---------------------------------------------------------------------------

-- action_id is the action that approved this version, '' for a version that was
-- applied directly. One action applies one version.
CREATE TABLE policy_version (
  tenant      TEXT NOT NULL REFERENCES tenant (id),
  version     INTEGER NOT NULL CHECK (version >= 1),
  source      TEXT NOT NULL,
  sha256      TEXT NOT NULL,
  applied_by  TEXT NOT NULL,
  applied_at  INTEGER NOT NULL,
  action_id   TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, version)
) STRICT;
CREATE UNIQUE INDEX policy_version_action ON policy_version (tenant, action_id) WHERE action_id <> '';
CREATE TRIGGER policy_version_frozen BEFORE UPDATE ON policy_version
BEGIN SELECT RAISE(ABORT, 'a policy version never changes'); END;

CREATE TABLE policy_active (
  tenant   TEXT PRIMARY KEY,
  version  INTEGER NOT NULL,
  FOREIGN KEY (tenant, version) REFERENCES policy_version (tenant, version)
) STRICT, WITHOUT ROWID;

-- Changes of rights and rules, for administrators to look at.
CREATE TABLE notice (
  tenant        TEXT NOT NULL REFERENCES tenant (id),
  id            TEXT NOT NULL,
  at            INTEGER NOT NULL,
  kind          TEXT NOT NULL CHECK (kind <> ''),
  subject       TEXT NOT NULL,
  subject_name  TEXT NOT NULL,
  actor         TEXT NOT NULL CHECK (actor <> ''),
  actor_name    TEXT NOT NULL,
  via           TEXT NOT NULL,
  from_tenant   TEXT NOT NULL,
  detail        TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Which administrator dismissed which notice.
CREATE TABLE notice_dismissed (
  tenant        TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  notice_id     TEXT NOT NULL,
  at            INTEGER NOT NULL,
  PRIMARY KEY (tenant, principal_id, notice_id),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id),
  FOREIGN KEY (tenant, notice_id) REFERENCES notice (tenant, id)
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------
-- Actions
-- ---------------------------------------------------------------------------

-- action holds what changes and is narrow; proposal holds what never changes and may
-- be a megabyte, so that a transition does not rewrite it.
CREATE TABLE action (
  seq              INTEGER PRIMARY KEY,
  tenant           TEXT NOT NULL REFERENCES tenant (id),
  id               TEXT NOT NULL CHECK (id <> ''),
  status           TEXT NOT NULL CHECK (status = 'pending' OR status = 'approved' OR status = 'pushing'
                     OR status = 'applied'
                     OR status = 'rejected' OR status = 'denied' OR status = 'expired' OR status = 'canceled'
                     OR status = 'superseded' OR status = 'failed' OR status = 'unknown' OR status = 'reversed'),
  action_type      TEXT NOT NULL,
  risk             INTEGER NOT NULL CHECK (risk BETWEEN 1 AND 5),
  proposer_id      TEXT NOT NULL,
  idempotency_key  TEXT,
  proposed_at      INTEGER NOT NULL,
  expires_at       INTEGER,
  decided_by       TEXT NOT NULL,
  decided_via      TEXT NOT NULL CHECK (decided_via = '' OR decided_via = 'api' OR decided_via = 'api:bulk-decide'
                     OR decided_via = 'console' OR decided_via = 'cli' OR decided_via = 'slack'
                       OR decided_via = 'link'
                     OR decided_via = 'policy' OR decided_via = 'client'),
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
CREATE INDEX action_type ON action (tenant, action_type, id);
CREATE INDEX action_proposer ON action (tenant, proposer_id, id);
CREATE INDEX action_reverses ON action (tenant, reverses, id) WHERE reverses IS NOT NULL;
-- The inbox, one risk after the other: by age, and by expiry for the few actions that
-- expire soon. Both indexes hold every column that sorting needs.
CREATE INDEX action_inbox ON action (tenant, risk, id, expires_at) WHERE status = 'pending';
CREATE INDEX action_due ON action (tenant, risk, expires_at, id) WHERE status = 'pending';
-- For the sweeper.
CREATE INDEX action_expiry ON action (expires_at) WHERE status = 'pending';
-- Most pending actions are decided soon; only the indexes of the inbox hold them.
CREATE INDEX action_status ON action (tenant, status, id) WHERE status <> 'pending';
-- Deleting an action must find the rows that refer to it. Rows without a reference are
-- in none of these indexes.
CREATE INDEX action_supersedes ON action (tenant, supersedes) WHERE supersedes IS NOT NULL;
CREATE INDEX action_superseded_by ON action (tenant, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX action_reversed_by ON action (tenant, reversed_by) WHERE reversed_by IS NOT NULL;
CREATE TRIGGER action_absorbed BEFORE UPDATE OF status ON action
WHEN OLD.status = 'rejected' OR OLD.status = 'denied' OR OLD.status = 'expired' OR OLD.status = 'canceled'
  OR OLD.status = 'superseded' OR OLD.status = 'reversed'
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;

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
  policy_outcome   TEXT NOT NULL CHECK (policy_outcome = 'needs_approval' OR policy_outcome = 'allow'
                     OR policy_outcome = 'deny' OR policy_outcome = ''),
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

-- The amounts that open actions hold under the ceilings of the policy, in millionths,
-- rounded away from zero.
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

-- ---------------------------------------------------------------------------
-- Approvals
-- ---------------------------------------------------------------------------

-- groups lists the groups that an approval asks, '' for none.
CREATE TABLE approval (
  seq             INTEGER PRIMARY KEY REFERENCES action (seq),
  tenant          TEXT NOT NULL,
  id              TEXT NOT NULL CHECK (id <> ''),
  status          TEXT NOT NULL CHECK (status = 'requested' OR status = 'approved' OR status = 'rejected'
                    OR status = 'expired' OR status = 'canceled'),
  required        INTEGER NOT NULL CHECK (required >= 1),
  roles           TEXT NOT NULL,
  groups          TEXT NOT NULL DEFAULT '',
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
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
CREATE TRIGGER approval_frozen BEFORE UPDATE OF seq, tenant, id, required, roles, people, excluded, expires_at,
  created_at, confirm_prompt, confirm_value, groups ON approval
BEGIN SELECT RAISE(ROLLBACK, 'an approval is frozen when it is created'); END;

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

-- What decisions teach. The view reads it from the rows that a decision wrote.
CREATE VIEW corpus AS
SELECT a.tenant AS tenant, 'cor_' || substr(o.id, 5) AS id, a.seq AS action_seq, a.id AS action_id,
  a.action_type AS action_type,
  o.status AS outcome, a.decided_by AS decided_by, a.decided_at AS at
FROM approval o JOIN action a ON a.seq = o.seq WHERE o.status IN ('approved', 'rejected');

-- The number of requests for a decision, by UTC day (its first microsecond since
-- 1970), endpoint and result.
CREATE TABLE decision_count (
  tenant    TEXT NOT NULL REFERENCES tenant (id),
  day       INTEGER NOT NULL CHECK (day % 86400000000 = 0),
  endpoint  TEXT NOT NULL CHECK (endpoint IN ('decide', 'bulk-decide', 'approve', 'reject', 'console')),
  result    TEXT NOT NULL CHECK (result IN ('won', 'voted', 'replayed', 'conflict', 'refused')),
  n         INTEGER NOT NULL CHECK (n > 0),
  PRIMARY KEY (tenant, day, endpoint, result)
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------
-- Dispatch
-- ---------------------------------------------------------------------------

-- The outbox. A push whose connector is of type worker waits in that connector's lane,
-- where the dispatcher does not look, until a worker leases it. target_says, closed_*
-- and effect belong to dead letters: what the target answered, who closed the push, and
-- the SHA-256 of connector, operation, target without version, and change. By effect a
-- proposal finds a dead letter with the same change.
CREATE TABLE push (
  seq              INTEGER PRIMARY KEY,
  tenant           TEXT NOT NULL,
  id               TEXT NOT NULL CHECK (id <> ''),
  action_seq       INTEGER NOT NULL UNIQUE REFERENCES action (seq),
  action_id        TEXT NOT NULL,
  connector        TEXT NOT NULL,
  lane             TEXT NOT NULL DEFAULT '',
  idempotency_key  TEXT NOT NULL,
  digest           TEXT NOT NULL,
  status           TEXT NOT NULL CHECK (status = 'queued' OR status = 'picking' OR status = 'sent'
                     OR status = 'applied'
                     OR status = 'failed' OR status = 'unknown' OR status = 'canceled'),
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
  target_says      TEXT NOT NULL DEFAULT '' CHECK (octet_length(target_says) <= 2048),
  closed_at        INTEGER CHECK (closed_at IS NULL OR status = 'failed'),
  closed_by        TEXT NOT NULL DEFAULT '',
  closed_reason    TEXT NOT NULL DEFAULT '' CHECK ((closed_at IS NULL) = (closed_reason = '')),
  effect           BLOB CHECK (effect IS NULL OR length(effect) = 32),
  UNIQUE (tenant, id),
  CHECK (status NOT IN ('picking', 'sent') OR lease_until IS NOT NULL AND generation >= 1),
  CHECK (status <> 'sent' OR attempts >= 1)
) STRICT;
-- Claims go by tenant, so that no tenant waits behind the queue of another. Walking the
-- index from name to name finds the tenants with work.
CREATE INDEX push_due_tenant ON push (tenant, due_at, seq) WHERE status = 'queued' AND lane = '';
CREATE INDEX push_due_lane ON push (tenant, lane, due_at, seq) WHERE status = 'queued' AND lane <> '';
-- A push that is under way is not in the index of its status: its lease counts it, and
-- afterwards its id finds it.
CREATE INDEX push_status ON push (tenant, status, id)
WHERE status <> 'picking' AND status <> 'sent' AND status <> 'applied';
-- The leases of the dispatcher are apart from those of workers, of which there may be
-- any number: what a tenant has in flight is counted in the former.
CREATE INDEX push_lease ON push (lease_until, tenant) WHERE lane = '' AND status IN ('picking', 'sent');
CREATE INDEX push_lease_lane ON push (lease_until, tenant) WHERE lane <> '' AND status IN ('picking', 'sent');
CREATE INDEX push_dead ON push (tenant, id) WHERE (status = 'unknown' OR status = 'failed' AND closed_at IS NULL);
CREATE INDEX push_effect ON push (tenant, effect, id)
WHERE (status = 'unknown' OR status = 'failed' AND closed_at IS NULL);
CREATE TRIGGER push_absorbed BEFORE UPDATE OF status ON push
WHEN (OLD.status IN ('applied', 'canceled') OR OLD.closed_at IS NOT NULL) AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
CREATE TRIGGER push_closed BEFORE UPDATE OF closed_at ON push WHEN OLD.closed_at IS NOT NULL
BEGIN SELECT RAISE(ROLLBACK, 'what is closed stays closed'); END;
CREATE TRIGGER push_fenced BEFORE UPDATE OF generation ON push WHEN NEW.generation < OLD.generation
BEGIN SELECT RAISE(ROLLBACK, 'a generation never falls'); END;

-- A receipt belongs to its action's one push. The foreign key goes by the number of the
-- action, by which receipts are found, and needs no index of its own.
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
  outcome            TEXT NOT NULL CHECK (outcome = 'applied' OR outcome = 'terminal' OR outcome = 'not_sent'
                       OR outcome = 'transient' OR outcome = 'ambiguous'),
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
  FOREIGN KEY (action_seq) REFERENCES push (action_seq)
) STRICT;
CREATE INDEX receipt_action ON receipt (action_seq, seq);
CREATE INDEX receipt_success ON receipt (tenant, idempotency_key, seq) WHERE outcome = 'applied';
CREATE TRIGGER receipt_frozen BEFORE UPDATE ON receipt
BEGIN SELECT RAISE(ABORT, 'a receipt never changes'); END;

-- The state of a target before and after an applied action.
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

-- ---------------------------------------------------------------------------
-- Workflows and runs
-- ---------------------------------------------------------------------------

-- What changes is narrow. Bodies, which may be large, are in tables of their own, so
-- that neither a transition nor a heartbeat touches them. No index that a poll reads
-- holds a step that is parked without an end.
CREATE TABLE workflow (
  seq          INTEGER PRIMARY KEY,
  tenant       TEXT NOT NULL REFERENCES tenant (id),
  id           TEXT NOT NULL CHECK (id <> ''),
  name         TEXT NOT NULL CHECK (name <> ''),
  version      INTEGER NOT NULL CHECK (version >= 1),
  workspace    TEXT NOT NULL,
  description  TEXT NOT NULL,
  digest       TEXT NOT NULL,
  created_by   TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  source       TEXT NOT NULL,
  UNIQUE (tenant, id),
  UNIQUE (tenant, name, version)
) STRICT;
CREATE TRIGGER workflow_frozen BEFORE UPDATE ON workflow
BEGIN SELECT RAISE(ABORT, 'a workflow version never changes'); END;
CREATE TRIGGER workflow_kept BEFORE DELETE ON workflow
BEGIN SELECT RAISE(ABORT, 'workflow versions are never deleted'); END;

CREATE TABLE schedule (
  tenant    TEXT NOT NULL,
  workflow  TEXT NOT NULL,
  version   INTEGER NOT NULL,
  next_at   INTEGER NOT NULL,
  PRIMARY KEY (tenant, workflow),
  FOREIGN KEY (tenant, workflow, version) REFERENCES workflow (tenant, name, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_due ON schedule (next_at);

CREATE TABLE run (
  seq             INTEGER PRIMARY KEY,
  tenant          TEXT NOT NULL,
  id              TEXT NOT NULL CHECK (id <> ''),
  workflow        TEXT NOT NULL CHECK (workflow <> ''),
  version         INTEGER NOT NULL,
  workspace       TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status = 'queued' OR status = 'running' OR status = 'waiting_approval'
                    OR status = 'waiting' OR status = 'failed_retryable' OR status = 'succeeded'
                    OR status = 'failed_terminal' OR status = 'canceled'),
  stop            TEXT NOT NULL CHECK (stop = '' OR stop = 'succeeded' OR stop = 'failed_terminal'
                    OR stop = 'canceled'),
  trigger_type    TEXT NOT NULL CHECK (trigger_type = 'api' OR trigger_type = 'webhook' OR trigger_type = 'schedule'
                    OR trigger_type = 'run' OR trigger_type = 'retry'),
  trigger_ref     TEXT,
  started_by      TEXT NOT NULL,
  starter_id      TEXT NOT NULL,
  parent_run      TEXT NOT NULL,
  parent_step     TEXT NOT NULL,
  retry_of        TEXT NOT NULL,
  writes          INTEGER NOT NULL CHECK (writes >= 0),
  failure_code    TEXT,
  failure_detail  TEXT,
  created_at      INTEGER NOT NULL,
  started_at      INTEGER,
  finished_at     INTEGER,
  deadline        INTEGER,
  evidence        TEXT NOT NULL,
  UNIQUE (tenant, id),
  FOREIGN KEY (tenant, workflow, version) REFERENCES workflow (tenant, name, version),
  CHECK ((status <> 'succeeded' AND status <> 'failed_terminal' AND status <> 'canceled') OR finished_at IS NOT NULL),
  CHECK ((failure_code IS NULL) = (failure_detail IS NULL))
) STRICT;
CREATE UNIQUE INDEX run_ref ON run (tenant, workflow, trigger_ref) WHERE trigger_ref IS NOT NULL;
-- The lists, newest first. Each of these indexes holds every run and serves the one
-- query that repeats its condition: to a planner that knows the table as empty, all
-- indexes that begin with the tenant are alike.
CREATE INDEX run_created ON run (tenant, created_at, seq) WHERE id <> '';
CREATE INDEX run_workflow ON run (tenant, workflow, created_at, seq) WHERE workflow <> '';
CREATE INDEX run_status ON run (tenant, status, created_at, seq) WHERE status <> '';
CREATE INDEX run_outcome ON run (tenant, workflow, status, created_at, seq) WHERE trigger_type <> '';
-- The polls.
CREATE INDEX run_queued ON run (tenant, workflow, created_at, seq) WHERE status = 'queued';
CREATE INDEX run_started ON run (tenant, started_at, workflow) WHERE started_at IS NOT NULL;
CREATE INDEX run_deadline ON run (deadline)
WHERE deadline IS NOT NULL AND stop = ''
  AND status IN ('queued', 'running', 'waiting_approval', 'waiting', 'failed_retryable');
CREATE INDEX run_unbundled ON run (finished_at, seq)
WHERE evidence = '' AND status IN ('succeeded', 'failed_terminal', 'canceled');
CREATE TRIGGER run_absorbed BEFORE UPDATE OF status ON run
WHEN (OLD.status = 'succeeded' OR OLD.status = 'failed_terminal'
  OR OLD.status = 'canceled') AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
CREATE TRIGGER run_frozen BEFORE UPDATE OF seq, tenant, id, workflow, version, workspace, trigger_type,
  trigger_ref, started_by, starter_id, parent_run, parent_step, retry_of, created_at, deadline ON run
BEGIN SELECT RAISE(ROLLBACK, 'a run stays what it began as'); END;
CREATE TRIGGER run_evidence BEFORE UPDATE OF evidence ON run WHEN OLD.evidence <> ''
BEGIN SELECT RAISE(ABORT, 'evidence is stored once'); END;
CREATE TRIGGER run_kept BEFORE DELETE ON run
BEGIN SELECT RAISE(ABORT, 'runs are never deleted'); END;

CREATE TABLE run_body (
  seq     INTEGER PRIMARY KEY REFERENCES run (seq),
  tenant  TEXT NOT NULL,
  input   TEXT NOT NULL,
  output  TEXT NOT NULL
) STRICT;
CREATE TRIGGER run_body_frozen BEFORE UPDATE OF seq, tenant, input ON run_body
BEGIN SELECT RAISE(ABORT, 'a run keeps its input'); END;
CREATE TRIGGER run_body_kept BEFORE DELETE ON run_body
BEGIN SELECT RAISE(ABORT, 'runs are never deleted'); END;

-- The principals who took part in what a run is made from: the senders of its events,
-- the workers that completed its steps or pushes, the editors of its actions, and the
-- same of the runs whose outputs it took over. None of them decides what the run
-- proposes.
CREATE TABLE run_hand (
  tenant     TEXT NOT NULL,
  run_id     TEXT NOT NULL,
  principal  TEXT NOT NULL CHECK (principal <> ''),
  PRIMARY KEY (tenant, run_id, principal),
  FOREIGN KEY (tenant, run_id) REFERENCES run (tenant, id)
) WITHOUT ROWID;
CREATE TRIGGER run_hand_frozen BEFORE UPDATE ON run_hand
BEGIN SELECT RAISE(ABORT, 'a hand on a run stays'); END;
CREATE TRIGGER run_hand_kept BEFORE DELETE ON run_hand
BEGIN SELECT RAISE(ABORT, 'a hand on a run stays'); END;

-- position is the step's index in its workflow. action_at is when the step took up its
-- action.
CREATE TABLE step (
  seq              INTEGER PRIMARY KEY,
  tenant           TEXT NOT NULL,
  id               TEXT NOT NULL CHECK (id <> ''),
  run_seq          INTEGER NOT NULL REFERENCES run (seq),
  run_id           TEXT NOT NULL,
  key              TEXT NOT NULL CHECK (key <> ''),
  position         INTEGER NOT NULL,
  parent           TEXT NOT NULL,
  workflow         TEXT NOT NULL,
  workspace        TEXT NOT NULL,
  uses             TEXT NOT NULL,
  tool             TEXT NOT NULL,
  status           TEXT NOT NULL CHECK (status = 'blocked' OR status = 'ready' OR status = 'running'
                     OR status = 'waiting_approval' OR status = 'waiting' OR status = 'failed_retryable'
                     OR status = 'succeeded' OR status = 'failed_terminal' OR status = 'canceled'),
  attempts         INTEGER NOT NULL CHECK (attempts >= 0),
  generation       INTEGER NOT NULL,
  idempotency_key  TEXT,
  skipped          INTEGER NOT NULL CHECK (skipped IN (0, 1)),
  failure_code     TEXT,
  failure_detail   TEXT,
  action_id        TEXT,
  action_at        INTEGER,
  child_run        TEXT,
  event            TEXT NOT NULL,
  due_at           INTEGER,
  lease_owner      TEXT NOT NULL,
  lease_until      INTEGER,
  created_at       INTEGER NOT NULL,
  ready_at         INTEGER,
  started_at       INTEGER,
  finished_at      INTEGER,
  UNIQUE (tenant, id),
  UNIQUE (run_seq, key),
  CHECK (generation >= attempts),
  CHECK (skipped = 0 OR status = 'succeeded'),
  CHECK (status <> 'ready' OR ready_at IS NOT NULL),
  CHECK (status <> 'running' OR lease_until IS NOT NULL AND generation >= 1),
  CHECK (status <> 'waiting_approval' OR action_id IS NOT NULL),
  CHECK (status <> 'failed_retryable' OR due_at IS NOT NULL),
  CHECK ((action_id IS NULL) = (action_at IS NULL)),
  CHECK ((failure_code IS NULL) = (failure_detail IS NULL))
) STRICT;
-- The key of a step that failed or was canceled is free again.
CREATE UNIQUE INDEX step_key ON step (tenant, idempotency_key)
WHERE idempotency_key IS NOT NULL AND status NOT IN ('failed_terminal', 'canceled');
CREATE INDEX step_ready ON step (tool, tenant, workspace, workflow, ready_at, seq) WHERE status = 'ready';
CREATE INDEX step_running ON step (tenant, workflow) WHERE status = 'running';
CREATE INDEX step_lease ON step (lease_until) WHERE status = 'running' AND lease_until IS NOT NULL;
CREATE INDEX step_due ON step (due_at)
WHERE due_at IS NOT NULL AND status IN ('failed_retryable', 'waiting', 'waiting_approval');
CREATE INDEX step_action ON step (tenant, action_id, action_at, seq) WHERE action_id IS NOT NULL;
CREATE INDEX step_child ON step (tenant, child_run) WHERE child_run IS NOT NULL;
-- A transition of a run reads the steps of its workflow, and of their items only the
-- one that moves and the states of the others.
CREATE INDEX step_top ON step (run_seq, position) WHERE parent = '';
CREATE INDEX step_items ON step (tenant, parent, status) WHERE parent <> '';
CREATE TRIGGER step_absorbed BEFORE UPDATE OF status ON step
WHEN (OLD.status = 'succeeded' OR OLD.status = 'failed_terminal'
  OR OLD.status = 'canceled') AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
CREATE TRIGGER step_fenced BEFORE UPDATE OF generation ON step WHEN NEW.generation < OLD.generation
BEGIN SELECT RAISE(ROLLBACK, 'a generation never falls'); END;
CREATE TRIGGER step_frozen BEFORE UPDATE OF seq, tenant, id, run_seq, run_id, key, position, parent, workflow,
  workspace, uses, tool, created_at ON step
BEGIN SELECT RAISE(ROLLBACK, 'a step stays what it began as'); END;
CREATE TRIGGER step_kept BEFORE DELETE ON step
BEGIN SELECT RAISE(ABORT, 'steps are never deleted'); END;

-- The bodies of a step that has any.
CREATE TABLE step_body (
  seq     INTEGER PRIMARY KEY REFERENCES step (seq),
  tenant  TEXT NOT NULL,
  item    TEXT NOT NULL,
  input   TEXT NOT NULL,
  output  TEXT NOT NULL
) STRICT;
CREATE TRIGGER step_body_frozen BEFORE UPDATE OF seq, tenant, item ON step_body
BEGIN SELECT RAISE(ABORT, 'a step keeps its item'); END;
CREATE TRIGGER step_body_kept BEFORE DELETE ON step_body
BEGIN SELECT RAISE(ABORT, 'steps are never deleted'); END;

-- The parked steps whose action or child run has ended. The transaction that ends it
-- makes the row, or the transaction that parks the step when that is later; the
-- transaction that moves the step on deletes it.
CREATE TABLE step_wake (
  step_seq  INTEGER PRIMARY KEY REFERENCES step (seq),
  tenant    TEXT NOT NULL,
  run_id    TEXT NOT NULL,
  step_id   TEXT NOT NULL
) STRICT;

CREATE TABLE step_attempt (
  seq          INTEGER PRIMARY KEY,
  tenant       TEXT NOT NULL,
  run_id       TEXT NOT NULL,
  step_id      TEXT NOT NULL,
  attempt      INTEGER NOT NULL CHECK (attempt >= 0),
  generation   INTEGER NOT NULL CHECK (generation >= attempt),
  worker       TEXT NOT NULL,
  started_at   INTEGER NOT NULL,
  finished_at  INTEGER NOT NULL,
  outcome      TEXT NOT NULL CHECK (outcome <> ''),
  code         TEXT NOT NULL,
  detail       TEXT NOT NULL,
  UNIQUE (tenant, step_id, generation),
  FOREIGN KEY (tenant, run_id) REFERENCES run (tenant, id),
  FOREIGN KEY (tenant, step_id) REFERENCES step (tenant, id)
) STRICT;
CREATE INDEX step_attempt_run ON step_attempt (tenant, run_id, seq);
CREATE TRIGGER step_attempt_frozen BEFORE UPDATE ON step_attempt
BEGIN SELECT RAISE(ABORT, 'an attempt never changes'); END;
CREATE TRIGGER step_attempt_kept BEFORE DELETE ON step_attempt
BEGIN SELECT RAISE(ABORT, 'attempts are never deleted'); END;

-- The cost is micros, in millionths, and picos, the rest in millionths of those, rounded
-- up: the sums go by these.
CREATE TABLE model_usage (
  seq            INTEGER PRIMARY KEY,
  tenant         TEXT NOT NULL,
  run_id         TEXT NOT NULL,
  workflow       TEXT NOT NULL,
  step_id        TEXT NOT NULL,
  attempt        INTEGER NOT NULL CHECK (attempt >= 0),
  provider       TEXT NOT NULL,
  model          TEXT NOT NULL,
  input_tokens   INTEGER NOT NULL CHECK (input_tokens >= 0),
  output_tokens  INTEGER NOT NULL CHECK (output_tokens >= 0),
  cost           TEXT NOT NULL,
  micros         INTEGER NOT NULL CHECK (micros >= 0),
  picos          INTEGER NOT NULL CHECK (picos BETWEEN 0 AND 999999),
  currency       TEXT NOT NULL,
  at             INTEGER NOT NULL,
  FOREIGN KEY (tenant, run_id) REFERENCES run (tenant, id),
  FOREIGN KEY (tenant, step_id) REFERENCES step (tenant, id)
) STRICT;
CREATE INDEX model_usage_run ON model_usage (tenant, run_id, seq);
CREATE INDEX model_usage_spent ON model_usage (tenant, currency, at, micros, picos);
CREATE INDEX model_usage_workflow ON model_usage (tenant, workflow, currency, at, micros, picos) WHERE workflow <> '';
CREATE TRIGGER model_usage_frozen BEFORE UPDATE ON model_usage
BEGIN SELECT RAISE(ABORT, 'what was used never changes'); END;
CREATE TRIGGER model_usage_kept BEFORE DELETE ON model_usage
BEGIN SELECT RAISE(ABORT, 'what was used is never deleted'); END;

-- The highest possible cost of a model call, from before the call until its cost is
-- stored. A row stays when no answer of its call arrived.
CREATE TABLE budget_claim (
  seq         INTEGER PRIMARY KEY,
  tenant      TEXT NOT NULL,
  workflow    TEXT NOT NULL,
  step_id     TEXT NOT NULL,
  generation  INTEGER NOT NULL,
  currency    TEXT NOT NULL,
  micros      INTEGER NOT NULL CHECK (micros >= 0),
  picos       INTEGER NOT NULL CHECK (picos BETWEEN 0 AND 999999),
  at          INTEGER NOT NULL,
  UNIQUE (tenant, step_id, generation),
  FOREIGN KEY (tenant, step_id) REFERENCES step (tenant, id)
) STRICT;
CREATE INDEX budget_claim_at ON budget_claim (tenant, currency, at, workflow, micros, picos);

CREATE TABLE run_signal (
  seq       INTEGER PRIMARY KEY,
  tenant    TEXT NOT NULL,
  run_id    TEXT NOT NULL,
  id        TEXT NOT NULL CHECK (id <> ''),
  name      TEXT NOT NULL CHECK (name <> ''),
  sent_by   TEXT NOT NULL,
  at        INTEGER NOT NULL,
  taken_at  INTEGER,
  data      TEXT NOT NULL,
  UNIQUE (tenant, id),
  FOREIGN KEY (tenant, run_id) REFERENCES run (tenant, id)
) STRICT;
CREATE INDEX run_signal_run ON run_signal (tenant, run_id, seq);
CREATE INDEX run_signal_open ON run_signal (tenant, run_id, name, seq) WHERE taken_at IS NULL;
CREATE TRIGGER run_signal_taken BEFORE UPDATE ON run_signal WHEN OLD.taken_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a signal is taken once'); END;
CREATE TRIGGER run_signal_frozen BEFORE UPDATE OF seq, tenant, run_id, id, name, sent_by, at, data ON run_signal
BEGIN SELECT RAISE(ABORT, 'a signal stays what was sent'); END;
CREATE TRIGGER run_signal_kept BEFORE DELETE ON run_signal
BEGIN SELECT RAISE(ABORT, 'signals are never deleted'); END;

CREATE TABLE reflexion (
  seq        INTEGER PRIMARY KEY,
  tenant     TEXT NOT NULL,
  id         TEXT NOT NULL CHECK (id <> ''),
  run_id     TEXT NOT NULL,
  workflow   TEXT NOT NULL,
  version    INTEGER NOT NULL,
  outcome    TEXT NOT NULL CHECK (outcome = 'succeeded' OR outcome = 'failed_terminal' OR outcome = 'canceled'),
  attempted  TEXT NOT NULL,
  happened   TEXT NOT NULL,
  otherwise  TEXT NOT NULL,
  at         INTEGER NOT NULL,
  UNIQUE (tenant, id),
  UNIQUE (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES run (tenant, id)
) STRICT;
CREATE INDEX reflexion_tenant ON reflexion (tenant, seq);
CREATE INDEX reflexion_workflow ON reflexion (tenant, workflow, seq);
CREATE TRIGGER reflexion_frozen BEFORE UPDATE ON reflexion
BEGIN SELECT RAISE(ABORT, 'a reflexion never changes'); END;
CREATE TRIGGER reflexion_kept BEFORE DELETE ON reflexion
BEGIN SELECT RAISE(ABORT, 'reflexions are never deleted'); END;

CREATE TABLE bundle (
  seq         INTEGER PRIMARY KEY,
  tenant      TEXT NOT NULL,
  run_id      TEXT NOT NULL,
  sha256      TEXT NOT NULL CHECK (length(sha256) = 64),
  created_at  INTEGER NOT NULL,
  manifest    TEXT NOT NULL,
  archive     BLOB NOT NULL,
  UNIQUE (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES run (tenant, id)
) STRICT;
CREATE TRIGGER bundle_frozen BEFORE UPDATE ON bundle
BEGIN SELECT RAISE(ABORT, 'evidence never changes'); END;
CREATE TRIGGER bundle_kept BEFORE DELETE ON bundle
BEGIN SELECT RAISE(ABORT, 'evidence is never deleted'); END;

-- ---------------------------------------------------------------------------
-- The audit log
-- ---------------------------------------------------------------------------

-- A leaf is written once and never changes. It gets its number in audit_batch.
CREATE TABLE audit_leaf (
  seq        INTEGER PRIMARY KEY,
  tenant     TEXT NOT NULL,
  action_id  TEXT NOT NULL,
  body       TEXT NOT NULL
) STRICT;
CREATE INDEX audit_action ON audit_leaf (tenant, action_id) WHERE action_id <> '';
CREATE TRIGGER audit_leaf_frozen BEFORE UPDATE ON audit_leaf
BEGIN SELECT RAISE(ABORT, 'a leaf never changes'); END;
CREATE TRIGGER audit_leaf_kept BEFORE DELETE ON audit_leaf
BEGIN SELECT RAISE(ABORT, 'audit leaves are never deleted'); END;

CREATE TABLE audit_log (
  tenant  TEXT PRIMARY KEY,
  size    INTEGER NOT NULL CHECK (size >= 0),
  hashes  INTEGER NOT NULL CHECK (hashes >= 0)
) STRICT, WITHOUT ROWID;

-- The entries of one log, from number on. leaves are the rows of their leaves in the
-- order of their numbers, eight bytes each, highest byte first; last is the highest of
-- these rows. hashes are the tree hashes that the entries complete, from position on,
-- 32 bytes each. A leaf of a tenant waits for its number while its row is above every
-- last of the tenant; no leaf up to meta.numbered waits.
CREATE TABLE audit_batch (
  seq       INTEGER PRIMARY KEY,
  tenant    TEXT NOT NULL,
  number    INTEGER NOT NULL CHECK (number >= 0),
  position  INTEGER NOT NULL CHECK (position >= 0),
  last      INTEGER NOT NULL CHECK (last >= 0),
  leaves    BLOB NOT NULL CHECK (length(leaves) % 8 = 0),
  hashes    BLOB NOT NULL CHECK (length(hashes) % 32 = 0)
) STRICT;
CREATE UNIQUE INDEX audit_batch_number ON audit_batch (tenant, number);
CREATE UNIQUE INDEX audit_batch_position ON audit_batch (tenant, position);
CREATE INDEX audit_batch_last ON audit_batch (tenant, last);
CREATE TRIGGER audit_batch_frozen BEFORE UPDATE ON audit_batch
BEGIN SELECT RAISE(ABORT, 'a numbered leaf never changes'); END;
CREATE TRIGGER audit_batch_kept BEFORE DELETE ON audit_batch
BEGIN SELECT RAISE(ABORT, 'numbers and tree hashes are never deleted'); END;

-- No number is given twice.
CREATE TRIGGER audit_batch_behind BEFORE INSERT ON audit_batch
WHEN NEW.number < (SELECT b.number + length(b.leaves) / 8 FROM audit_batch b
    WHERE b.tenant = NEW.tenant ORDER BY b.number DESC LIMIT 1)
  OR NEW.last <= (SELECT max(b.last) FROM audit_batch b WHERE b.tenant = NEW.tenant)
BEGIN SELECT RAISE(ROLLBACK, 'a log only grows'); END;

-- ---------------------------------------------------------------------------
-- The archive
-- ---------------------------------------------------------------------------

-- One row for each archived action, found by any of its ids and its key. document holds
-- everything that the other tables had of it (JSON, compressed as in RFC 1951; sha256 is
-- over the JSON). The rows are stored with an audit leaf of type archive.stored and the
-- subject batch, which names their hashes. They never change and are never deleted.
CREATE TABLE action_archive (
  tenant           TEXT NOT NULL REFERENCES tenant (id),
  id               TEXT NOT NULL CHECK (id <> ''),
  approval_id      TEXT,
  push_id          TEXT,
  idempotency_key  TEXT,
  status           TEXT NOT NULL CHECK (status = 'rejected' OR status = 'denied' OR status = 'expired'
                     OR status = 'canceled'
                     OR status = 'superseded' OR status = 'applied' OR status = 'reversed' OR status = 'failed'),
  action_type      TEXT NOT NULL,
  risk             INTEGER NOT NULL CHECK (risk BETWEEN 1 AND 5),
  proposer_id      TEXT NOT NULL,
  proposed_at      INTEGER NOT NULL,
  ended_at         INTEGER NOT NULL,
  archived_at      INTEGER NOT NULL,
  batch            TEXT NOT NULL CHECK (batch <> ''),
  sha256           BLOB NOT NULL CHECK (length(sha256) = 32),
  document         BLOB NOT NULL,
  PRIMARY KEY (tenant, id),
  UNIQUE (approval_id, tenant),
  UNIQUE (push_id, tenant),
  UNIQUE (idempotency_key, tenant),
  CHECK (archived_at > ended_at)
) STRICT;
CREATE TRIGGER action_archive_frozen BEFORE UPDATE ON action_archive
BEGIN SELECT RAISE(ABORT, 'what is archived never changes'); END;
CREATE TRIGGER action_archive_kept BEFORE DELETE ON action_archive
BEGIN SELECT RAISE(ABORT, 'what is archived is never deleted'); END;

-- An action and its parts are deleted only when the archive holds the copy. Parts are
-- deleted before their action, because they find the copy through it.
CREATE TRIGGER action_kept BEFORE DELETE ON action
WHEN NOT EXISTS (SELECT 1 FROM action_archive r WHERE r.tenant = OLD.tenant AND r.id = OLD.id)
BEGIN SELECT RAISE(ABORT, 'actions are never deleted'); END;
CREATE TRIGGER proposal_kept BEFORE DELETE ON proposal
WHEN NOT EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id
  WHERE a.seq = OLD.seq)
BEGIN SELECT RAISE(ABORT, 'proposals are never deleted'); END;
CREATE TRIGGER approval_kept BEFORE DELETE ON approval
WHEN NOT EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id
  WHERE a.seq = OLD.seq)
BEGIN SELECT RAISE(ABORT, 'approvals are never deleted'); END;
CREATE TRIGGER push_kept BEFORE DELETE ON push
WHEN NOT EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id
  WHERE a.seq = OLD.action_seq)
BEGIN SELECT RAISE(ABORT, 'pushes are never deleted'); END;
CREATE TRIGGER receipt_kept BEFORE DELETE ON receipt
WHEN NOT EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id
  WHERE a.seq = OLD.action_seq)
BEGIN SELECT RAISE(ABORT, 'receipts are never deleted'); END;
CREATE TRIGGER mirror_kept BEFORE DELETE ON mirror
WHEN NOT EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id
  WHERE a.seq = OLD.action_seq)
BEGIN SELECT RAISE(ABORT, 'mirrors are never deleted'); END;

-- ---------------------------------------------------------------------------
-- The console
-- ---------------------------------------------------------------------------

-- Sessions, and the credentials that open them. A secret is stored as its SHA-256 only.
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
CREATE TRIGGER session_frozen BEFORE UPDATE OF hash, tenant, id, principal_id, method, credential,
  created_at ON session
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
CREATE INDEX step_up_action ON step_up (tenant, action_id);
CREATE TRIGGER step_up_used BEFORE UPDATE ON step_up WHEN OLD.used_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a step-up works once'); END;
CREATE TRIGGER step_up_frozen BEFORE UPDATE OF tenant, id, session_id, action_id, digest, method, at ON step_up
BEGIN SELECT RAISE(ABORT, 'a step-up stays what it was given for'); END;

-- The lists that a person saved under a name.
CREATE TABLE saved_view (
  tenant        TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  name          TEXT NOT NULL CHECK (name <> ''),
  query         TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (tenant, principal_id, name),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
) STRICT, WITHOUT ROWID;

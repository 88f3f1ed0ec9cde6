-- Workflows and their runs. What moves is narrow; bodies, which may be large,
-- are in tables of their own, so that neither a transition nor a heartbeat
-- touches them. No index of a poll holds what is parked without an end. Lists of
-- constants are written as conditions: see 0007_checks.

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
  status          TEXT NOT NULL CHECK (status = 'queued' OR status = 'running' OR status = 'waiting_approval' OR status = 'waiting' OR
                    status = 'failed_retryable' OR status = 'succeeded' OR status = 'failed_terminal' OR status = 'canceled'),
  stop            TEXT NOT NULL CHECK (stop = '' OR stop = 'succeeded' OR stop = 'failed_terminal' OR stop = 'canceled'),
  trigger_type    TEXT NOT NULL CHECK (trigger_type = 'api' OR trigger_type = 'webhook' OR trigger_type = 'schedule' OR
                    trigger_type = 'run' OR trigger_type = 'retry'),
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
-- The lists, newest first; the first two never change. Each holds all runs, and
-- is for the one question that repeats its condition: to a planner that knows
-- the table as empty, all that begin with the tenant are alike.
CREATE INDEX run_created ON run (tenant, created_at, seq) WHERE id <> '';
CREATE INDEX run_workflow ON run (tenant, workflow, created_at, seq) WHERE workflow <> '';
CREATE INDEX run_status ON run (tenant, status, created_at, seq) WHERE status <> '';
CREATE INDEX run_outcome ON run (tenant, workflow, status, created_at, seq) WHERE trigger_type <> '';
-- The polls.
CREATE INDEX run_queued ON run (tenant, workflow, created_at, seq) WHERE status = 'queued';
CREATE INDEX run_started ON run (tenant, started_at, workflow) WHERE started_at IS NOT NULL;
CREATE INDEX run_deadline ON run (deadline)
WHERE deadline IS NOT NULL AND stop = '' AND status IN ('queued', 'running', 'waiting_approval', 'waiting', 'failed_retryable');
CREATE INDEX run_unbundled ON run (finished_at, seq) WHERE evidence = '' AND status IN ('succeeded', 'failed_terminal', 'canceled');
CREATE TRIGGER run_absorbed BEFORE UPDATE OF status ON run
WHEN (OLD.status = 'succeeded' OR OLD.status = 'failed_terminal' OR OLD.status = 'canceled') AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
CREATE TRIGGER run_frozen BEFORE UPDATE OF seq, tenant, id, workflow, version, workspace, trigger_type, trigger_ref, started_by,
  starter_id, parent_run, parent_step, retry_of, created_at, deadline ON run
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

-- position is the step's index. action_at is when the step took up its action.
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
  status           TEXT NOT NULL CHECK (status = 'blocked' OR status = 'ready' OR status = 'running' OR status = 'waiting_approval' OR
                    status = 'waiting' OR status = 'failed_retryable' OR status = 'succeeded' OR status = 'failed_terminal' OR
                    status = 'canceled'),
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
-- The key of what has failed, or was canceled, is free again.
CREATE UNIQUE INDEX step_key ON step (tenant, idempotency_key)
WHERE idempotency_key IS NOT NULL AND status NOT IN ('failed_terminal', 'canceled');
CREATE INDEX step_ready ON step (tool, tenant, workspace, workflow, ready_at, seq) WHERE status = 'ready';
CREATE INDEX step_running ON step (tenant, workflow) WHERE status = 'running';
CREATE INDEX step_lease ON step (lease_until) WHERE status = 'running' AND lease_until IS NOT NULL;
CREATE INDEX step_due ON step (due_at)
WHERE due_at IS NOT NULL AND status IN ('failed_retryable', 'waiting', 'waiting_approval');
CREATE INDEX step_action ON step (tenant, action_id, action_at, seq) WHERE action_id IS NOT NULL;
CREATE INDEX step_child ON step (tenant, child_run) WHERE child_run IS NOT NULL;
CREATE TRIGGER step_absorbed BEFORE UPDATE OF status ON step
WHEN (OLD.status = 'succeeded' OR OLD.status = 'failed_terminal' OR OLD.status = 'canceled') AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
CREATE TRIGGER step_fenced BEFORE UPDATE OF generation ON step WHEN NEW.generation < OLD.generation
BEGIN SELECT RAISE(ROLLBACK, 'a generation never falls'); END;
CREATE TRIGGER step_frozen BEFORE UPDATE OF seq, tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses, tool,
  created_at ON step
BEGIN SELECT RAISE(ROLLBACK, 'a step stays what it began as'); END;
CREATE TRIGGER step_kept BEFORE DELETE ON step
BEGIN SELECT RAISE(ABORT, 'steps are never deleted'); END;

-- Of a step that has any of them.
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

-- The parked steps whose action or child run has ended: a row is made in the
-- transaction that ends it, or that parks the step when that is later, and goes
-- in the one that moves the step on.
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

-- micros and picos are the cost in millionths, and what is left of it in
-- millionths of those, rounded up: by them it is summed.
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

-- The archive of what has ended: one row for each action, found by any of its
-- ids and its key, with all that the other tables had of it in one document
-- (JSON, compressed as RFC 1951 says; sha256 is over the JSON). Rows come with
-- an audit leaf of type archive.stored and the subject batch, which names their
-- hashes; they never change and never go.
CREATE TABLE action_archive (
  tenant           TEXT NOT NULL REFERENCES tenant (id),
  id               TEXT NOT NULL CHECK (id <> ''),
  approval_id      TEXT,
  push_id          TEXT,
  idempotency_key  TEXT,
  status           TEXT NOT NULL CHECK (status = 'rejected' OR status = 'denied' OR status = 'expired' OR status = 'canceled'
                     OR status = 'superseded' OR status = 'applied' OR status = 'reversed'),
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

-- What is kept gives way to its own copy in the archive, and to nothing else.
-- Children go before their action, by which they are found there.
DROP TRIGGER action_kept;
CREATE TRIGGER action_kept BEFORE DELETE ON action
WHEN NOT EXISTS (SELECT 1 FROM action_archive r WHERE r.tenant = OLD.tenant AND r.id = OLD.id)
BEGIN SELECT RAISE(ABORT, 'actions are never deleted'); END;
DROP TRIGGER proposal_kept;
CREATE TRIGGER proposal_kept BEFORE DELETE ON proposal
WHEN NOT EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id WHERE a.seq = OLD.seq)
BEGIN SELECT RAISE(ABORT, 'proposals are never deleted'); END;
DROP TRIGGER receipt_kept;
CREATE TRIGGER receipt_kept BEFORE DELETE ON receipt
WHEN NOT EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id WHERE a.seq = OLD.action_seq)
BEGIN SELECT RAISE(ABORT, 'receipts are never deleted'); END;
CREATE TRIGGER approval_kept BEFORE DELETE ON approval
WHEN NOT EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id WHERE a.seq = OLD.seq)
BEGIN SELECT RAISE(ABORT, 'approvals are never deleted'); END;
CREATE TRIGGER push_kept BEFORE DELETE ON push
WHEN NOT EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id WHERE a.seq = OLD.action_seq)
BEGIN SELECT RAISE(ABORT, 'pushes are never deleted'); END;
CREATE TRIGGER mirror_kept BEFORE DELETE ON mirror
WHEN NOT EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id WHERE a.seq = OLD.action_seq)
BEGIN SELECT RAISE(ABORT, 'mirrors are never deleted'); END;

-- Whoever deletes an action has to know that nothing refers to it. The rows
-- that do are few; those without a reference are in none of these.
CREATE INDEX action_supersedes ON action (tenant, supersedes) WHERE supersedes IS NOT NULL;
CREATE INDEX action_superseded_by ON action (tenant, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX action_reversed_by ON action (tenant, reversed_by) WHERE reversed_by IS NOT NULL;
CREATE INDEX step_up_action ON step_up (tenant, action_id);

-- A receipt belongs to its action's one push: said by the number of the action,
-- by which receipts are found, it needs no index of its own. SQLite has no
-- statement that changes a key; what follows is its documented way.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'FOREIGN KEY (tenant, push_id) REFERENCES push (tenant, id)',
  'FOREIGN KEY (action_seq) REFERENCES push (action_seq)')
WHERE type = 'table' AND name = 'receipt';
PRAGMA writable_schema = RESET;

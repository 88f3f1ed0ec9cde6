-- The archive of what has ended: one row for each action, found by any of its
-- ids and its key, with all that the other tables had of it in one document
-- (JSON, compressed as RFC 1951 says; sha256 is over the JSON). Rows come with
-- an audit leaf of type archive.stored and the subject batch, which names their
-- hashes; they never change and never go.
CREATE TABLE action_archive (
  tenant           TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  id               TEXT COLLATE "C" NOT NULL CHECK (id <> ''),
  approval_id      TEXT COLLATE "C",
  push_id          TEXT COLLATE "C",
  idempotency_key  TEXT COLLATE "C",
  status           TEXT COLLATE "C" NOT NULL CHECK (status IN ('rejected', 'denied', 'expired', 'canceled', 'superseded', 'applied', 'reversed')),
  action_type      TEXT COLLATE "C" NOT NULL,
  risk             INTEGER NOT NULL CHECK (risk BETWEEN 1 AND 5),
  proposer_id      TEXT COLLATE "C" NOT NULL,
  proposed_at      BIGINT NOT NULL,
  ended_at         BIGINT NOT NULL,
  archived_at      BIGINT NOT NULL,
  batch            TEXT COLLATE "C" NOT NULL CHECK (batch <> ''),
  sha256           BYTEA NOT NULL CHECK (octet_length(sha256) = 32),
  document         BYTEA NOT NULL,
  PRIMARY KEY (tenant, id),
  UNIQUE (approval_id, tenant),
  UNIQUE (push_id, tenant),
  UNIQUE (idempotency_key, tenant),
  CHECK (archived_at > ended_at)
);
-- The documents are compressed already.
ALTER TABLE action_archive ALTER COLUMN document SET STORAGE EXTERNAL;
CREATE TRIGGER action_archive_frozen BEFORE UPDATE ON action_archive
FOR EACH ROW
EXECUTE FUNCTION gatehouse_forbid('what is archived never changes');
CREATE TRIGGER action_archive_kept BEFORE DELETE OR TRUNCATE ON action_archive
FOR EACH STATEMENT
EXECUTE FUNCTION gatehouse_forbid('what is archived is never deleted');
CREATE POLICY wall ON action_archive
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE action_archive ENABLE ROW LEVEL SECURITY;
ALTER TABLE action_archive FORCE ROW LEVEL SECURITY;

-- What is kept gives way to its own copy in the archive, and to nothing else.
-- Children go before their action, by which they are found there.
CREATE FUNCTION gatehouse_keep_action() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM action_archive r WHERE r.tenant = OLD.tenant AND r.id = OLD.id) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'GH001', MESSAGE = TG_ARGV[0];
END $$;
-- Of a table whose rows have their action's number in seq.
CREATE FUNCTION gatehouse_keep_part() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id WHERE a.seq = OLD.seq) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'GH001', MESSAGE = TG_ARGV[0];
END $$;
-- Of a table whose rows have it in action_seq.
CREATE FUNCTION gatehouse_keep_child() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM action a JOIN action_archive r ON r.tenant = a.tenant AND r.id = a.id WHERE a.seq = OLD.action_seq) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'GH001', MESSAGE = TG_ARGV[0];
END $$;

DROP TRIGGER action_kept ON action;
DROP TRIGGER proposal_kept ON proposal;
DROP TRIGGER receipt_kept ON receipt;
DO $$
DECLARE
  k RECORD;
BEGIN
  FOR k IN SELECT * FROM (VALUES
    ('action', 'action', 'actions are never deleted'), ('proposal', 'part', 'proposals are never deleted'),
    ('approval', 'part', 'approvals are never deleted'), ('push', 'child', 'pushes are never deleted'),
    ('receipt', 'child', 'receipts are never deleted'), ('mirror', 'child', 'mirrors are never deleted')) AS v (name, kind, words)
  LOOP
    EXECUTE format('CREATE TRIGGER %1$I BEFORE DELETE ON %2$I FOR EACH ROW EXECUTE FUNCTION %3$I(%4$L)',
      k.name || '_kept', k.name, 'gatehouse_keep_' || k.kind, k.words);
    EXECUTE format('CREATE TRIGGER %1$I BEFORE TRUNCATE ON %2$I FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_forbid(%3$L)',
      k.name || '_whole', k.name, k.words);
  END LOOP;
END $$;

-- Whoever deletes an action has to know that nothing refers to it. The rows
-- that do are few; those without a reference are in none of these.
CREATE INDEX action_supersedes ON action (tenant, supersedes) WHERE supersedes IS NOT NULL;
CREATE INDEX action_superseded_by ON action (tenant, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX action_reversed_by ON action (tenant, reversed_by) WHERE reversed_by IS NOT NULL;
CREATE INDEX step_up_action ON step_up (tenant, action_id);

-- A receipt belongs to its action's one push: said by the number of the action,
-- by which receipts are found, it needs no index of its own.
ALTER TABLE receipt DROP CONSTRAINT receipt_tenant_push_id_fkey;
ALTER TABLE receipt ADD CONSTRAINT receipt_push_fkey FOREIGN KEY (action_seq) REFERENCES push (action_seq);

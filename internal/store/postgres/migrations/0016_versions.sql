-- A step that is closed without having been leased writes its row once, and no
-- entry of any index: none has a column whose value that changes, so the server
-- puts the new version beside the old one, in room that pages leave for it. The
-- indexes of a status go by columns that are NULL in others; a lease's end and the
-- time at which something is due are so of themselves. The steps of a run lie side
-- by side and may be closed all at once, so a page has room for as many versions,
-- longer by their keys, as it has rows.
ALTER TABLE step SET (fillfactor = 42);
DROP INDEX step_key;
DROP INDEX step_ready;
DROP INDEX step_running;
DROP INDEX step_lease;
DROP INDEX step_due;
DROP INDEX step_items;
ALTER TABLE step
  ADD COLUMN queued_at BIGINT GENERATED ALWAYS AS (CASE WHEN status = 'ready' THEN ready_at END) STORED,
  ADD COLUMN item_status TEXT COLLATE "C" GENERATED ALWAYS AS (CASE WHEN parent <> '' THEN status END) STORED,
  -- The key of what has failed, or was canceled, is free again. One that is made
  -- of run and step is found by these.
  ADD COLUMN own_key TEXT COLLATE "C" GENERATED ALWAYS AS (
    CASE WHEN status <> 'failed_terminal' AND status <> 'canceled' AND (parent <> '' OR idempotency_key <> run_id || ':' || key)
      THEN idempotency_key END) STORED;
CREATE UNIQUE INDEX step_key ON step (tenant, own_key) WHERE own_key IS NOT NULL;
CREATE INDEX step_ready ON step (tool, tenant, workspace, workflow, queued_at, seq) WHERE queued_at IS NOT NULL;
CREATE INDEX step_running ON step (tenant, workflow) WHERE lease_until IS NOT NULL;
CREATE INDEX step_lease ON step (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX step_due ON step (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX step_items ON step (tenant, parent COLLATE "C", item_status) WHERE parent <> '';

-- A workflow's own key can be like one that is made of run and step. Who writes
-- such a key waits for those who are at that run, and looks for its step; who
-- writes the other looks for this one, under the run's lock.
CREATE FUNCTION gatehouse_step_key() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  r BIGINT;
BEGIN
  IF NEW.parent = '' AND NEW.idempotency_key = NEW.run_id || ':' || NEW.key THEN
    IF EXISTS (SELECT 1 FROM step k WHERE k.tenant = NEW.tenant AND k.own_key = NEW.idempotency_key AND k.own_key IS NOT NULL) THEN
      PERFORM gatehouse_refuse('GH001');
    END IF;
    RETURN NEW;
  END IF;
  SELECT seq INTO r FROM run WHERE tenant = NEW.tenant AND id = split_part(NEW.idempotency_key, ':', 1) FOR SHARE;
  IF FOUND AND EXISTS (SELECT 1 FROM step k WHERE k.run_seq = r AND k.parent = ''
      AND k.key = substr(NEW.idempotency_key, strpos(NEW.idempotency_key, ':') + 1)
      AND k.idempotency_key = NEW.idempotency_key AND k.status <> 'failed_terminal' AND k.status <> 'canceled') THEN
    PERFORM gatehouse_refuse('GH001');
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER step_key_new BEFORE INSERT ON step
FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL)
EXECUTE FUNCTION gatehouse_step_key();
CREATE TRIGGER step_key_own BEFORE UPDATE OF idempotency_key ON step
FOR EACH ROW WHEN (NEW.idempotency_key IS DISTINCT FROM OLD.idempotency_key AND strpos(NEW.idempotency_key, ':') > 0
  AND NOT starts_with(NEW.idempotency_key || ':', NEW.run_id || ':' || NEW.key || ':'))
EXECUTE FUNCTION gatehouse_step_key();

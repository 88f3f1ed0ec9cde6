-- The server reads the text of a table's CHECKs anew for each statement that
-- writes to it, constants byte by byte, and so the WHENs of its triggers: a third
-- of what writing a decision cost. The rules of the tables that every decision
-- and push writes to stand in functions now, one for a table, whose code a
-- session keeps. They are the rules of before, so what is stored holds them, and
-- is not read again (NOT VALID).
CREATE FUNCTION gatehouse_action_holds(id TEXT, status TEXT, risk INTEGER, decided_via TEXT, decided_at BIGINT, expires_at BIGINT,
  finished_at BIGINT, reversed_by TEXT, failure_code TEXT, failure_detail TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN id <> '' AND risk BETWEEN 1 AND 5
    AND status IN ('pending', 'approved', 'rejected', 'denied', 'expired', 'canceled', 'superseded', 'pushing', 'applied', 'failed',
      'unknown', 'reversed')
    AND decided_via IN ('', 'api', 'api:bulk-decide', 'console', 'cli', 'slack', 'link', 'policy')
    AND (status = 'pending' OR decided_at IS NOT NULL)
    AND (status <> 'pending' OR expires_at IS NOT NULL AND decided_at IS NULL)
    AND (status NOT IN ('approved', 'pushing') OR finished_at IS NULL)
    AND (status <> 'reversed' OR reversed_by IS NOT NULL)
    AND (failure_code IS NULL) = (failure_detail IS NULL);
END $$;

CREATE FUNCTION gatehouse_proposal_holds(revision INTEGER, claimed_risk INTEGER, expires_in BIGINT, hold BIGINT, content_hash BYTEA,
  policy_outcome TEXT, policy_version INTEGER) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN revision >= 1 AND claimed_risk BETWEEN 0 AND 5 AND expires_in >= 0 AND hold >= 0 AND octet_length(content_hash) = 32
    AND policy_outcome IN ('', 'allow', 'deny', 'needs_approval') AND policy_version >= 0;
END $$;

CREATE FUNCTION gatehouse_approval_holds(id TEXT, status TEXT, required INTEGER, confirm_prompt TEXT, confirm_value TEXT)
RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN id <> '' AND status IN ('requested', 'approved', 'rejected', 'expired', 'canceled') AND required >= 1
    AND (confirm_prompt IS NULL) = (confirm_value IS NULL);
END $$;

CREATE FUNCTION gatehouse_vote_holds(person TEXT, decision TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN person <> '' AND decision IN ('approved', 'rejected');
END $$;

CREATE FUNCTION gatehouse_push_holds(id TEXT, status TEXT, attempts INTEGER, attempt_base INTEGER, generation INTEGER, lease_until BIGINT,
  replays INTEGER) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN id <> '' AND status IN ('queued', 'picking', 'sent', 'applied', 'failed', 'unknown', 'canceled')
    AND attempts >= 0 AND attempt_base BETWEEN 0 AND attempts AND generation >= 0 AND replays >= 0
    AND (status NOT IN ('picking', 'sent') OR lease_until IS NOT NULL AND generation >= 1)
    AND (status <> 'sent' OR attempts >= 1);
END $$;

CREATE FUNCTION gatehouse_receipt_holds(id TEXT, attempt INTEGER, generation INTEGER, outcome TEXT)
RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN id <> '' AND attempt >= 0 AND generation >= 0 AND outcome IN ('applied', 'terminal', 'not_sent', 'transient', 'ambiguous');
END $$;

CREATE FUNCTION gatehouse_leaf_holds(number BIGINT, hash BYTEA) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN (number IS NULL) = (hash IS NULL) AND (number IS NULL OR number >= 0 AND octet_length(hash) = 32);
END $$;

-- What no transition leads out of.
CREATE FUNCTION gatehouse_absorbs(status TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN status IN ('rejected', 'denied', 'expired', 'canceled', 'superseded', 'reversed');
END $$;

CREATE FUNCTION gatehouse_push_absorbs(status TEXT, next TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN status IN ('applied', 'canceled') AND next <> status;
END $$;

DO $$
DECLARE
  c RECORD;
BEGIN
  FOR c IN
    SELECT t.relname AS name, k.conname AS rule
    FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid
    WHERE k.contype = 'c' AND t.relnamespace = current_schema()::regnamespace
      AND t.relname IN ('action', 'proposal', 'approval', 'vote', 'push', 'receipt', 'audit_leaf')
  LOOP
    EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', c.name, c.rule);
  END LOOP;
END $$;

ALTER TABLE action ADD CONSTRAINT action_holds CHECK (gatehouse_action_holds(id, status, risk, decided_via, decided_at, expires_at,
  finished_at, reversed_by, failure_code, failure_detail)) NOT VALID;
ALTER TABLE proposal ADD CONSTRAINT proposal_holds CHECK (gatehouse_proposal_holds(revision, claimed_risk, expires_in, hold,
  content_hash, policy_outcome, policy_version)) NOT VALID;
ALTER TABLE approval ADD CONSTRAINT approval_holds CHECK (gatehouse_approval_holds(id, status, required, confirm_prompt, confirm_value)) NOT VALID;
ALTER TABLE vote ADD CONSTRAINT vote_holds CHECK (gatehouse_vote_holds(person, decision)) NOT VALID;
ALTER TABLE push ADD CONSTRAINT push_holds CHECK (gatehouse_push_holds(id, status, attempts, attempt_base, generation, lease_until,
  replays)) NOT VALID;
ALTER TABLE receipt ADD CONSTRAINT receipt_holds CHECK (gatehouse_receipt_holds(id, attempt, generation, outcome)) NOT VALID;
ALTER TABLE audit_leaf ADD CONSTRAINT audit_leaf_holds CHECK (gatehouse_leaf_holds(number, hash)) NOT VALID;

DROP TRIGGER action_absorbed ON action;
CREATE TRIGGER action_absorbed BEFORE UPDATE OF status ON action
FOR EACH ROW WHEN (gatehouse_absorbs(OLD.status))
EXECUTE FUNCTION gatehouse_forbid('no transition leads out of this state');
DROP TRIGGER push_absorbed ON push;
CREATE TRIGGER push_absorbed BEFORE UPDATE OF status ON push
FOR EACH ROW WHEN (gatehouse_push_absorbs(OLD.status, NEW.status))
EXECUTE FUNCTION gatehouse_forbid('no transition leads out of this state');

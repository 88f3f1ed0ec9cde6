-- What a dead letter tells, and who closed it. effect is the SHA-256 of
-- connector, operation, target without version, and change: by it a proposal
-- finds a dead letter with the same change.
ALTER TABLE push ADD COLUMN target_says TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE push ADD COLUMN closed_at BIGINT;
ALTER TABLE push ADD COLUMN closed_by TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE push ADD COLUMN closed_reason TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE push ADD COLUMN effect BYTEA;
CREATE INDEX push_dead ON push (tenant, id) WHERE (status = 'unknown' OR status = 'failed' AND closed_at IS NULL);
CREATE INDEX push_effect ON push (tenant, effect, id) WHERE (status = 'unknown' OR status = 'failed' AND closed_at IS NULL);

CREATE FUNCTION gatehouse_dead_letter_holds(status TEXT, target_says TEXT, closed_at BIGINT, closed_reason TEXT, effect BYTEA)
RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN octet_length(target_says) <= 2048 AND (closed_at IS NULL OR status = 'failed')
    AND (closed_at IS NULL) = (closed_reason = '') AND (effect IS NULL OR octet_length(effect) = 32);
END $$;
ALTER TABLE push ADD CONSTRAINT push_dead_letter_holds
CHECK (gatehouse_dead_letter_holds(status, target_says, closed_at, closed_reason, effect)) NOT VALID;

CREATE FUNCTION gatehouse_push_stays(status TEXT, next TEXT, closed_at BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN (status IN ('applied', 'canceled') OR closed_at IS NOT NULL) AND next <> status;
END $$;
DROP TRIGGER push_absorbed ON push;
CREATE TRIGGER push_absorbed BEFORE UPDATE OF status ON push
FOR EACH ROW WHEN (gatehouse_push_stays(OLD.status, NEW.status, OLD.closed_at))
EXECUTE FUNCTION gatehouse_forbid('no transition leads out of this state');
DROP FUNCTION gatehouse_push_absorbs(TEXT, TEXT);
CREATE TRIGGER push_closed BEFORE UPDATE OF closed_at ON push
FOR EACH ROW WHEN (OLD.closed_at IS NOT NULL)
EXECUTE FUNCTION gatehouse_forbid('what is closed stays closed');

-- A failed action whose push was closed is archived like other ends.
ALTER TABLE action_archive DROP CONSTRAINT action_archive_status_check;
ALTER TABLE action_archive ADD CONSTRAINT action_archive_status_check
CHECK (status IN ('rejected', 'denied', 'expired', 'canceled', 'superseded', 'applied', 'reversed', 'failed')) NOT VALID;

-- What a dead letter tells, and who closed it. effect is the SHA-256 of
-- connector, operation, target without version, and change: by it a proposal
-- finds a dead letter with the same change.
ALTER TABLE push ADD COLUMN target_says TEXT NOT NULL DEFAULT '' CHECK (octet_length(target_says) <= 2048);
ALTER TABLE push ADD COLUMN closed_at INTEGER CHECK (closed_at IS NULL OR status = 'failed');
ALTER TABLE push ADD COLUMN closed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE push ADD COLUMN closed_reason TEXT NOT NULL DEFAULT '' CHECK ((closed_at IS NULL) = (closed_reason = ''));
ALTER TABLE push ADD COLUMN effect BLOB CHECK (effect IS NULL OR length(effect) = 32);
CREATE INDEX push_dead ON push (tenant, id) WHERE (status = 'unknown' OR status = 'failed' AND closed_at IS NULL);
CREATE INDEX push_effect ON push (tenant, effect, id) WHERE (status = 'unknown' OR status = 'failed' AND closed_at IS NULL);

DROP TRIGGER push_absorbed;
CREATE TRIGGER push_absorbed BEFORE UPDATE OF status ON push
WHEN (OLD.status IN ('applied', 'canceled') OR OLD.closed_at IS NOT NULL) AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
CREATE TRIGGER push_closed BEFORE UPDATE OF closed_at ON push WHEN OLD.closed_at IS NOT NULL
BEGIN SELECT RAISE(ROLLBACK, 'what is closed stays closed'); END;

-- A failed action whose push was closed is archived like other ends. SQLite has
-- no statement that changes a check; this is its documented way.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'OR status = ''superseded'' OR status = ''applied'' OR status = ''reversed'')',
  'OR status = ''superseded'' OR status = ''applied'' OR status = ''reversed'' OR status = ''failed'')')
WHERE type = 'table' AND name = 'action_archive';
PRAGMA writable_schema = RESET;

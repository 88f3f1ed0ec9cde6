-- How a question goes through its time.

-- timing is the frozen JSON of stages, reminders and the rule for the end, '' for none.
-- told counts the moments that the log tells of; next_at is the moment after them.
ALTER TABLE approval ADD COLUMN timing TEXT NOT NULL DEFAULT '';
ALTER TABLE approval ADD COLUMN told INTEGER NOT NULL DEFAULT 0 CHECK (told >= 0);
ALTER TABLE approval ADD COLUMN next_at INTEGER CHECK (next_at IS NULL OR timing <> '');
CREATE INDEX approval_next ON approval (next_at) WHERE next_at IS NOT NULL AND status = 'requested';
CREATE TRIGGER approval_timing_frozen BEFORE UPDATE OF timing ON approval
BEGIN SELECT RAISE(ROLLBACK, 'an approval is frozen when it is created'); END;
CREATE TRIGGER approval_told_forward BEFORE UPDATE OF told ON approval WHEN NEW.told < OLD.told
BEGIN SELECT RAISE(ROLLBACK, 'what was told stays told'); END;

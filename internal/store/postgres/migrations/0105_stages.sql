-- How a question goes through its time.

-- timing is the frozen JSON of stages, reminders and the rule for the end, '' for none.
-- told counts the moments that the log tells of; next_at is the moment after them.
ALTER TABLE approval ADD COLUMN timing TEXT NOT NULL DEFAULT '';
ALTER TABLE approval ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approval ADD COLUMN next_at BIGINT;
ALTER TABLE approval ADD CONSTRAINT approval_told CHECK (told >= 0);
ALTER TABLE approval ADD CONSTRAINT approval_timed CHECK (next_at IS NULL OR timing <> '');
CREATE INDEX approval_next ON approval (next_at) WHERE next_at IS NOT NULL AND status = 'requested';
CREATE TRIGGER approval_timing_frozen BEFORE UPDATE OF timing ON approval
FOR EACH ROW
EXECUTE FUNCTION gatehouse_forbid('an approval is frozen when it is created');
CREATE TRIGGER approval_told_forward BEFORE UPDATE OF told ON approval
FOR EACH ROW WHEN (NEW.told < OLD.told)
EXECUTE FUNCTION gatehouse_forbid('what was told stays told');

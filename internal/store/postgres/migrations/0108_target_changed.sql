-- Since when somebody has said that the target of a question that waits is another
-- than at the proposal, which version it had then, '' where nobody knew, and who said so.
ALTER TABLE approval ADD COLUMN changed_at BIGINT;
ALTER TABLE approval ADD COLUMN changed_version TEXT NOT NULL DEFAULT '';
ALTER TABLE approval ADD COLUMN changed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE approval ADD CONSTRAINT approval_changed CHECK ((changed_at IS NULL) = (changed_by = ''));

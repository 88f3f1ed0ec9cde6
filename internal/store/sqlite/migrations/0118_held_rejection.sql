-- When a held rejection takes effect, NULL for none. Until then the question stays requested, with the
-- rejecting vote.
ALTER TABLE approval ADD COLUMN rejects_at INTEGER;
CREATE INDEX approval_rejects ON approval (rejects_at) WHERE rejects_at IS NOT NULL AND status = 'requested';

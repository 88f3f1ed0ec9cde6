-- What is due, or ends, at one moment comes in the order in which it was made, as
-- on SQLite. By the time alone it came as its rows lay, and which of two failures
-- was its run's went by that.
DROP INDEX step_lease;
DROP INDEX step_due;
DROP INDEX run_deadline;
CREATE INDEX step_lease ON step (lease_until, seq) WHERE lease_until IS NOT NULL;
CREATE INDEX step_due ON step (due_at, seq) WHERE due_at IS NOT NULL;
CREATE INDEX run_deadline ON run (deadline, seq)
WHERE deadline IS NOT NULL AND stop = '' AND status IN ('queued', 'running', 'waiting_approval', 'waiting', 'failed_retryable');

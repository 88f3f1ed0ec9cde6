-- What a decision taught is read from what it wrote, not written once more.
DROP TABLE corpus;
CREATE VIEW corpus AS
SELECT a.tenant AS tenant, 'cor_' || substr(o.id, 5) AS id, a.seq AS action_seq, a.id AS action_id, a.action_type AS action_type,
  o.status AS outcome, a.decided_by AS decided_by, a.decided_at AS at
FROM approval o JOIN action a ON a.seq = o.seq WHERE o.status IN ('approved', 'rejected');

-- Nearly all that is pending is decided soon: only the inbox finds it.
DROP INDEX action_status;
CREATE INDEX action_status ON action (tenant, status, id) WHERE status <> 'pending';

-- Leaves get their numbers in the order of their rows, so that one mark tells
-- which of them wait: all up to it have theirs.
ALTER TABLE meta ADD COLUMN numbered INTEGER NOT NULL DEFAULT 0 CHECK (numbered >= 0);
UPDATE meta SET numbered = (SELECT coalesce((SELECT min(seq) - 1 FROM audit_leaf WHERE number IS NULL), (SELECT max(seq) FROM audit_leaf), 0));
DROP INDEX audit_waiting;

-- A trigger that aborts its statement makes each statement copy every page that
-- it changes. What these forbid is a fault of the program: it ends the transaction.
DROP TRIGGER action_absorbed;
CREATE TRIGGER action_absorbed BEFORE UPDATE OF status ON action
WHEN OLD.status IN ('rejected', 'denied', 'expired', 'canceled', 'superseded', 'reversed')
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
DROP TRIGGER approval_absorbed;
CREATE TRIGGER approval_absorbed BEFORE UPDATE ON approval WHEN OLD.status <> 'requested'
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
DROP TRIGGER approval_frozen;
CREATE TRIGGER approval_frozen BEFORE UPDATE OF seq, tenant, id, required, roles, people, excluded, expires_at, created_at,
  confirm_prompt, confirm_value ON approval
BEGIN SELECT RAISE(ROLLBACK, 'an approval is frozen when it is created'); END;
DROP TRIGGER audit_leaf_frozen;
CREATE TRIGGER audit_leaf_frozen BEFORE UPDATE ON audit_leaf WHEN OLD.number IS NOT NULL
BEGIN SELECT RAISE(ROLLBACK, 'a numbered leaf never changes'); END;
DROP TRIGGER audit_leaf_body;
CREATE TRIGGER audit_leaf_body BEFORE UPDATE OF seq, tenant, action_id, body ON audit_leaf
BEGIN SELECT RAISE(ROLLBACK, 'a leaf is only numbered'); END;

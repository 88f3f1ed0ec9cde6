-- What a decision taught is read from what it wrote, not written once more.
DROP TABLE corpus;
CREATE VIEW corpus AS
SELECT a.tenant AS tenant, 'cor_' || substr(o.id, 5) AS id, a.seq AS action_seq, a.id AS action_id, a.action_type AS action_type,
  o.status AS outcome, a.decided_by AS decided_by, a.decided_at AS at
FROM approval o JOIN action a ON a.seq = o.seq WHERE o.status IN ('approved', 'rejected');

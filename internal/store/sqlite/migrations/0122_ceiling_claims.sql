-- One row holds all claims of an action: an action claims all its ceilings at once, and
-- releases them at once. The store keeps ceiling_sum; no trigger does.
DROP TRIGGER ceiling_claim_added;
DROP TRIGGER ceiling_claim_removed;
DROP TRIGGER ceiling_claim_left;
DROP TRIGGER ceiling_claim_taken;
ALTER TABLE ceiling_claim RENAME TO ceiling_claim_before;
DROP INDEX ceiling_used;

CREATE TABLE ceiling_claim (
  action_seq   INTEGER PRIMARY KEY REFERENCES action (seq),
  tenant       TEXT NOT NULL,
  -- [[ceiling, scope, amount, counted_at], ...], with the amounts in millionths, rounded
  -- away from zero, and the end of the slice of time that each claim is counted in.
  claims       TEXT NOT NULL,
  -- The latest counted_at of the claims.
  counted_at   INTEGER NOT NULL,
  reserved_at  INTEGER NOT NULL,
  released_at  INTEGER
) STRICT;
INSERT INTO ceiling_claim (action_seq, tenant, claims, counted_at, reserved_at, released_at)
SELECT action_seq, tenant, json_group_array(json_array(ceiling, scope, amount, counted_at)), max(counted_at),
  max(reserved_at), CASE WHEN count(*) = count(released_at) THEN max(released_at) END
FROM ceiling_claim_before GROUP BY action_seq;
DROP TABLE ceiling_claim_before;

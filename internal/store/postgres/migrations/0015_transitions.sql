-- What a decision writes beside the rows that it moves. A vote is written by a
-- statement that finds its approval open, from that approval's row, and a push
-- from its approved action's row, or they fail; only the archive deletes either,
-- children first. So nobody has to look for these rows again, and lock them, for
-- each that refers to them. Rows that belong to nothing are still looked for by
-- `gatehouse doctor --deep`.
ALTER TABLE vote DROP CONSTRAINT vote_seq_fkey;
ALTER TABLE push DROP CONSTRAINT push_action_seq_fkey;

-- Each transition of an action adds an entry to each of its indexes, beside those
-- that it has there: what of an action is in these never changes. Pages that were
-- filled to nine tenths as actions came were searched for dead entries, or split,
-- by the first transition of what is in them: a fifth of what the server spent on
-- a decision in a group. Half of a new page is left for that; those that are
-- there stay as they are until somebody makes the index anew (REINDEX).
ALTER INDEX action_pkey SET (fillfactor = 50);
ALTER INDEX action_tenant_id_key SET (fillfactor = 50);
ALTER INDEX action_key SET (fillfactor = 50);
ALTER INDEX action_type SET (fillfactor = 50);
ALTER INDEX action_proposer SET (fillfactor = 50);

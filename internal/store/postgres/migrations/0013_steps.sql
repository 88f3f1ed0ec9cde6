-- What each step of a run writes. A body is written by the statement that writes
-- its step's row, from that row, and an attempt from its step's row too, or it
-- fails; neither steps nor runs are ever deleted. So nobody has to look for these
-- rows again, and lock them, for each that refers to them.
ALTER TABLE step_body DROP CONSTRAINT step_body_seq_fkey;
ALTER TABLE step_attempt DROP CONSTRAINT step_attempt_tenant_run_id_fkey;
ALTER TABLE step_attempt DROP CONSTRAINT step_attempt_tenant_step_id_fkey;

-- Attempts are read by their run, and a step is of one: one index instead of three.
ALTER TABLE step_attempt DROP CONSTRAINT step_attempt_pkey;
ALTER TABLE step_attempt DROP CONSTRAINT step_attempt_tenant_step_id_generation_key;
DROP INDEX step_attempt_run;
ALTER TABLE step_attempt ADD PRIMARY KEY (tenant, run_id, step_id, generation);

-- Steps are found by their run, and there those of the workflow apart from their
-- items: by one index instead of two. The key of an item begins with that of its
-- step, and no key of a workflow is like one, so that keys are as unique as they
-- were.
DROP INDEX step_top;
ALTER TABLE step DROP CONSTRAINT step_run_seq_key_key;
CREATE UNIQUE INDEX step_run ON step (run_seq, parent, key);

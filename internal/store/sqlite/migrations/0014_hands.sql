-- run_hand names the principals whose hands were on what a run is made from: the
-- senders of its events, the workers outside that completed its steps or pushes,
-- the editors of its actions, and those of the runs whose outputs it took over.
-- None of them decides what the run proposes. Rows from before this migration
-- hold what the attempts and events tell; the events tell a name, not an id.
CREATE TABLE run_hand (
  tenant     TEXT NOT NULL,
  run_id     TEXT NOT NULL,
  principal  TEXT NOT NULL CHECK (principal <> ''),
  PRIMARY KEY (tenant, run_id, principal),
  FOREIGN KEY (tenant, run_id) REFERENCES run (tenant, id)
) WITHOUT ROWID;
CREATE TRIGGER run_hand_frozen BEFORE UPDATE ON run_hand
BEGIN SELECT RAISE(ABORT, 'a hand on a run stays'); END;
CREATE TRIGGER run_hand_kept BEFORE DELETE ON run_hand
BEGIN SELECT RAISE(ABORT, 'a hand on a run stays'); END;

INSERT INTO run_hand (tenant, run_id, principal)
SELECT DISTINCT tenant, run_id, substr(worker, 1, instr(worker || '/', '/') - 1) FROM step_attempt WHERE worker GLOB 'prn_*'
UNION SELECT DISTINCT tenant, run_id, sent_by FROM run_signal WHERE sent_by <> '';

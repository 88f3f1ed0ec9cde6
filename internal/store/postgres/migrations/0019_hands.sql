-- run_hand names the principals whose hands were on what a run is made from: the
-- senders of its events, the workers outside that completed its steps or pushes,
-- the editors of its actions, and those of the runs whose outputs it took over.
-- None of them decides what the run proposes. Rows from before this migration
-- hold what the attempts and events tell; the events tell a name, not an id.
CREATE TABLE run_hand (
  tenant     TEXT COLLATE "C" NOT NULL,
  run_id     TEXT COLLATE "C" NOT NULL,
  principal  TEXT COLLATE "C" NOT NULL CHECK (principal <> ''),
  PRIMARY KEY (tenant, run_id, principal),
  FOREIGN KEY (tenant, run_id) REFERENCES run (tenant, id)
);
CREATE TRIGGER run_hand_frozen BEFORE UPDATE ON run_hand
FOR EACH ROW
EXECUTE FUNCTION gatehouse_forbid('a hand on a run stays');
CREATE TRIGGER run_hand_kept BEFORE DELETE OR TRUNCATE ON run_hand
FOR EACH STATEMENT
EXECUTE FUNCTION gatehouse_forbid('a hand on a run stays');

INSERT INTO run_hand (tenant, run_id, principal)
SELECT DISTINCT tenant, run_id, split_part(worker, '/', 1) FROM step_attempt WHERE starts_with(worker, 'prn_')
UNION SELECT DISTINCT tenant, run_id, sent_by FROM run_signal WHERE sent_by <> '';

CREATE POLICY wall ON run_hand
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE run_hand ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_hand FORCE ROW LEVEL SECURITY;

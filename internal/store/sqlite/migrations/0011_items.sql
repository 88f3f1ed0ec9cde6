-- A transition of a run reads the steps of its workflow, and of their items only
-- what it needs: the one that moves, and in which states the others are.
CREATE INDEX step_top ON step (run_seq, position) WHERE parent = '';
CREATE INDEX step_items ON step (tenant, parent, status) WHERE parent <> '';

-- What a model call may cost at most, from before it is made until what it cost
-- is stored. A row that stays is of a call of which nothing was heard.
CREATE TABLE budget_claim (
  seq         INTEGER PRIMARY KEY,
  tenant      TEXT NOT NULL,
  workflow    TEXT NOT NULL,
  step_id     TEXT NOT NULL,
  generation  INTEGER NOT NULL,
  currency    TEXT NOT NULL,
  micros      INTEGER NOT NULL CHECK (micros >= 0),
  picos       INTEGER NOT NULL CHECK (picos BETWEEN 0 AND 999999),
  at          INTEGER NOT NULL,
  UNIQUE (tenant, step_id, generation),
  FOREIGN KEY (tenant, step_id) REFERENCES step (tenant, id)
) STRICT;
CREATE INDEX budget_claim_at ON budget_claim (tenant, currency, at, workflow, micros, picos);

-- What is held under a ceiling is read as a sum of slices of time, not of claims: the
-- cost of a decision does not grow with the claims in the window.

-- The end of the slice of time that a claim was reserved in; the slice is a 64th of the
-- ceiling's window. A claim counts until the window has passed this end.
ALTER TABLE ceiling_claim ADD COLUMN counted_at INTEGER NOT NULL DEFAULT 0;
UPDATE ceiling_claim SET counted_at = reserved_at;

-- One row for each ceiling, scope and slice: the sum of the claims that are not released.
-- The triggers keep it. No row means 0.
CREATE TABLE ceiling_sum (
  tenant      TEXT NOT NULL,
  ceiling     TEXT NOT NULL,
  scope       TEXT NOT NULL,
  counted_at  INTEGER NOT NULL,
  amount      INTEGER NOT NULL CHECK (amount >= 0),
  PRIMARY KEY (tenant, ceiling, scope, counted_at)
) STRICT, WITHOUT ROWID;
INSERT INTO ceiling_sum (tenant, ceiling, scope, counted_at, amount)
SELECT tenant, ceiling, scope, counted_at, sum(amount) FROM ceiling_claim WHERE released_at IS NULL
GROUP BY tenant, ceiling, scope, counted_at;

CREATE TRIGGER ceiling_claim_added AFTER INSERT ON ceiling_claim WHEN NEW.released_at IS NULL
BEGIN
  INSERT INTO ceiling_sum (tenant, ceiling, scope, counted_at, amount)
  VALUES (NEW.tenant, NEW.ceiling, NEW.scope, NEW.counted_at, NEW.amount)
  ON CONFLICT DO UPDATE SET amount = amount + excluded.amount;
END;
CREATE TRIGGER ceiling_claim_removed AFTER DELETE ON ceiling_claim WHEN OLD.released_at IS NULL
BEGIN
  UPDATE ceiling_sum SET amount = amount - OLD.amount
  WHERE tenant = OLD.tenant AND ceiling = OLD.ceiling AND scope = OLD.scope AND counted_at = OLD.counted_at;
  DELETE FROM ceiling_sum
  WHERE tenant = OLD.tenant AND ceiling = OLD.ceiling AND scope = OLD.scope AND counted_at = OLD.counted_at AND amount = 0;
END;
CREATE TRIGGER ceiling_claim_left AFTER UPDATE ON ceiling_claim WHEN OLD.released_at IS NULL
BEGIN
  UPDATE ceiling_sum SET amount = amount - OLD.amount
  WHERE tenant = OLD.tenant AND ceiling = OLD.ceiling AND scope = OLD.scope AND counted_at = OLD.counted_at;
  DELETE FROM ceiling_sum
  WHERE tenant = OLD.tenant AND ceiling = OLD.ceiling AND scope = OLD.scope AND counted_at = OLD.counted_at AND amount = 0;
END;
CREATE TRIGGER ceiling_claim_taken AFTER UPDATE ON ceiling_claim WHEN NEW.released_at IS NULL
BEGIN
  INSERT INTO ceiling_sum (tenant, ceiling, scope, counted_at, amount)
  VALUES (NEW.tenant, NEW.ceiling, NEW.scope, NEW.counted_at, NEW.amount)
  ON CONFLICT DO UPDATE SET amount = amount + excluded.amount;
END;

-- What is held under a ceiling is read as a sum of slices of time, not of claims: the
-- cost of a decision does not grow with the claims in the window.

-- The end of the slice of time that a claim was reserved in; the slice is a 64th of the
-- ceiling's window. A claim counts until the window has passed this end.
ALTER TABLE ceiling_claim ADD COLUMN counted_at BIGINT NOT NULL DEFAULT 0;
UPDATE ceiling_claim SET counted_at = reserved_at;

-- One row for each ceiling, scope and slice: the sum of the claims that are not released.
-- The triggers keep it. No row means 0.
CREATE TABLE ceiling_sum (
  tenant      TEXT COLLATE "C" NOT NULL,
  ceiling     TEXT COLLATE "C" NOT NULL,
  scope       TEXT COLLATE "C" NOT NULL,
  counted_at  BIGINT NOT NULL,
  amount      BIGINT NOT NULL CHECK (amount >= 0),
  PRIMARY KEY (tenant, ceiling, scope, counted_at)
);
INSERT INTO ceiling_sum (tenant, ceiling, scope, counted_at, amount)
SELECT tenant, ceiling, scope, counted_at, sum(amount) FROM ceiling_claim WHERE released_at IS NULL
GROUP BY tenant, ceiling, scope, counted_at;
CREATE POLICY wall ON ceiling_sum
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE ceiling_sum ENABLE ROW LEVEL SECURITY;
ALTER TABLE ceiling_sum FORCE ROW LEVEL SECURITY;

CREATE FUNCTION gatehouse_ceiling_sum() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.released_at IS NULL THEN
    UPDATE ceiling_sum SET amount = amount - OLD.amount
    WHERE tenant = OLD.tenant AND ceiling = OLD.ceiling AND scope = OLD.scope AND counted_at = OLD.counted_at;
    DELETE FROM ceiling_sum
    WHERE tenant = OLD.tenant AND ceiling = OLD.ceiling AND scope = OLD.scope AND counted_at = OLD.counted_at AND amount = 0;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.released_at IS NULL THEN
    INSERT INTO ceiling_sum AS s (tenant, ceiling, scope, counted_at, amount)
    VALUES (NEW.tenant, NEW.ceiling, NEW.scope, NEW.counted_at, NEW.amount)
    ON CONFLICT (tenant, ceiling, scope, counted_at) DO UPDATE SET amount = s.amount + excluded.amount;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER ceiling_claim_counted AFTER INSERT OR UPDATE OR DELETE ON ceiling_claim
FOR EACH ROW EXECUTE FUNCTION gatehouse_ceiling_sum();

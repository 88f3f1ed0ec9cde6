-- One row holds all claims of an action: an action claims all its ceilings at once, and
-- releases them at once.
DROP TRIGGER ceiling_claim_counted ON ceiling_claim;
DROP FUNCTION gatehouse_ceiling_sum();
ALTER TABLE ceiling_claim RENAME TO ceiling_claim_before;
ALTER TABLE ceiling_claim_before RENAME CONSTRAINT ceiling_claim_pkey TO ceiling_claim_before_pkey;

CREATE TABLE ceiling_claim (
  action_seq   BIGINT PRIMARY KEY REFERENCES action (seq),
  tenant       TEXT COLLATE "C" NOT NULL,
  -- [[ceiling, scope, amount, counted_at], ...], with the amounts in millionths, rounded
  -- away from zero, and the end of the slice of time that each claim is counted in.
  claims       TEXT COLLATE "C" NOT NULL,
  -- The latest counted_at of the claims.
  counted_at   BIGINT NOT NULL,
  reserved_at  BIGINT NOT NULL,
  released_at  BIGINT
);
INSERT INTO ceiling_claim (action_seq, tenant, claims, counted_at, reserved_at, released_at)
SELECT action_seq, min(tenant), json_agg(json_build_array(ceiling, scope, amount, counted_at))::text, max(counted_at),
  max(reserved_at), CASE WHEN count(*) = count(released_at) THEN max(released_at) END
FROM ceiling_claim_before GROUP BY action_seq;
DROP TABLE ceiling_claim_before;
CREATE POLICY wall ON ceiling_claim
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE ceiling_claim ENABLE ROW LEVEL SECURITY;
ALTER TABLE ceiling_claim FORCE ROW LEVEL SECURITY;

-- The triggers keep ceiling_sum, once for a statement: it adds up the claims of all its rows first.
CREATE FUNCTION gatehouse_ceiling_sum() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    UPDATE ceiling_sum s SET amount = s.amount - o.amount
    FROM (
      SELECT tenant, c ->> 0 AS ceiling, c ->> 1 AS scope, (c ->> 3)::bigint AS counted_at,
        sum((c ->> 2)::bigint)::bigint AS amount
      FROM old_rows CROSS JOIN LATERAL json_array_elements(claims::json) c
      WHERE released_at IS NULL GROUP BY 1, 2, 3, 4
    ) o
    WHERE s.tenant = o.tenant AND s.ceiling = o.ceiling AND s.scope = o.scope AND s.counted_at = o.counted_at;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO ceiling_sum AS s (tenant, ceiling, scope, counted_at, amount)
    SELECT tenant, c ->> 0, c ->> 1, (c ->> 3)::bigint, sum((c ->> 2)::bigint)
    FROM new_rows CROSS JOIN LATERAL json_array_elements(claims::json) c
    WHERE released_at IS NULL GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (tenant, ceiling, scope, counted_at) DO UPDATE SET amount = s.amount + excluded.amount;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER ceiling_claim_added AFTER INSERT ON ceiling_claim REFERENCING NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_ceiling_sum();
CREATE TRIGGER ceiling_claim_changed AFTER UPDATE ON ceiling_claim
REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_ceiling_sum();
CREATE TRIGGER ceiling_claim_removed AFTER DELETE ON ceiling_claim REFERENCING OLD TABLE AS old_rows
FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_ceiling_sum();

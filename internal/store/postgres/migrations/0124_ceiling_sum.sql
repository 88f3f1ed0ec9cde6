-- A sum that reaches 0 is deleted: its claims are released or archived.
CREATE OR REPLACE FUNCTION gatehouse_ceiling_sum() RETURNS TRIGGER LANGUAGE plpgsql AS $$
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
    DELETE FROM ceiling_sum s
    USING (
      SELECT DISTINCT tenant, c ->> 0 AS ceiling, c ->> 1 AS scope, (c ->> 3)::bigint AS counted_at
      FROM old_rows CROSS JOIN LATERAL json_array_elements(claims::json) c
      WHERE released_at IS NULL
    ) o
    WHERE s.tenant = o.tenant AND s.ceiling = o.ceiling AND s.scope = o.scope AND s.counted_at = o.counted_at
      AND s.amount = 0;
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
DELETE FROM ceiling_sum WHERE amount = 0;

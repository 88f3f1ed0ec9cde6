-- A group of Updates and a batch of Reads can belong to several tenants: the setting gatehouse.tenant
-- then names all of them, with commas between.
DO $$
DECLARE
  t RECORD;
BEGIN
  FOR t IN
    SELECT c.relname AS name, a.attname AS col
    FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = current_schema()::regnamespace AND p.polname = 'wall'
      AND (a.attname = 'tenant' OR c.relname = 'tenant' AND a.attname = 'id')
    ORDER BY c.relname
  LOOP
    EXECUTE format($p$ALTER POLICY wall ON %1$I
USING (%2$I = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*'
  OR %2$I = ANY (string_to_array(current_setting('gatehouse.tenant', true), ',')))$p$, t.name, t.col);
  END LOOP;
END $$;

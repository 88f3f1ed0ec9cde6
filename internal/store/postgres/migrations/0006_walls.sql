-- The second wall between tenants. The first one is the tenant in every
-- statement; this one holds where a statement forgets it. A transaction says
-- whose rows it is about, by the setting gatehouse.tenant: those of one tenant,
-- or with '*' all. One that says nothing sees nothing and writes nothing. The
-- tables' owner is bound as well (FORCE); a superuser and a role with BYPASSRLS
-- are not. References between tables are checked by the server across walls.
DO $$
DECLARE
  t RECORD;
BEGIN
  FOR t IN
    SELECT c.relname AS name, a.attname AS col
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND c.relname NOT LIKE 'gatehouse\_%'
      AND (a.attname = 'tenant' OR c.relname = 'tenant' AND a.attname = 'id')
    ORDER BY c.relname
  LOOP
    EXECUTE format($p$CREATE POLICY wall ON %1$I
USING (%2$I = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*')$p$, t.name, t.col);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t.name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t.name);
  END LOOP;
END $$;

-- Behind a wall, an index serves only comparisons of which the server knows
-- that they tell nothing of what they compare; lower() is none.
DROP INDEX principal_name;
ALTER TABLE principal ADD COLUMN folded TEXT COLLATE "C" GENERATED ALWAYS AS (lower(name)) STORED;
CREATE UNIQUE INDEX principal_name ON principal (tenant, folded);

-- What the twelfth migration has taken from them stands in audit_leaf and
-- audit_batch now.
DROP TABLE audit_leaf_before;
DROP TABLE audit_hash;

-- No number is given twice, and no leaf gets two.
CREATE TRIGGER audit_batch_behind BEFORE INSERT ON audit_batch
WHEN NEW.number < (SELECT b.number + length(b.leaves) / 8 FROM audit_batch b WHERE b.tenant = NEW.tenant ORDER BY b.number DESC LIMIT 1)
  OR NEW.last <= (SELECT max(b.last) FROM audit_batch b WHERE b.tenant = NEW.tenant)
BEGIN SELECT RAISE(ROLLBACK, 'a log only grows'); END;

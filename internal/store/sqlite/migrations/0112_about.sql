-- The entity whose state an approval step asks about, as canonical JSON that begins with
-- connector, entity_ref and entity_type; '' for none.
ALTER TABLE approval ADD COLUMN about TEXT NOT NULL DEFAULT '';
CREATE TRIGGER approval_about_frozen BEFORE UPDATE OF about ON approval
BEGIN SELECT RAISE(ROLLBACK, 'an approval is frozen when it is created'); END;

-- A list of more than two values after IN is made into a table of its own each
-- time that a statement is run: of what an update of an action takes, that was
-- half. The same checks, as a row of comparisons, cost next to nothing. SQLite
-- has no statement that changes a check; what follows is its documented way.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(sql,
  'CHECK (status IN (''pending'', ''approved'', ''rejected'', ''denied'', ''expired'', ''canceled'',
                     ''superseded'', ''pushing'', ''applied'', ''failed'', ''unknown'', ''reversed''))',
  'CHECK (status = ''pending'' OR status = ''approved'' OR status = ''pushing'' OR status = ''applied'' OR status = ''rejected''
                     OR status = ''denied'' OR status = ''expired'' OR status = ''canceled'' OR status = ''superseded''
                     OR status = ''failed'' OR status = ''unknown'' OR status = ''reversed'')'),
  'CHECK (decided_via IN ('''', ''api'', ''api:bulk-decide'', ''console'', ''cli'', ''slack'', ''link'', ''policy''))',
  'CHECK (decided_via = '''' OR decided_via = ''api'' OR decided_via = ''api:bulk-decide'' OR decided_via = ''console''
                     OR decided_via = ''cli'' OR decided_via = ''slack'' OR decided_via = ''link'' OR decided_via = ''policy'')')
WHERE type = 'table' AND name = 'action';
UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (policy_outcome IN ('''', ''allow'', ''deny'', ''needs_approval''))',
  'CHECK (policy_outcome = ''needs_approval'' OR policy_outcome = ''allow'' OR policy_outcome = ''deny'' OR policy_outcome = '''')')
WHERE type = 'table' AND name = 'proposal';
UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (status IN (''requested'', ''approved'', ''rejected'', ''expired'', ''canceled''))',
  'CHECK (status = ''requested'' OR status = ''approved'' OR status = ''rejected'' OR status = ''expired'' OR status = ''canceled'')')
WHERE type = 'table' AND name = 'approval';
UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (status IN (''queued'', ''picking'', ''sent'', ''applied'', ''failed'', ''unknown'', ''canceled''))',
  'CHECK (status = ''queued'' OR status = ''picking'' OR status = ''sent'' OR status = ''applied'' OR status = ''failed''
                     OR status = ''unknown'' OR status = ''canceled'')')
WHERE type = 'table' AND name = 'push';
UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (outcome IN (''applied'', ''terminal'', ''not_sent'', ''transient'', ''ambiguous''))',
  'CHECK (outcome = ''applied'' OR outcome = ''terminal'' OR outcome = ''not_sent'' OR outcome = ''transient'' OR outcome = ''ambiguous'')')
WHERE type = 'table' AND name = 'receipt';
PRAGMA writable_schema = RESET;

-- As for actions, approvals and leaves before: what these forbid is a fault of
-- the program, and ends the transaction, so that no statement need copy the
-- pages that it changes. Made anew, they also tell all who read the schema that
-- it has changed.
DROP TRIGGER action_absorbed;
CREATE TRIGGER action_absorbed BEFORE UPDATE OF status ON action
WHEN OLD.status = 'rejected' OR OLD.status = 'denied' OR OLD.status = 'expired' OR OLD.status = 'canceled'
  OR OLD.status = 'superseded' OR OLD.status = 'reversed'
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
DROP TRIGGER push_absorbed;
CREATE TRIGGER push_absorbed BEFORE UPDATE OF status ON push
WHEN OLD.status IN ('applied', 'canceled') AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ROLLBACK, 'no transition leads out of this state'); END;
DROP TRIGGER push_fenced;
CREATE TRIGGER push_fenced BEFORE UPDATE OF generation ON push WHEN NEW.generation < OLD.generation
BEGIN SELECT RAISE(ROLLBACK, 'a generation never falls'); END;

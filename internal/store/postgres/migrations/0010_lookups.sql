-- A look-up by tenant and id, planned while a table is empty, may go by any
-- index that begins with the tenant, and keep to it while the table grows: all
-- cost the same then. So of the indexes of a table one begins with the tenant,
-- that of its ids, and the others with what else they are about. What reads by
-- them names both.
DROP INDEX action_status;
DROP INDEX action_type;
DROP INDEX action_proposer;
ALTER TABLE action DROP CONSTRAINT action_tenant_idempotency_key_key;
CREATE INDEX action_status ON action (status, tenant, id);
CREATE INDEX action_type ON action (action_type, tenant, id);
CREATE INDEX action_proposer ON action (proposer_id, tenant, id);
ALTER TABLE action ADD CONSTRAINT action_key UNIQUE (idempotency_key, tenant);

DROP INDEX push_status;
CREATE INDEX push_status ON push (status, tenant, id);

DROP INDEX principal_name;
CREATE UNIQUE INDEX principal_name ON principal (folded, tenant);

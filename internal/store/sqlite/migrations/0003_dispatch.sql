-- Claims go by tenant, so that none waits behind the queue of another: the
-- tenants with work are found by walking this index from name to name. The one
-- over all tenants has no reader left.
CREATE INDEX push_due_tenant ON push (tenant, due_at, seq) WHERE status = 'queued';
DROP INDEX push_due;

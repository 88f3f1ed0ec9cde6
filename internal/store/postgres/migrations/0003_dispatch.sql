-- Claims go by tenant, so that none waits behind the queue of another: the
-- tenants with work are found by walking this index from name to name. The one
-- over all tenants has no reader left.
DROP INDEX push_due;

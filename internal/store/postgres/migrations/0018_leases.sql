-- The leases of a tenant are counted from where leases begin: where a backup keeps
-- those that are over in the indexes, this one was read whole for each count.
DROP INDEX step_running;
CREATE INDEX step_running ON step (tenant, lease_until, workflow) WHERE lease_until IS NOT NULL;

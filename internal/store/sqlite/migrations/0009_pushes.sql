-- A push that goes its way is not in the index of its status: it is counted
-- while it is leased, by its lease, and found afterwards by its id. The leases
-- of the dispatcher are apart from those of workers outside, of which there may
-- be any number: what a tenant has in flight is counted in the former.
DROP INDEX push_status;
CREATE INDEX push_status ON push (tenant, status, id) WHERE status <> 'picking' AND status <> 'sent' AND status <> 'applied';
DROP INDEX push_lease;
CREATE INDEX push_lease ON push (lease_until, tenant) WHERE lane = '' AND status IN ('picking', 'sent');
CREATE INDEX push_lease_lane ON push (lease_until, tenant) WHERE lane <> '' AND status IN ('picking', 'sent');

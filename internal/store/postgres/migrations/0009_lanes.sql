-- A push whose connector is of type worker waits in that connector's lane, out
-- of the dispatcher's way, until a worker outside leases it.
ALTER TABLE push ADD COLUMN lane TEXT COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX push_due_tenant;
CREATE INDEX push_due_tenant ON push (tenant, due_at, seq) WHERE status = 'queued' AND lane = '';
CREATE INDEX push_due_lane ON push (tenant, lane, due_at, seq) WHERE status = 'queued' AND lane <> '';

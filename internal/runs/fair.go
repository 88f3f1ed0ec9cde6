package runs

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/lease"
)

// Weights returns the share of the leases that a tenant gets while other
// tenants have ready steps too, and a workspace's share within its tenant. The
// default is 1.
type Weights func(tenant, workspace string) (ofTenant, ofWorkspace int)

// fair divides leases between tenants, then between a tenant's workspaces, then
// between a workspace's workflows; see [lease.Fair].
type fair struct {
	weights Weights
	lanes   lease.Fair
	cursor  lease.Cursor[gatehouse.Lane]
}

// share distributes n leases over the lanes. most returns the bounds of a lane, 0 for
// no bound; a lane with unknown bounds gets no lease. share charges nothing, since
// the claim may fail or find fewer steps.
func (f *fair) share(due []gatehouse.DueLane, n int, most func(gatehouse.Lane) (workflow, tenant int,
	ok bool)) []gatehouse.StepShare {
	shares, queues := make([]gatehouse.StepShare, len(due)), make([]lease.Queue, len(due))
	for i, d := range due {
		s := &shares[i]
		s.Lane = d.Lane
		var ok bool
		if s.MostOfWorkflow, s.MostOfTenant, ok = most(d.Lane); !ok {
			continue
		}
		queues[i] = lease.Queue{
			Path:  f.path(d.Tenant, d.Workspace, d.Workflow),
			Limit: roomFor(d, s.MostOfWorkflow, s.MostOfTenant),
		}
	}
	f.lanes.Divide(n, queues)
	for i, q := range queues {
		shares[i].Limit = q.Given
	}
	return slices.DeleteFunc(shares, func(s gatehouse.StepShare) bool { return s.Limit == 0 })
}

func (f *fair) path(tenant, workspace, workflow string) []lease.Part {
	ofTenant, ofWorkspace := f.weights(tenant, workspace)
	return []lease.Part{{Name: tenant, Weight: ofTenant}, {Name: workspace, Weight: ofWorkspace}, {Name: workflow}}
}

// charge charges the leased steps to their lanes.
func (f *fair) charge(steps []*gatehouse.Step) {
	queues := make([]lease.Queue, len(steps))
	for i, s := range steps {
		queues[i] = lease.Queue{Path: f.path(s.Tenant, s.Workspace, s.Workflow), Given: 1}
	}
	f.lanes.Charge(queues)
}

// roomFor is how many of a lane's ready steps fit under its bounds; a bound of 0 means no bound.
func roomFor(d gatehouse.DueLane, ofWorkflow, ofTenant int) int {
	return lease.Room(ofWorkflow, d.WorkflowRunning, lease.Room(ofTenant, d.TenantRunning, d.Ready))
}

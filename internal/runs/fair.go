package runs

import (
	"sync"

	"github.com/gatehouse-dev/gatehouse"
)

// Weights returns the share of the leases that a tenant gets while other
// tenants have ready steps too, and a workspace's share within its tenant. The
// default is 1.
type Weights func(tenant, workspace string) (ofTenant, ofWorkspace int)

// fair divides leases between tenants, then between a tenant's workspaces, then
// between a workspace's workflows, by start-time fair queueing (Goyal, Vin,
// Cheng 1996) at each level: a lease costs 1/weight of virtual time, and the
// earliest start is next. A node that had nothing ready starts now.
type fair struct {
	weights Weights
	mu      sync.Mutex
	root    node
	after   gatehouse.Lane
}

// node is a tenant, a workspace, a workflow, or the root.
type node struct {
	now, end int64 // now is the start of the last lease below it
	children map[string]*node
}

// turn is the virtual time of one lease at weight 1.
const turn = 1 << 20

// maxNodes bounds the children that a node remembers. A forgotten child starts
// now, as if it had had nothing ready.
const maxNodes = 10_000

func (n *node) child(name string) *node {
	c := n.children[name]
	if c == nil {
		if n.children == nil || len(n.children) >= maxNodes {
			n.children = make(map[string]*node)
		}
		c = &node{end: n.now}
		n.children[name] = c
	}
	return c
}

// branch is a node with ready steps below it.
type branch struct {
	node     *node
	step     int64
	branches []*branch
	share    *gatehouse.StepShare // of a workflow's lane
	left     int
}

// lease takes one step from the branch that is next; false when none is left.
func (b *branch) lease() bool {
	if b.share != nil {
		if b.left == 0 {
			return false
		}
		b.left--
		b.share.Limit++
		return true
	}
	for len(b.branches) > 0 {
		first := 0
		for i, c := range b.branches {
			if max(c.node.end, b.node.now) < max(b.branches[first].node.end, b.node.now) {
				first = i
			}
		}
		next := b.branches[first]
		if next.lease() {
			start := max(next.node.end, b.node.now)
			b.node.now, next.node.end = start, start+next.step
			return true
		}
		b.branches = append(b.branches[:first], b.branches[first+1:]...)
	}
	return false
}

// sub returns the branch of a child of b.
func (b *branch) sub(seen map[*node]*branch, name string, weight int) *branch {
	n := b.node.child(name)
	c := seen[n]
	if c == nil {
		c = &branch{node: n, step: turn / int64(max(weight, 1))}
		seen[n] = c
		b.branches = append(b.branches, c)
	}
	return c
}

// share distributes n leases over the lanes. most returns the bounds of a lane,
// 0 for none; a lane with unknown bounds gets no lease.
func (f *fair) share(due []gatehouse.DueLane, n int, most func(gatehouse.Lane) (workflow, tenant int, ok bool)) []gatehouse.StepShare {
	f.mu.Lock()
	defer f.mu.Unlock()
	root, seen := &branch{node: &f.root}, make(map[*node]*branch)
	shares := make([]gatehouse.StepShare, len(due))
	for i, d := range due {
		left := d.Ready
		s := &shares[i]
		s.Lane = d.Lane
		var ok bool
		if s.MostOfWorkflow, s.MostOfTenant, ok = most(d.Lane); !ok {
			continue
		}
		if s.MostOfWorkflow > 0 {
			left = min(left, s.MostOfWorkflow-d.WorkflowRunning)
		}
		if s.MostOfTenant > 0 {
			left = min(left, s.MostOfTenant-d.TenantRunning)
		}
		if left <= 0 {
			continue
		}
		ofTenant, ofWorkspace := f.weights(d.Tenant, d.Workspace)
		lane := root.sub(seen, d.Tenant, ofTenant).sub(seen, d.Workspace, ofWorkspace).sub(seen, d.Workflow, 1)
		lane.share, lane.left = s, left
	}
	for n > 0 && root.lease() {
		n--
	}
	out := shares[:0]
	for _, s := range shares {
		if s.Limit > 0 {
			out = append(out, s)
		}
	}
	return out
}

// from returns the lane after which the next look begins. looked records the
// last lane of a look that saw at most so many, so that no lane is skipped.
// After a look that saw all lanes the next one starts at the first, which needs
// one walk instead of two.
func (f *fair) from() gatehouse.Lane {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.after
}

func (f *fair) looked(due []gatehouse.DueLane, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.after = (gatehouse.Lane{}); len(due) == most {
		f.after = due[len(due)-1].Lane
	}
}

package lease

import (
	"maps"
	"slices"
	"sync"
)

// MaxWeight is the largest weight; beyond it one part would get nearly every lease.
const MaxWeight = 1000

// Part is one name on the path to a queue: a tenant, a workspace, a workflow.
type Part struct {
	Name string
	// Weight is the part's share of the leases while its neighbors have ready work too:
	// with weights 3 and 1, three leases in four. 0 counts as 1.
	Weight int
}

// Queue is the ready work under one path.
type Queue struct {
	Path []Part
	// Limit is the most leases that the queue may get, Given how many it gets.
	Limit, Given int
}

// Fair divides leases by start-time fair queueing (Goyal, Vin, Cheng 1996) on each
// level of the paths: a lease costs 1/weight of virtual time, and the part with the
// earliest start is next. A part that was idle starts at the present virtual time: it
// gets the next lease, however long the other queues are, but no credit for idle time.
//
// Each process is fair by itself, so all together are fair.
type Fair struct {
	mu   sync.Mutex
	root node
}

// node is a part with its virtual times. now is the start of the last lease below it,
// end is the end of its own last lease.
type node struct {
	now, end int64
	children map[string]*node
}

// turn is the virtual time of one lease at weight 1.
const turn = 1 << 20

// maxNodes bounds the children that a node remembers. At the bound, the node forgets the
// children whose end is not after its now, or else all. A forgotten child starts at now, as
// a new one does.
const maxNodes = 10_000

// child returns the child of a name. A new child starts at start.
func (n *node) child(name string, start int64) *node {
	c := n.children[name]
	if c == nil {
		if len(n.children) >= maxNodes {
			maps.DeleteFunc(n.children, func(_ string, c *node) bool { return c.end <= n.now })
		}
		if n.children == nil || len(n.children) >= maxNodes {
			n.children = make(map[string]*node)
		}
		c = &node{end: start}
		n.children[name] = c
	}
	return c
}

// branch is a copy of a node, with the ready queues below it.
type branch struct {
	name     string
	node     *node // nil for a part without a node
	now, end int64
	step     int64
	branches []*branch
	queue    *Queue // at the end of a path
}

// sub returns the branch of a part below b.
func (b *branch) sub(p Part) *branch {
	if i := slices.IndexFunc(b.branches, func(c *branch) bool { return c.name == p.Name }); i >= 0 {
		return b.branches[i]
	}
	c := &branch{name: p.Name, end: b.now, step: cost(p)}
	if b.node != nil && b.node.children[p.Name] != nil {
		c.node = b.node.children[p.Name]
		c.now, c.end = c.node.now, c.node.end
	}
	b.branches = append(b.branches, c)
	return c
}

func cost(p Part) int64 { return turn / int64(max(p.Weight, 1)) }

// lease gives one lease to the next queue of the branch; false when none can take it.
func (b *branch) lease() bool {
	if b.queue != nil {
		if b.queue.Given >= b.queue.Limit {
			return false
		}
		b.queue.Given++
		return true
	}
	for len(b.branches) > 0 {
		first := 0
		for i, c := range b.branches {
			if max(c.end, b.now) < max(b.branches[first].end, b.now) {
				first = i
			}
		}
		next := b.branches[first]
		if next.lease() {
			start := max(next.end, b.now)
			b.now, next.end = start, start+next.step
			return true
		}
		b.branches = slices.Delete(b.branches, first, first+1)
	}
	return false
}

// Divide divides n leases among queues, in Given. No two queues have the same path. Divide
// does not charge the leases, since leasing may fail or find less work: call Charge with
// the leases that were made.
func (f *Fair) Divide(n int, queues []Queue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	root := &branch{node: &f.root, now: f.root.now}
	for i := range queues {
		queues[i].Given = 0
		if queues[i].Limit <= 0 {
			continue
		}
		b := root
		for _, p := range queues[i].Path {
			b = b.sub(p)
		}
		b.queue = &queues[i]
	}
	for n > 0 && root.lease() {
		n--
	}
}

// Charge charges each queue's Given leases to the parts of its path.
func (f *Fair) Charge(queues []Queue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	began := make(map[*node]int64) // each node's now before these leases
	for _, q := range queues {
		for range q.Given {
			n := &f.root
			for _, p := range q.Path {
				if _, seen := began[n]; !seen {
					began[n] = n.now
				}
				c := n.child(p.Name, began[n])
				start := max(began[n], c.end)
				c.end, n.now = start+cost(p), max(n.now, start)
				n = c
			}
		}
	}
}

// Room returns how many ready items may start if most is the bound on running items; 0
// means no bound.
func Room(most, running, ready int) int {
	if most == 0 {
		return ready
	}
	return max(min(ready, most-running), 0)
}

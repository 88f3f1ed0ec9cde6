package dispatch

import (
	"slices"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
)

// Tenant configures one tenant's share of the dispatchers.
type Tenant struct {
	// Weight is the tenant's share of the claims while others have due pushes
	// too: with weights 3 and 1, three claims in four. 1 by default.
	Weight int
	// MaxConcurrency bounds the tenant's pushes in picking and sent, over all
	// dispatchers on the store; 0 means no bound.
	MaxConcurrency int
}

// fair divides claims between tenants by start-time fair queueing (Goyal, Vin,
// Cheng 1996): each claim costs its tenant 1/weight of virtual time, and the
// tenant with the earliest start is next. A tenant that had nothing due starts
// now. So its push goes with the next claim, however long the other queues are,
// and unused time is not credited.
//
// Each dispatcher is fair by itself, and so all together are.
type fair struct {
	of func(tenant string) Tenant
	// bounded says that some tenant has a MaxConcurrency.
	bounded bool
	mu      sync.Mutex
	now     int64
	ends    map[string]int64
	after   string
}

// MaxWeight is the largest weight; beyond it a tenant would get nearly every
// claim.
const MaxWeight = 1000

// turn is the virtual time of one claim at weight 1.
const turn = 1 << 20

// walk bounds the tenants that one claim looks at; the next claim continues
// there.
const walk = 64

func newFair(c *Config) *fair {
	f := &fair{of: c.of, bounded: c.Default.MaxConcurrency > 0, ends: make(map[string]int64)}
	for _, t := range c.Tenants {
		f.bounded = f.bounded || t.MaxConcurrency > 0
	}
	return f
}

// from returns the tenant after which the next claim starts looking.
func (f *fair) from() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.after
}

// share distributes n claims over the tenants with due pushes. full lists the
// tenants that get none because they have reached their bound. share changes no
// state: the claim may fail, or find less.
func (f *fair) share(due []gatehouse.DueTenant, n int) (shares []gatehouse.PushShare, full []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	type queue struct {
		start, step int64
		left, share int
	}
	queues := make([]queue, 0, len(due))
	for _, d := range due {
		t := f.of(d.Tenant)
		left := d.Due
		if t.MaxConcurrency > 0 {
			left = min(left, t.MaxConcurrency-d.InFlight)
		}
		if left <= 0 {
			full = append(full, d.Tenant)
			continue
		}
		shares = append(shares, gatehouse.PushShare{Tenant: d.Tenant, Most: t.MaxConcurrency})
		queues = append(queues, queue{start: max(f.now, f.ends[d.Tenant]), step: f.step(d.Tenant), left: left, share: len(shares) - 1})
	}
	for ; n > 0 && len(queues) > 0; n-- {
		next := 0
		for i := range queues {
			if queues[i].start < queues[next].start {
				next = i
			}
		}
		q := &queues[next]
		shares[q.share].Limit++
		q.start += q.step
		if q.left--; q.left == 0 {
			queues = slices.Delete(queues, next, next+1)
		}
	}
	return slices.DeleteFunc(shares, func(s gatehouse.PushShare) bool { return s.Limit == 0 }), full
}

func (f *fair) step(tenant string) int64 { return turn / int64(max(f.of(tenant).Weight, 1)) }

// claimed charges the claimed pushes to their tenants.
func (f *fair) claimed(pushes []*gatehouse.Push) {
	f.mu.Lock()
	defer f.mu.Unlock()
	began := f.now
	for _, p := range pushes {
		start := max(began, f.ends[p.Tenant])
		f.ends[p.Tenant] = start + f.step(p.Tenant)
		f.now = max(f.now, start)
	}
	for tenant, end := range f.ends {
		if end <= f.now {
			delete(f.ends, tenant)
		}
	}
}

// looked records how far a look at the tenants got.
func (f *fair) looked(due []gatehouse.DueTenant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = ""
	if n := len(due); n >= walk {
		f.after = due[n-1].Tenant
	}
}

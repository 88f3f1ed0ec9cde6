package gate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
)

// The stored names of the endpoints of decisions.
const (
	endpointDecide  = "decide"
	endpointBulk    = "bulk-decide"
	endpointApprove = "approve"
	endpointReject  = "reject"
	endpointConsole = "console"
)

// decisionTally holds the counts that this process has not stored yet. A crash
// loses them, so [Gate.StoreDecisionCounts] is called every few seconds.
type decisionTally struct {
	mu     sync.Mutex
	counts map[decisionKey]int64
}

type decisionKey struct {
	tenant, endpoint string
	result           gatehouse.DecisionResult
}

func (t *decisionTally) add(k decisionKey, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[decisionKey]int64)
	}
	t.counts[k] += n
}

// take empties the tally and returns its counts.
func (t *decisionTally) take() map[decisionKey]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.counts
	t.counts = nil
	return taken
}

// countDecision counts one decision, or one request that failed as a whole. A cached caller
// that is not verified is not counted: the request is repeated after the key has been looked up.
func (g *Gate) countDecision(ctx context.Context, endpoint string, result gatehouse.DecisionResult) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return
	}
	if c.Session != nil {
		endpoint = endpointConsole
	}
	g.decisions.add(decisionKey{c.Principal.Tenant, endpoint, result}, 1)
}

func (g *Gate) countBulkAnswer(ctx context.Context, out *gatehouse.BulkAnswer, err error) {
	if err != nil {
		g.countDecision(ctx, endpointBulk, gatehouse.FailedResult(err))
		return
	}
	for i := range out.Results {
		g.countDecision(ctx, endpointBulk, out.Results[i].Outcome())
	}
}

// StoreDecisionCounts adds this process's counts to the shared counts of all
// replicas, on the current day of the store's clock: one upsert per counter, one
// transaction per tenant. Counts that cannot be stored are kept for the next call.
func (g *Gate) StoreDecisionCounts(ctx context.Context) error {
	taken := g.decisions.take()
	byTenant := make(map[string][]decisionKey)
	for k := range taken {
		byTenant[k.tenant] = append(byTenant[k.tenant], k)
	}
	var errs []error
	for tenant, keys := range byTenant {
		// All replicas use the same order, so that their locks cannot deadlock.
		slices.SortFunc(keys, func(a, b decisionKey) int {
			return cmp.Or(cmp.Compare(a.endpoint, b.endpoint), cmp.Compare(a.result, b.result))
		})
		err := g.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
			for _, k := range keys {
				if err := tx.AddDecisions(tx.Now(), k.endpoint, k.result, taken[k]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			errs = append(errs, err)
			for _, k := range keys {
				g.decisions.add(k, taken[k])
			}
		}
	}
	return errors.Join(errs...)
}

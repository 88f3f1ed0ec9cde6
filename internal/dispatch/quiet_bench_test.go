package dispatch

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// quietTarget does nothing except report calls for one tenant.
type quietTarget struct {
	tenant string
	called chan time.Time
}

func (quietTarget) Fingerprint() string { return "" }

func (quietTarget) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA}, name == "update"
}

func (q quietTarget) Execute(_ context.Context, c connector.Call) (connector.Result, error) {
	if c.Tenant == q.tenant {
		q.called <- time.Now()
	}
	return connector.Result{RequestMetadata: "{}", ResponseMetadata: "{}"}, nil
}

// fill queues n pushes of a tenant, many per transaction.
func (b *bench) fill(tenant string, n int) {
	b.t.Helper()
	if n > 0 {
		b.approve(of(tenant))
	}
	for done := 1; done < n; {
		b.update(func(tx gatehouse.Tx) error {
			now := tx.Now()
			for i := done; i < min(done+1000, n); i++ {
				id := fmt.Sprintf("fill-%07d", i)
				a := &gatehouse.Action{
					ID: "act_" + id, Revision: 1, Tenant: tenant, Status: gatehouse.StatusApproved,
					Proposal: gatehouse.Proposal{
						ActionType: "price_change", Connector: "shop", Operation: "update", IdempotencyKey: id, RiskLevel: gatehouse.L2,
						Target: gatehouse.Target{EntityType: "item", EntityRef: id}, ProposedChange: `{"price":"12.50"}`,
					},
					ProposedBy: "agent", ProposerID: "prn_agent", ProposedAt: now,
					DecidedBy: "policy", DecidedAt: &now, DecidedVia: gatehouse.ViaPolicy,
				}
				a.Digest = a.ComputeDigest()
				p := &gatehouse.Push{
					ID: "psh_" + id, Tenant: tenant, ActionID: a.ID, Connector: "shop", IdempotencyKey: id, Digest: a.Digest,
					Status: gatehouse.PushQueued, NotBefore: now, CreatedAt: now,
				}
				if err := tx.InsertAction(a); err != nil {
					return err
				}
				if err := tx.InsertPush(p); err != nil {
					return err
				}
			}
			return nil
		})
		done += 1000
	}
}

// BenchmarkQuietTenant measures the time from the commit of one tenant's push
// to its call while another tenant has a long queue and keeps all workers busy.
func BenchmarkQuietTenant(b *testing.B) {
	for _, queued := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("queued=%d", queued), func(b *testing.B) {
			target := quietTarget{"quiet", make(chan time.Time, 1)}
			s := newBench(b, target, "default", "noisy", "quiet")
			must(b, s.store.Close())
			s.open(nil)
			s.fill("noisy", queued)
			wake := make(chan struct{}, 1)
			config := DefaultConfig()
			run(b, s.dispatcher(config, func(d *Dependencies) { d.Wake = wake }))
			var took []time.Duration
			for b.Loop() {
				s.approve(of("quiet"))
				start := time.Now()
				select {
				case wake <- struct{}{}:
				default:
				}
				took = append(took, (<-target.called).Sub(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
		})
	}
}

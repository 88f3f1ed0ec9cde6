package gate_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// BenchmarkDecideBesideArchiver measures decisions of 16 clients, alternately alone
// and next to an overloaded archiver. It reports the second rate as a fraction of
// the first (the median of the turns), and likewise the p99.
//
//	go test -run '^$' -bench DecideBesideArchiver -benchtime 60000x ./internal/gate
func BenchmarkDecideBesideArchiver(b *testing.B) {
	const turns = 10
	c := gatetest.NewClock()
	c.Advance(time.Since(c.Now()) - 40*day)
	store := migratedfile.Open(b, filepath.Join(b.TempDir(), "gatehouse.db"), c.Now)
	hold := time.Hour
	g := gate.New(store, &targets{fingerprint: "f1"}, &wake.Hub{}, gate.Config{PolicySource: policy.DefaultSource(),
		Hold: &hold}, slog.New(slog.DiscardHandler))
	creds, err := g.Bootstrap(b.Context())
	must(b, err)
	admin, err := g.Authenticate(b.Context(), creds.Key)
	must(b, err)
	caller := func(p *gatehouse.Principal) context.Context {
		return gatehouse.NewContext(b.Context(), &gatehouse.Caller{Principal: p, StepUp: true, Via: gatehouse.ViaAPI})
	}
	made, err := g.CreatePrincipal(caller(admin), gatehouse.NewPrincipal{Name: "bot", Kind: gatehouse.KindAgent,
		Roles: []gatehouse.Role{gatehouse.RoleProposer}})
	must(b, err)
	bot, err := g.Authenticate(b.Context(), made.Key)
	must(b, err)
	first, _, err := g.Propose(caller(bot), proposal(nil))
	must(b, err)
	copies(b, store, first, b.N/2+10_000, true)
	c.Advance(40 * day)
	first, _, err = g.Propose(caller(bot), proposal(nil))
	must(b, err)
	list := copies(b, store, first, b.N, false)
	a, err := g.NewArchiver(gatehouse.MinRetention, nil)
	must(b, err)
	var archived int
	var rates, tails [2][]float64
	var busy time.Duration
	b.ResetTimer()
	for turn := range 2 * turns {
		part := list[turn*b.N/(2*turns) : (turn+1)*b.N/(2*turns)]
		if len(part) == 0 {
			continue
		}
		beside := turn % 2
		ctx, stop := context.WithCancel(b.Context())
		var work sync.WaitGroup
		if beside == 1 {
			work.Go(func() {
				for ctx.Err() == nil {
					n, more, err := a.Step(ctx)
					archived += n
					if (err != nil || !more) && ctx.Err() == nil {
						b.Errorf("the archiver ended: %v", err)
						return
					}
				}
			})
		}
		began := time.Now()
		took := decideAll(caller(admin), b, g, part)
		elapsed := time.Since(began)
		stop()
		work.Wait()
		if beside == 1 {
			busy += elapsed
		}
		rates[beside] = append(rates[beside], float64(len(part))/elapsed.Seconds())
		tails[beside] = append(tails[beside], took[len(took)*99/100].Seconds())
	}
	if len(rates[0]) < turns || len(rates[1]) < turns {
		return // the trial run has a single iteration
	}
	ratio := func(of [2][]float64) float64 {
		var ratios []float64
		for i := range of[1] {
			ratios = append(ratios, of[1][i]/of[0][i])
		}
		slices.Sort(ratios)
		return ratios[len(ratios)/2]
	}
	b.ReportMetric(ratio(rates), "rate-ratio")
	b.ReportMetric(ratio(tails), "p99-ratio")
	b.ReportMetric(float64(archived)/busy.Seconds(), "archived/s")
}

// decideAll rejects actions with 16 clients, and returns the sorted durations.
func decideAll(ctx context.Context, b *testing.B, g *gate.Gate, list []*gatehouse.Action) []time.Duration {
	b.Helper()
	took := make([]time.Duration, len(list))
	var next atomic.Int64
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= len(list) {
					return
				}
				began := time.Now()
				if _, err := g.Decide(ctx, list[i].ID, gatehouse.Decision{Decision: gatehouse.Reject,
					Digest: list[i].Digest}); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(began)
			}
		})
	}
	clients.Wait()
	slices.Sort(took)
	return took
}

// copies stores an action n more times, many per transaction, pending or rejected.
func copies(
	b *testing.B, store gatehouse.Store, of *gatehouse.Action, n int, rejected bool,
) (list []*gatehouse.Action) {
	b.Helper()
	for len(list) < n {
		batch := min(500, n-len(list))
		var made []*gatehouse.Action
		err := store.Update(b.Context(), of.Tenant, func(tx gatehouse.Tx) error {
			made = made[:0]
			for range batch {
				a, ap := *of, *of.Approval
				a.ID, ap.ID = gate.NewID("act"), gate.NewID("apr")
				a.IdempotencyKey, ap.ActionID, a.Approval = a.ID+":1", a.ID, &ap
				a.Digest = a.ComputeDigest()
				if err := tx.InsertAction(&a); err != nil {
					return err
				}
				made = append(made, &a)
				if !rejected {
					continue
				}
				if err := tx.MoveApproval(ap.ID, gatehouse.ApprovalRejected); err != nil {
					return err
				}
				err := tx.MoveAction(gatehouse.ActionMove{
					ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusRejected, DecidedBy: "ana",
					DecidedVia: gatehouse.ViaAPI, Decided: true, Finished: true,
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		must(b, err)
		list = append(list, made...)
	}
	return list
}

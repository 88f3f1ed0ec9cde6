package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// proposeClients is the number of clients that propose concurrently. proposeTarget is the minimum ratio to the first
// baseline, as in docs/proof/performance.md.
const proposeClients, proposeTarget = 64, 0.5

// propose measures proposals, beside bare inserts of the same rows.
func (r *runner) propose(ctx context.Context) error {
	return r.within(ctx, "propose", held(), 0, func(dbs databases, w *world) (err error) {
		if err := w.propose(ctx); err != nil {
			return err
		}
		b, err := dbs.proposals(ctx, w.template)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.close()) }()
		ways := b.ways()
		addrs := make([]string, len(ways))
		for i, way := range ways {
			server, err := serveBare(ctx, "POST /propose", bareJSON(func(_ *http.Request, in *bareProposal) (bareAnswer, error) {
				id := gate.NewID("act")
				return bareAnswer{id, "pending"}, way.write(id, in)
			}))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, server.close()) }()
			addrs[i] = server.addr
		}
		d := r.slice(1 + len(ways))
		drive := func(addr, path, headers string, status, from int) (*outcome, error) {
			return driveHTTP(ctx, addr, proposeClients, d, -1, status, func(b []byte, _, item int) []byte {
				return post(b, path, headers, proposalBody(from+item))
			})
		}
		rate, p50, p99, cpu := make([]values, len(ways)), make([]values, len(ways)), values{}, make([]values, len(ways))
		next := 1
		for round := range r.Rounds {
			r.say("propose, round %d of %d", round+1, r.Rounds)
			if err := w.settle(ctx); err != nil {
				return err
			}
			ours, err := r.profiled("propose", round, func() (*outcome, error) {
				return drive(w.Addr, "/api/v1/proposed-actions", w.agentLine, http.StatusCreated, next)
			})
			if err == nil {
				err = w.settle(ctx)
			}
			if err != nil {
				return err
			}
			next += ours.done + proposeClients
			for i, addr := range addrs {
				runtime.GC()
				bare, err := drive(addr, "/propose", "", http.StatusOK, next)
				if err != nil {
					return err
				}
				next += bare.done + proposeClients
				rate[i].add(ours.perSecond(), bare.perSecond())
				p50[i].add(ours.p50(), bare.p50())
				cpu[i].add(ours.cpuEach(), bare.cpuEach())
			}
			p99.add(ours.p99(), ours.p50())
		}
		line := func(name, unit, is string, target float64) Line {
			return Line{Figure: "propose", Name: name + ", 64 clients", Unit: unit, Baseline: is, Lower: unit == "ms",
				Target: target}
		}
		for i, way := range ways {
			target := 0.0
			if i == 0 {
				target = proposeTarget
			}
			r.report(line("proposals", "/s", way.is, target), rate[i])
			r.report(line("propose p50", "ms", way.is, 0), p50[i])
			r.reportCPU(line("CPU a proposal", "", way.is, 0), cpu[i])
		}
		r.report(line("propose p99", "ms", "its own p50", 0), p99)
		return nil
	})
}

func proposalBody(n int) []byte {
	b, err := json.Marshal(proposal(n))
	if err != nil {
		panic(err) // the value always marshals
	}
	return b
}

// bareProposal is the request of the bare endpoint: the values that it stores.
type bareProposal struct {
	ActionType string `json:"action_type"`
	Connector  string `json:"connector"`
	Operation  string `json:"operation"`
	Target     struct {
		EntityType string `json:"entity_type"`
		EntityRef  string `json:"entity_ref"`
		Version    string `json:"version"`
	} `json:"target"`
	CurrentState   json.RawMessage `json:"current_state"`
	ProposedChange json.RawMessage `json:"proposed_change"`
	Context        json.RawMessage `json:"context"`
	Rationale      string          `json:"rationale"`
	IdempotencyKey string          `json:"idempotency_key"`
}

// bareRequest returns the request to the bare endpoint with the values of a proposal.
func bareRequest(p *gatehouse.Proposal) *bareProposal {
	in := &bareProposal{
		ActionType: p.ActionType, Connector: p.Connector, Operation: p.Operation, Rationale: p.Rationale,
		IdempotencyKey: p.IdempotencyKey,
		CurrentState:   []byte(p.CurrentState), ProposedChange: []byte(p.ProposedChange), Context: []byte(p.Context),
	}
	in.Target.EntityType, in.Target.EntityRef, in.Target.Version = p.Target.EntityType, p.Target.EntityRef,
		p.Target.Version
	return in
}

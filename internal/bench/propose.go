package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// proposeClients is the number of clients that propose concurrently.
const proposeClients = 64

// propose measures proposals, beside bare inserts of the same rows.
func (r *runner) propose(ctx context.Context) (err error) {
	room, err := r.base.room(ctx, "propose")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, room.remove()) }()
	w, err := r.open(ctx, room.place(Setup{Targets: noopTargets(), Hold: time.Hour}), 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.propose(ctx); err != nil {
		return err
	}
	b, err := room.proposals(ctx, w.template)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	server, err := serveBare(ctx, "POST /propose", bareJSON(func(_ *http.Request, in *bareProposal) (bareAnswer, error) {
		id := gate.NewID("act")
		return bareAnswer{id, "pending"}, b.insert(id, in)
	}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	d := r.slice(2)
	var rate, p50, p99, cpu values
	next := 1
	for round := range r.Rounds {
		r.say("propose, round %d of %d", round+1, r.Rounds)
		if err := w.settle(ctx); err != nil {
			return err
		}
		from := next
		ours, err := r.profiled("propose", round, func() (*outcome, error) {
			return driveHTTP(ctx, w.Addr, proposeClients, d, -1, http.StatusCreated, func(b []byte, _, item int) []byte {
				return post(b, "/api/v1/proposed-actions", w.agentLine, proposalBody(from+item))
			})
		})
		if err != nil {
			return err
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
		runtime.GC()
		bare, err := driveHTTP(ctx, server.addr, proposeClients, d, -1, http.StatusOK, func(b []byte, _, item int) []byte {
			return post(b, "/propose", "", proposalBody(from+item))
		})
		if err != nil {
			return err
		}
		next += max(ours.done, bare.done) + proposeClients
		cpu.add(ours.cpuEach(), bare.cpuEach())
		rate.add(ours.perSecond(), bare.perSecond())
		p50.add(ours.p50(), bare.p50())
		p99.add(ours.p99(), bare.p99())
	}
	is := "bare HTTP endpoint and the same rows, " + r.base.how()
	r.report(Line{Figure: "propose", Name: "proposals, 64 clients", Unit: "/s", Baseline: is, Target: 0.5}, rate)
	r.report(Line{Figure: "propose", Name: "propose p50, 64 clients", Unit: "ms", Baseline: is, Lower: true}, p50)
	r.report(Line{Figure: "propose", Name: "propose p99, 64 clients", Unit: "ms", Baseline: is, Lower: true}, p99)
	r.reportCPU(Line{Figure: "propose", Name: "CPU a proposal, 64 clients", Baseline: is}, cpu)
	return nil
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

// barely is the bare endpoint's request for a proposal.
func barely(p *gatehouse.Proposal) *bareProposal {
	in := &bareProposal{
		ActionType: p.ActionType, Connector: p.Connector, Operation: p.Operation, Rationale: p.Rationale,
		IdempotencyKey: p.IdempotencyKey,
		CurrentState:   []byte(p.CurrentState), ProposedChange: []byte(p.ProposedChange), Context: []byte(p.Context),
	}
	in.Target.EntityType, in.Target.EntityRef, in.Target.Version = p.Target.EntityType, p.Target.EntityRef,
		p.Target.Version
	return in
}

package model

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// side is the real system on one engine: gate, dispatcher and target. Its
// methods are those of the model and return the same words.
type side struct {
	t      testing.TB
	name   string
	ground *ground
	tenant string
	store  gatehouse.Store
	gate   *gate.Gate
	worker *dispatch.Dispatcher
	teller *notify.Notifier
	board  *board
	target *ledger
	crash  dispatch.Point
	admin  context.Context
	other  context.Context // an administrator of another tenant
	ids    []string        // of the actions, by their place
	keys   []string        // their idempotency keys
	places map[string]int
	// persons are names by ids.
	persons map[string]string
}

// ground is one engine's store. Every sequence plays in a new tenant of it.
type ground struct {
	name  string
	store gatehouse.Store
	root  *gatehouse.Principal // of the default tenant
	place int64                // of the last action of earlier sequences, in the archiver's order
}

func newGround(t testing.TB, name string, open opener, now func() time.Time) *ground {
	t.Helper()
	g := &ground{name: name, store: open(t, now, 1)[0]}
	gt := gate.New(g.store, nil, &wake.Hub{}, gate.Config{PolicySource: []byte(source(false))},
		slog.New(slog.DiscardHandler))
	creds, err := gt.Bootstrap(context.Background())
	if err == nil {
		g.root, err = gt.Authenticate(context.Background(), creds.Key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// population lists the initial principals. ana has two identities, cy is the
// sponsor of bot.
func population() []*principal {
	person, approver, proposer := gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer
	return []*principal{
		{name: "admin", person: "admin", kind: person, roles: []gatehouse.Role{gatehouse.RoleAdmin}},
		{name: "ana", person: "ana", kind: person, roles: []gatehouse.Role{approver}},
		{name: "ana-too", person: "ana", kind: person, roles: []gatehouse.Role{approver}},
		{name: "ben", person: "ben", kind: person, roles: []gatehouse.Role{approver}},
		{name: "cy", person: "cy", kind: person, roles: []gatehouse.Role{approver}},
		{name: "eve", person: "eve", kind: person, roles: []gatehouse.Role{approver, proposer}},
		{name: "vic", person: "vic", kind: person, roles: []gatehouse.Role{gatehouse.RoleViewer}},
		{name: "bot", person: "bot", kind: gatehouse.KindAgent, roles: []gatehouse.Role{proposer}, sponsor: "cy"},
	}
}

func newSide(t testing.TB, g *ground, tenant string) *side {
	t.Helper()
	s := &side{t: t, name: g.name, ground: g, tenant: tenant, store: g.store, target: newLedger(),
		places: map[string]int{}, persons: map[string]string{}}
	targets, err := dispatch.NewRegistry(
		dispatch.Target{Name: "mute", Connector: s.target, Tenants: []string{tenant}},
		dispatch.Target{Name: "look", Connector: looking{s.target}, Tenants: []string{tenant}},
		dispatch.Target{Name: "tell", Connector: telling{looking{s.target}}, Tenants: []string{tenant}},
	)
	s.must(err)
	log := slog.New(slog.DiscardHandler)
	s.gate = gate.New(s.store, targets, &wake.Hub{}, gate.Config{PolicySource: []byte(source(false))}, log)
	s.worker, err = dispatch.New(dispatch.Dependencies{
		Store: s.store, Targets: targets, Authority: s.gate, Owner: "worker", Log: log,
		Random: func() float64 { return 0.5 },
		Failpoint: func(p dispatch.Point) {
			if p == s.crash {
				runtime.Goexit() // the worker dies here
			}
		},
	}, dispatch.Config{Retries: retries, Backoff: backoffs, Lease: lease, Workers: 1, MaxClaims: maxClaims})
	s.must(err)
	s.gate.SetDrainer(s.worker)
	s.board = &board{cards: map[string]string{}}
	s.teller = newTeller(s)
	s.other = s.caller(g.root, true, nil)
	_, err = s.gate.CreateTenant(s.other, tenant)
	s.must(err)
	for _, w := range population() {
		creds := s.create(w)
		if w.name == "admin" {
			p, err := s.gate.Authenticate(context.Background(), creds.Key)
			s.must(err)
			s.admin = s.caller(p, true, nil)
		}
	}
	return s
}

func (s *side) create(w *principal) *gatehouse.Credentials {
	n := gatehouse.NewPrincipal{Tenant: s.tenant, Name: w.name, Kind: w.kind, Roles: w.roles, Sponsor: w.sponsor}
	if w.person != w.name {
		n.Person = w.person
	}
	by := s.admin
	if by == nil {
		by = s.other // the first of the tenant
	}
	creds, err := s.gate.CreatePrincipal(by, n)
	s.must(err)
	return creds
}

func (s *side) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", s.name, err)
	}
}

func (s *side) caller(p *gatehouse.Principal, stepUp bool, key *gatehouse.IdempotencyRequest) context.Context {
	return gatehouse.NewContext(context.Background(),
		&gatehouse.Caller{Principal: p, StepUp: stepUp, Via: gatehouse.ViaAPI, Idempotency: key})
}

// as returns a context for a principal as it is stored now.
func (s *side) as(name string, stepUp bool, key *gatehouse.IdempotencyRequest) context.Context {
	p, err := s.gate.FindPrincipal(s.admin, name)
	s.must(err)
	return s.caller(p, stepUp, key)
}

// word is the code of a public error; any other error ends the test.
func (s *side) word(err error) string {
	var e *gatehouse.Error
	if !errors.As(err, &e) || e.Code == gatehouse.CodeInternal || e.Code == gatehouse.CodeBusy {
		s.t.Fatalf("%s: %v", s.name, err)
	}
	return string(e.Code)
}

func (s *side) proposal(p proposal) *gatehouse.Proposal {
	return &gatehouse.Proposal{
		ActionType: p.kind, Connector: p.connector, Operation: p.operation,
		Target:         gatehouse.Target{EntityType: "item", EntityRef: p.entity},
		ProposedChange: gatehouse.JSON(fmt.Sprintf(`{"amount":"%d"}`, p.amount)), OnBehalfOf: p.behalf,
		RiskLevel: gatehouse.RiskLevel(p.claimedRisk), ExpiresIn: gatehouse.Span(p.expiresIn), IdempotencyKey: p.key,
	}
}

// know gives a new action its place.
func (s *side) know(a *gatehouse.Action) string {
	s.places[a.ID] = len(s.ids)
	s.ids, s.keys = append(s.ids, a.ID), append(s.keys, a.IdempotencyKey)
	return fmt.Sprintf("proposed %s", a.Status)
}

func (s *side) propose(p proposal) string {
	a, replayed, err := s.gate.Propose(s.as(p.by, false, nil), s.proposal(p))
	switch {
	case err != nil:
		return s.word(err)
	case replayed:
		return fmt.Sprintf("replayed %s %s", s.place(a.ID), a.Status)
	}
	return s.know(a)
}

func (s *side) place(id string) string {
	if id == "" {
		return "-"
	}
	n, ok := s.places[id]
	if !ok {
		return "?" + id
	}
	return fmt.Sprint("#", n)
}

func (s *side) find(n int) *gatehouse.Action {
	a, err := s.gate.FindAction(s.admin, s.ids[n])
	s.must(err)
	return a
}

func (s *side) decide(n int, b ballot) string {
	a := s.find(n)
	d := gatehouse.Decision{Decision: b.kind(), AcknowledgeStale: b.ack}
	switch b.digest {
	case "right":
		d.Digest = a.Digest
	case "wrong":
		d.Digest = gatehouse.NewDigest(`{"another":1}`)
	}
	if a.Approval != nil && a.Approval.Confirm != nil && b.confirm {
		d.Confirm = a.Approval.Confirm.Value
	}
	id := a.ID
	if a.Approval != nil && b.approval {
		id = a.Approval.ID
	}
	var key *gatehouse.IdempotencyRequest
	if b.key != "" {
		key = &gatehouse.IdempotencyRequest{
			Key: b.key, Route: "decide", BodyHash: sha256.Sum256(fmt.Appendf(nil, "%d %+v", n, b)),
			Encode: func(v any) ([]byte, error) { return []byte(words(v)), nil },
		}
	}
	ctx := s.as(b.by, b.stepUp, key)
	var answer any
	var err error
	if b.short {
		answer, err = s.gate.Answer(ctx, id, d)
	} else {
		answer, err = s.gate.Decide(ctx, id, d)
	}
	var replay *gatehouse.Replay
	switch {
	case errors.As(err, &replay):
		return "replay of " + string(replay.Body)
	case err != nil:
		return s.word(err)
	}
	return words(answer)
}

// words describes the answer to a decision.
func words(v any) string {
	out, votes, required, replayed, by := "", 0, 0, false, ""
	switch a := v.(type) {
	case *gatehouse.Answer:
		out, votes, required, replayed = a.Code, a.Votes, a.Required, a.Replayed
	case *gatehouse.ShortAnswer:
		out, votes, required, replayed, by = a.Status, a.Votes, a.Required, a.Replayed, a.ApprovedBy+a.RejectedBy
	}
	if required > 0 {
		out += fmt.Sprintf(" %d/%d", votes, required)
	}
	if replayed {
		out += " replayed"
	}
	if by != "" {
		out += " by " + by
	}
	return out
}

// read reads an action by id, with its evidence, and in the lists. The result
// is one word when all of them agree.
func (s *side) read(n int, by string) string {
	ctx, id := s.as(by, false, nil), s.ids[n]
	_, found := s.gate.FindAction(ctx, id)
	_, evidence := s.gate.Evidence(ctx, id)
	_, waited := s.gate.WaitAction(ctx, id, 0, gatehouse.UntilDecided)
	var out []string
	for _, err := range []error{found, evidence, waited} {
		if err == nil {
			out = append(out, "seen")
		} else {
			out = append(out, s.word(err))
		}
	}
	listed := "not_found"
	for _, archived := range []bool{false, true} {
		page, err := s.gate.ListActions(ctx, gatehouse.ActionFilter{Archived: archived, Limit: gatehouse.MaxLimit})
		switch {
		case err != nil:
			listed = s.word(err)
		case slices.ContainsFunc(page.Items, func(a *gatehouse.Action) bool { return a.ID == id }):
			listed = "seen"
		}
	}
	return strings.Join(slices.Compact(append(out, listed)), " ")
}

func (s *side) cancel(n int, by string, stepUp bool) string {
	a, err := s.gate.Cancel(s.as(by, stepUp, nil), s.ids[n])
	if err != nil {
		return s.word(err)
	}
	return a.Code
}

func (s *side) revise(n int, p proposal) string {
	a, err := s.gate.Revise(s.as(p.by, false, nil), s.ids[n], s.proposal(p))
	if err != nil {
		return s.word(err)
	}
	return s.know(a)
}

func (s *side) reverse(n int, by string) string {
	a, err := s.gate.Reverse(s.as(by, false, nil), s.ids[n], gatehouse.ReverseRequest{})
	if err != nil {
		return s.word(err)
	}
	return s.know(a)
}

func (s *side) sweep() string {
	n, err := s.gate.SweepExpired(context.Background())
	s.must(err)
	return fmt.Sprintf("swept %d", n)
}

func (s *side) dispatch(f fault, crash dispatch.Point) string {
	s.target.mu.Lock()
	s.target.fault = f
	s.target.mu.Unlock()
	s.crash = crash
	defer func() { s.crash = "" }()
	items, err := s.worker.Drain(context.Background(), s.tenant, 1)
	s.must(err)
	if len(items) == 0 {
		return "nothing due"
	}
	return s.place(items[0].ActionID) + " " + items[0].Outcome
}

func (s *side) rescue() string {
	_, err := s.worker.Rescue(context.Background())
	s.must(err)
	return "rescued"
}

func (s *side) pushID(n int) string {
	if p := s.find(n).Push; p != nil {
		return p.ID
	}
	return "psh_none"
}

func (s *side) resolve(n int, ok bool) string {
	outcome := map[bool]string{true: "applied", false: "failed"}[ok]
	p, err := s.gate.ResolvePush(s.as("admin", true, nil), s.pushID(n),
		gatehouse.Resolution{Outcome: outcome, Reason: "looked"})
	if err != nil {
		return s.word(err)
	}
	return string(p.Status)
}

func (s *side) replay(n int) string {
	out, err := s.gate.ReplayDeadLetters(s.as("admin", true, nil), gatehouse.ReplayRequest{IDs: []string{s.pushID(n)}})
	if err != nil {
		return s.word(err)
	}
	return strings.TrimSpace(out.Results[0].Result + " " +
		strings.TrimSpace(map[bool]string{true: "", false: "skipped "}[out.Results[0].Skipped == ""]+out.Results[0].Skipped))
}

func (s *side) discard(n int) string {
	out, err := s.gate.DiscardDeadLetters(s.as("admin", true, nil), gatehouse.DiscardRequest{
		DeadLetterSelection: gatehouse.DeadLetterSelection{IDs: []string{s.pushID(n)}}, Reason: "over",
	})
	if err != nil {
		return s.word(err)
	}
	r := out.Results[0]
	if r.Skipped != "" {
		return "skipped " + r.Skipped
	}
	return r.Result
}

// tryAsOtherTenant tries everything on an action from another tenant.
func (s *side) tryAsOtherTenant(n int) string {
	a := s.find(n)
	_, found := s.gate.FindAction(s.other, a.ID)
	_, decided := s.gate.Decide(s.other, a.ID, gatehouse.Decision{Decision: gatehouse.Reject})
	_, canceled := s.gate.Cancel(s.other, a.ID)
	_, revised := s.gate.Revise(s.other, a.ID,
		s.proposal(proposal{kind: price, connector: "mute", operation: "a", entity: "x"}))
	_, reversed := s.gate.Reverse(s.other, a.ID, gatehouse.ReverseRequest{})
	_, resolved := s.gate.ResolvePush(s.other, s.pushID(n), gatehouse.Resolution{Outcome: "failed", Reason: "none"})
	page, err := s.gate.ListActions(s.other, gatehouse.ActionFilter{})
	s.must(err)
	var out []string
	for _, err := range []error{found, decided, canceled, revised, reversed, resolved} {
		out = append(out, s.word(err))
	}
	return fmt.Sprint(slices.Compact(out), len(page.Items))
}

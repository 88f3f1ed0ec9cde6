package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// noop is a connector that does nothing, returns at once, and can be repeated.
type noop struct{}

func (noop) Fingerprint() string {
	return "0000000000000000000000000000000000000000000000000000000000000000"
}

func (noop) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA, Floor: gatehouse.L1}, name == "update"
}

func (noop) Execute(_ context.Context, c connector.Call) (connector.Result, error) {
	return connector.Result{ExternalID: c.Target.EntityRef, RequestMetadata: "{}", ResponseMetadata: "{}"}, nil
}

func noopTargets() []dispatch.Target { return []dispatch.Target{{Name: "shop", Connector: noop{}}} }

// held returns the set-up of a gate that holds each approved action for an hour, so that none is dispatched during
// the measurement.
func held() Setup { return Setup{Targets: noopTargets(), Hold: time.Hour} }

// person is a decider, with the header lines of their credentials.
type person struct {
	id, name string
	headers  string
}

// world is a tenant of a served gate, and its users.
type world struct {
	*Gate
	tenant string
	// admin is the administrator's context.
	admin     context.Context
	agent     *gatehouse.Principal
	agentLine string
	people    []person
	// made is the number of the next proposal: it counts the template and the actions that next has made.
	made     int
	template *gatehouse.Action
	leaf     gatehouse.Leaf
	// expiry, when set, is the longest time from an action's proposal to its expiry; next distributes
	// the expiry times over the last 23 hours of it. end, when set, is the expiry time of each action.
	expiry time.Duration
	end    time.Time
}

// within serves a gate on new databases while fn measures.
func (r *runner) within(
	ctx context.Context, name string, s Setup, people int, fn func(databases, *world) error,
) (err error) {
	in, err := r.base.databases(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.remove()) }()
	w, err := r.open(ctx, in.place(s), people)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return fn(in, w)
}

// open serves a gate with an agent and this number of people as approvers, at least one, each with
// a key of their own.
func (r *runner) open(ctx context.Context, s Setup, people int) (*world, error) {
	g, err := r.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	w := &world{Gate: g, tenant: gatehouse.DefaultTenant}
	creds, err := w.App.Bootstrap(ctx)
	if err == nil {
		err = w.populate(ctx, creds.Key, people)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return w, nil
}

// addTenant makes another tenant of the gate.
func (w *world) addTenant(ctx context.Context, tenant string, people int) (*world, error) {
	if _, err := w.App.CreateTenant(w.admin, tenant); err != nil {
		return nil, err
	}
	creds, err := w.App.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
		Tenant: tenant, Name: "admin", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin},
	})
	if err != nil {
		return nil, err
	}
	other := &world{Gate: w.Gate, tenant: tenant}
	return other, other.populate(ctx, creds.Key, people)
}

// populate makes the users of a tenant, by its administrator's key.
func (w *world) populate(ctx context.Context, key string, people int) error {
	admin, err := w.App.Authenticate(ctx, key)
	if err != nil {
		return err
	}
	ctx = gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: admin, StepUp: true, Via: gatehouse.ViaAPI})
	w.admin = ctx
	agent, err := w.App.CreatePrincipal(ctx, gatehouse.NewPrincipal{
		Name: "agent", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer}, Sponsor: "admin",
	})
	if err != nil {
		return err
	}
	w.agentLine = "Authorization: Bearer " + agent.Key + "\r\n"
	if w.agent, err = w.App.Authenticate(ctx, agent.Key); err != nil {
		return err
	}
	for i := range max(people, 1) { // without an approver, every proposal is denied
		p, err := w.App.CreatePrincipal(ctx, gatehouse.NewPrincipal{
			Name: fmt.Sprintf("approver-%d", i), Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
		})
		if err != nil {
			return err
		}
		w.people = append(w.people, person{
			id: p.ID, name: fmt.Sprintf("approver-%d", i),
			headers: "Authorization: Bearer " + p.Key + "\r\nX-Edit-Token: " + p.EditToken + "\r\n",
		})
	}
	return nil
}

// proposal is the agent's proposal, which differs only by its number.
func proposal(n int) *gatehouse.Proposal {
	return &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:         gatehouse.Target{EntityType: "item", EntityRef: fmt.Sprintf("SKU-%09d", n), Version: "7"},
		CurrentState:   `{"currency":"EUR","price":"10.00","title":"Walnut desk, 140 by 70 cm"}`,
		ProposedChange: `{"currency":"EUR","price":"12.50"}`,
		Rationale:      "Supplier raised the cost by 18 percent; the margin falls below the floor of the category.",
		RiskLevel:      gatehouse.L3,
		Context:        `{"source":"nightly repricing","supplier":"S-1042"}`,
		IdempotencyKey: fmt.Sprintf("bench-%09d", n),
	}
}

// pending is the id and digest of an action that waits for its decision.
type pending struct {
	id     string
	digest gatehouse.Digest
}

// fillBatch is the number of actions stored in one transaction of the set-up.
const fillBatch = 500

// fill stores n pending actions: the same rows that the gate stores, copied from a real proposal.
func (w *world) fill(ctx context.Context, n int) ([]pending, error) {
	if w.template == nil {
		if err := w.propose(ctx); err != nil {
			return nil, err
		}
	}
	list := make([]pending, 0, n)
	for len(list) < n {
		batch := make([]*gatehouse.Action, 0, fillBatch)
		for range min(fillBatch, n-len(list)) {
			batch = append(batch, w.next())
		}
		err := w.Store.Update(ctx, w.tenant, func(tx gatehouse.Tx) error {
			for _, a := range batch {
				if err := w.insert(tx, a); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, a := range batch {
			list = append(list, pending{a.ID, a.Digest})
		}
	}
	return list, nil
}

// propose proposes one action and keeps the stored rows as the template.
func (w *world) propose(ctx context.Context) error {
	ctx = gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: w.agent, Via: gatehouse.ViaAPI})
	a, _, err := w.App.Propose(ctx, proposal(0))
	if err != nil {
		return err
	}
	if a.Status != gatehouse.StatusPending {
		return fmt.Errorf("the action is %s, not pending", a.Status)
	}
	w.template, w.made = a, 1
	if err := w.sequence(ctx); err != nil { // an idle gate numbers no entries
		return err
	}
	var body gatehouse.JSON
	err = w.await(ctx, func(q gatehouse.ReadQueues) (found bool, err error) {
		entries, err := q.In(a.Tenant).ListActionEntries(a.ID) // has the entry after it was numbered
		if err == nil && len(entries) > 0 {
			body = entries[0].Body
		}
		return body != "", err
	})
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(body), &w.leaf)
}

// next makes the next action from the template.
func (w *world) next() *gatehouse.Action {
	a, ap := *w.template, *w.template.Approval
	a.Proposal = *proposal(w.made)
	if w.expiry > 0 {
		// The stride distributes the expiry times over the 23 hours before w.expiry, out of order.
		ap.ExpiresAt = a.ProposedAt.Add(w.expiry - time.Duration(w.made*37%1380)*time.Minute)
	}
	w.made++
	a.ID, ap.ID = gate.NewID("act"), gate.NewID("apr")
	ap.ActionID = a.ID
	a.Approval = &ap
	a.Digest, a.ContentHash = a.ComputeDigest(), a.Proposal.ContentHash()
	return &a
}

func (w *world) insert(tx gatehouse.Tx, a *gatehouse.Action) error {
	now, lasts := tx.Now(), a.Approval.ExpiresAt.Sub(a.ProposedAt)
	a.ProposedAt, a.Approval.CreatedAt = now, now
	a.Approval.ExpiresAt = now.Add(lasts)
	if !w.end.IsZero() {
		a.Approval.ExpiresAt = w.end
	}
	if err := tx.InsertAction(a); err != nil {
		return err
	}
	l := w.leaf
	l.ID, l.At, l.Subject, l.ActionID, l.Digest = "", now, a.ID, a.ID, a.Digest
	return tx.AppendLeaf(&l)
}

// settle waits until the background has nothing left to do for the log.
func (w *world) settle(ctx context.Context) error {
	return w.await(ctx, func(q gatehouse.ReadQueues) (done bool, err error) {
		list, err := q.UnnumberedLeaves(1)
		return len(list) == 0, err
	})
}

// settleIndex does what settle does, and waits until the server's search index is complete.
func (w *world) settleIndex(ctx context.Context) error {
	if err := w.settle(ctx); err != nil {
		return err
	}
	return w.await(ctx, func(q gatehouse.ReadQueues) (done bool, err error) {
		block, err := q.NextSearchBlock()
		return block == nil, err
	})
}

func (w *world) await(ctx context.Context, check func(gatehouse.ReadQueues) (done bool, err error)) error {
	for {
		done := false
		err := w.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
			done, err = check(q)
			return err
		})
		if err != nil || done {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

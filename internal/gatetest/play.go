package gatetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// play leaves at least one action in every status.
func (w *World) play(tenant string) {
	w.t.Helper()
	w.people(tenant)
	decided := func(item, kind string) *gatehouse.Action {
		a := w.Propose(item, kind, 1)
		w.Decide(a, "ana", gatehouse.Approve)
		return w.Find(a)
	}
	// Allowed, denied, rejected (once after a hold), canceled, superseded, expired.
	w.Propose("allowed", "note", 1)
	w.Propose("denied", "forbidden", 1)
	w.Decide(w.Propose("rejected", "price_change", 1), "ben", gatehouse.Reject)
	held := w.Propose("rejected after a hold", "price_change", 1)
	_, err := w.Gate.Decide(w.As("ben"), held.ID, gatehouse.Decision{
		Decision: gatehouse.Reject, Digest: held.Digest, Notes: "no", Hold: true,
	})
	w.must(err)
	_, err = w.Gate.Cancel(w.As("bot"), w.Propose("canceled", "price_change", 1).ID)
	w.must(err)
	_, err = w.Gate.Revise(w.As("bot"), w.Propose("old", "price_change", 1).ID, w.proposal("revised", "price_change", 2))
	w.must(err)
	expiring := w.proposal("expired", "price_change", 1)
	expiring.ExpiresIn = gatehouse.Span(10 * time.Minute)
	_, _, err = w.Gate.Propose(w.caller(w.principal("bot"), w.request("k1")), expiring)
	w.must(err)
	w.Clock.Advance(11 * time.Minute)
	_, err = w.Gate.Sweep(context.Background())
	w.must(err)
	// Applied, by one and by two people, under a ceiling, and reversed.
	pair := w.Propose("pair", "pair", 1)
	w.Decide(pair, "ana", gatehouse.Approve)
	w.Clock.Advance(time.Second)
	w.Decide(pair, "ben", gatehouse.Approve)
	w.Decide(w.Propose("spent", "spend", 4), "ana", gatehouse.Approve)
	applied := decided("applied", "price_change")
	w.Answer("late", connector.Transient)
	w.Answer("dead", connector.Terminal)
	w.Answer("discarded", connector.Terminal)
	w.Answer("replayed", connector.Terminal)
	w.Answer("once lost", connector.Ambiguous)
	w.Answer("once resolved", connector.Ambiguous)
	decided("dead", "spend")
	discarded := decided("discarded", "price_change")
	replayed := decided("replayed", "price_change")
	decided("once lost", "spend")
	resolved := decided("once resolved", "price_change")
	w.Clock.Advance(time.Minute)
	w.Drain(tenant)
	reversal, err := w.Gate.Reverse(w.As("bot"), applied.ID, gatehouse.ReverseRequest{Rationale: "wrong"})
	w.must(err)
	w.Decide(reversal, "ben", gatehouse.Approve)
	w.Clock.Advance(time.Minute)
	_, err = w.Gate.ReplayDeadLetters(w.Admin(), gatehouse.ReplayRequest{IDs: []string{w.Find(replayed).Push.ID}})
	w.must(err)
	_, err = w.Gate.DiscardDeadLetters(w.Admin(), gatehouse.DiscardRequest{
		DeadLetterSelection: gatehouse.DeadLetterSelection{IDs: []string{w.Find(discarded).Push.ID}},
		Reason:              "not needed any more",
	})
	w.must(err)
	_, err = w.Gate.ResolvePush(w.Admin(), w.Find(resolved).Push.ID,
		gatehouse.Resolution{Outcome: "applied", Reason: "looked"})
	w.must(err)
	w.Drain(tenant)
	w.die(tenant, dispatch.PointCalled, "rescued", decided)
	w.Clock.Advance(2 * time.Minute)
	_, err = w.Worker.Rescue(context.Background())
	w.must(err)
	// Still in progress: to be retried, queued, picked, being sent, waiting.
	w.die(tenant, dispatch.PointClaimed, "picked", decided)
	w.die(tenant, dispatch.PointSent, "sent", decided)
	decided("late", "price_change")
	w.Clock.Advance(30 * time.Second)
	w.Drain(tenant)
	w.Decide(w.Propose("one of two", "pair", 1), "ben", gatehouse.Approve)
	w.talk(w.Propose("pending", "spend", 2))
	dropped := w.Propose("talked about", "price_change", 1)
	w.talk(dropped)
	_, err = w.Gate.Cancel(w.As("bot"), dropped.ID)
	w.must(err)
	canceled := decided("held", "price_change")
	_, err = w.Gate.Cancel(w.As("ana"), canceled.ID)
	w.must(err)
	decided("queued", "price_change")
}

// Work proposes, decides and carries out n changes, one after the other, while the log grows.
func (w *World) Work(n int) {
	w.t.Helper()
	for i := range n {
		a := w.Propose("busy", []string{"price_change", "note", "pair"}[i%3], 1)
		if a.Approval != nil {
			w.Decide(a, "ana", gatehouse.Approve)
		}
		if i%3 == 2 {
			w.Decide(a, "ben", gatehouse.Approve)
		}
		w.Clock.Advance(20 * time.Second)
		w.Drain(gatehouse.DefaultTenant)
		w.Number()
	}
}

// die lets the worker die at a point, on one action.
func (w *World) die(tenant string, at dispatch.Point, item string, decided func(item, kind string) *gatehouse.Action) {
	w.t.Helper()
	decided(item, "price_change")
	w.Clock.Advance(time.Minute)
	w.crash = at
	w.Drain(tenant)
	w.crash = ""
}

func (w *World) principal(name string) *gatehouse.Principal {
	w.t.Helper()
	p, err := w.Gate.FindPrincipal(w.Admin(), name)
	w.must(err)
	return p
}

// people creates the participants, and leaves a revoked key, a group, and a policy that is no
// longer active.
func (w *World) people(tenant string) {
	w.t.Helper()
	for _, n := range []gatehouse.NewPrincipal{
		{Name: "ana", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover}},
		{Name: "ben", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover}},
		{Name: "cy", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleViewer}},
		{Name: "bot", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer}, Sponsor: "cy"},
	} {
		n.Tenant = tenant
		_, err := w.Gate.CreatePrincipal(w.Admin(), n)
		w.must(err)
	}
	_, err := w.Gate.CreateKey(w.Admin(), "ben")
	w.must(err)
	keys, err := w.Gate.ListKeys(w.Admin(), "ben")
	w.must(err)
	w.must(w.Gate.RevokeKey(w.Admin(), keys[0].ID))
	if tenant == gatehouse.DefaultTenant {
		_, err = w.Gate.PutGroup(w.Admin(), "finance", gatehouse.GroupMembers{Members: []string{"ben"}})
		w.must(err)
	}
	disabled := true
	_, err = w.Gate.UpdatePrincipal(w.Admin(), "cy", gatehouse.PrincipalChange{Disabled: &disabled})
	w.must(err)
	_, err = w.Gate.ApplyPolicy(w.Admin(), policySource+"# again\n")
	w.must(err)
}

// browse stores a session and all kinds of credentials for sign-in, for ana. The bytes are not valid
// credentials; they are hostile values that a store must accept.
func (w *World) browse() {
	w.t.Helper()
	ana, a := w.principal("ana"), w.Propose("stepped up", "price_change", 1)
	at := w.Clock.Now()
	hash := func(s string) [32]byte { return sha256.Sum256([]byte(s)) }
	w.must(w.Store.Update(context.Background(), ana.Tenant, func(tx gatehouse.Tx) error {
		session := &gatehouse.Session{
			ID: "ses_1", Tenant: ana.Tenant, PrincipalID: ana.ID, Method: gatehouse.SignInPasskey, Credential: "pky_1",
			UserAgent: "\u202e<script>", CreatedAt: at, LastSeenAt: at, ExpiresAt: at.Add(gatehouse.SessionIdle),
		}
		return errors.Join(
			tx.InsertSession(session, hash("session")),
			tx.InsertSetupLink(&gatehouse.SetupLink{
				ID: "lnk_1", Tenant: ana.Tenant, PrincipalID: ana.ID, Hash: hash("link"), CreatedAt: at,
				ExpiresAt: at.Add(time.Hour),
			}),
			tx.InsertIdentity(&gatehouse.ExternalIdentity{
				Tenant: ana.Tenant, Issuer: "https://id.example.com", Subject: "s\u00e9", PrincipalID: ana.ID, CreatedAt: at,
			}),
			tx.InsertPasskey(&gatehouse.Passkey{
				ID: "pky_1", Tenant: ana.Tenant, PrincipalID: ana.ID, Name: "phone", CredentialID: []byte{0, 255, 1},
				Credential: []byte{},
				SignCount:  7, CreatedAt: at,
			}),
			tx.InsertCeremony(
				&gatehouse.Ceremony{Hash: hash("ceremony"), Tenant: ana.Tenant, Data: []byte("{}"), ExpiresAt: at.Add(time.Hour)}),
			tx.InsertStepUp(&gatehouse.StepUp{
				ID: "stp_1", Tenant: ana.Tenant, SessionID: session.ID, ActionID: a.ID, Digest: a.Digest,
				Method: gatehouse.StepUpPasskey, At: at,
			}),
			// As the gate logs them: ActionID is the action, and Subject is another object.
			tx.AppendLeaf(&gatehouse.Leaf{
				Tenant: ana.Tenant, Type: "step_up.given", Subject: "stp_1", ActionID: a.ID, Actor: ana.ID,
				Digest: a.Digest,
			}),
			tx.AppendLeaf(&gatehouse.Leaf{
				Tenant: ana.Tenant, Type: "review.created", Subject: "rev_1", ActionID: a.ID, Actor: "init",
				Digest: a.Digest,
			}),
		)
	}))
}

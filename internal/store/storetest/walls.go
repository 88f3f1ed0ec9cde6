package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Walls runs the tests that access one tenant, "default", as another, "acme".
// An engine that separates tenants in several ways runs them once for each way.
func Walls(t *testing.T, open func(t *testing.T) gatehouse.Store) {
	for name, test := range map[string]func(*suite){
		"TenantWalls": (*suite).tenantWalls, "SessionWalls": (*suite).sessionWalls, "RunWalls": (*suite).runWalls,
		"ArchiveWalls": (*suite).archiveWalls, "ConversationWalls": (*suite).conversationWalls,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newSuite(t, open(t)))
		})
	}
}

// tenantWalls fills one tenant, then reads and writes its rows as another
// tenant.
func (s *suite) tenantWalls() {
	const other = "acme"
	s.as(other).update(
		func(tx gatehouse.Tx) error { return tx.InsertTenant(&gatehouse.Tenant{ID: other, CreatedAt: tx.Now()}) })
	a, p := s.queued()
	ana := s.insertPrincipal()
	open := s.pending()
	s.inLane(tenant, "erp")
	s.inLane(tenant, "crm")
	s.claimLane(tenant, 1, "crm")
	s.leaf(tenant, a.ID)
	waiting := s.waiting(10)
	now := s.now()
	s.update(func(tx gatehouse.Tx) error {
		list, hashes, err := numbered(tx, 0, waiting)
		return errors.Join(
			err,
			tx.NumberLeaves(0, list, hashes),
			tx.InsertKey(&gatehouse.Key{ID: "key_1", Tenant: tenant, PrincipalID: ana.ID, Hash: [32]byte{1}, CreatedAt: now}),
			tx.PutEditToken(ana.ID, [32]byte{2}),
			tx.InsertReceipt(&gatehouse.Receipt{
				ID: "rcp_1", Tenant: tenant, ActionID: a.ID, PushID: p.ID, IdempotencyKey: p.IdempotencyKey,
				Outcome: gatehouse.ReceiptApplied, Source: "call", At: now,
			}),
			tx.InsertMirror(
				&gatehouse.AppliedMirror{Tenant: tenant, ActionID: a.ID, ReceiptID: "rcp_1", After: `{}`, AppliedAt: now}),
			reserve(tx, a.ID, claim("5")),
			tx.AddDecisions(now, "decide", gatehouse.ResultWon, 1),
			tx.InsertIdempotency(
				&gatehouse.IdempotencyRecord{Tenant: tenant, PrincipalID: ana.ID, Route: "r", Key: "k", CreatedAt: now}),
		)
	})
	s.update(func(tx gatehouse.Tx) error {
		_, err := tx.InsertPolicy(&gatehouse.PolicyVersion{Tenant: tenant, Source: "x", AppliedAt: now})
		return err
	})
	before := s.find(a.ID)
	seen := func(tenant string) map[string]bool { return s.look(tenant, a, p, ana) }
	for what, there := range seen(tenant) {
		if !there {
			s.Errorf("%s does not show the tenant its own row: the test proves nothing", what)
		}
	}
	for what, there := range seen(other) {
		if there {
			s.Errorf("%s shows another tenant's row", what)
		}
	}
	for what, write := range map[string]func(tx gatehouse.Tx) error{
		"MoveAction": func(tx gatehouse.Tx) error {
			return tx.MoveAction(
				gatehouse.ActionMove{ID: open.ID, From: gatehouse.StatusPending, To: gatehouse.StatusRejected, Decided: true})
		},
		"MoveApproval": func(tx gatehouse.Tx) error {
			return tx.MoveApproval(open.Approval.ID, gatehouse.ApprovalApproved)
		},
		"PutVote": func(tx gatehouse.Tx) error {
			return tx.PutVote(open.Approval.ID, vote("x", gatehouse.Approve, now))
		},
		"LinkSuperseded": func(tx gatehouse.Tx) error { return tx.LinkSuperseded(open.ID, a.ID) },
		"InsertPush": func(tx gatehouse.Tx) error {
			q := push(a, now)
			q.Tenant, q.ID = other, "psh_x"
			return tx.InsertPush(q)
		},
		"UpdatePush": func(tx gatehouse.Tx) error {
			q := *p
			q.Tenant, q.Status = other, gatehouse.PushCanceled
			return tx.UpdatePush(&q, gatehouse.PushQueued, 0)
		},
		"InsertReceipt": func(tx gatehouse.Tx) error {
			return tx.InsertReceipt(
				&gatehouse.Receipt{ID: "rcp_2", Tenant: other, ActionID: a.ID, PushID: p.ID, Outcome: gatehouse.ReceiptApplied,
					Source: "call", At: now})
		},
		"InsertMirror": func(tx gatehouse.Tx) error {
			return tx.InsertMirror(&gatehouse.AppliedMirror{Tenant: other, ActionID: a.ID, AppliedAt: now})
		},
		"ReserveCeilings": func(tx gatehouse.Tx) error { return reserve(tx, a.ID, claim("1")) },
		"RevokeKey":       func(tx gatehouse.Tx) error { return tx.RevokeKey("key_1") },
		"InsertKey": func(tx gatehouse.Tx) error {
			return tx.InsertKey(
				&gatehouse.Key{ID: "key_2", Tenant: other, PrincipalID: ana.ID, Hash: [32]byte{9}, CreatedAt: now})
		},
		"PutEditToken": func(tx gatehouse.Tx) error { return tx.PutEditToken(ana.ID, [32]byte{9}) },
		"UpdatePrincipal": func(tx gatehouse.Tx) error {
			q := *ana
			q.Tenant, q.Disabled = other, true
			return tx.UpdatePrincipal(&q)
		},
		"ActivatePolicy": func(tx gatehouse.Tx) error { return tx.ActivatePolicy(1) },
		"InsertAction that supersedes": func(tx gatehouse.Tx) error {
			return tx.InsertAction(s.action(now, func(b *gatehouse.Action) { b.Tenant, b.Supersedes = other, a.ID }))
		},
		"InsertAction that reverses": func(tx gatehouse.Tx) error {
			return tx.InsertAction(s.action(now, func(b *gatehouse.Action) { b.Tenant, b.Reverses = other, a.ID }))
		},
	} {
		err := s.store.Update(s.Context(), other, write)
		if !errors.Is(err, gatehouse.ErrNotFound) && !errors.Is(err, gatehouse.ErrConflict) {
			s.Errorf("%s on another tenant's row: error %v", what, err)
		}
	}
	s.as(other).update(func(tx gatehouse.Tx) error { return tx.ReleaseCeilings(a.ID) })
	if got := s.used(-time.Hour); got.Cmp("5") != 0 {
		s.Errorf("another tenant released a claim: used %s", got)
	}
	s.same("after it all", s.find(a.ID), before)
	// The other tenant can use the same keys and names.
	s.as(other).update(func(tx gatehouse.Tx) error {
		q := *ana
		q.Tenant = other
		b := *open
		b.Tenant = other
		return errors.Join(tx.InsertPrincipal(&q), tx.InsertAction(&b))
	})
}

// look calls methods that read one tenant's rows, and reports which of them returned something.
func (s *suite) look(tenant string, a *gatehouse.Action, p *gatehouse.Push, ana *gatehouse.Principal) map[string]bool {
	seen := make(map[string]bool)
	s.as(tenant).update(func(tx gatehouse.Tx) error {
		clear(seen)
		found := func(what string, err error) {
			seen[what] = err == nil
			if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
				s.Errorf("%s: %v", what, err)
			}
		}
		some := func(what string, n int, err error) {
			found(what, err)
			seen[what] = n > 0
		}
		_, err := tx.FindAction(a.ID)
		found("FindAction", err)
		_, err = tx.FindAction(a.Approval.ID)
		found("FindAction by approval", err)
		_, err = tx.LockAction(a.ID)
		found("LockAction", err)
		_, err = tx.FindActionByKey(a.IdempotencyKey)
		found("FindActionByKey", err)
		for name, f := range map[string]gatehouse.ActionFilter{
			"": {}, " by status": {Status: gatehouse.StatusPending}, " by urgency": {Sort: gatehouse.SortUrgency},
			" by id":   {Query: a.ID},
			" by text": {Query: a.Target.EntityRef}, " by type": {ActionType: a.ActionType},
			" by proposer": {ProposedBy: a.ProposerID},
		} {
			page, err := tx.ListActions(f)
			some("ListActions"+name, len(page.Items), err)
		}
		_, err = tx.FindPush(p.ID)
		found("FindPush", err)
		_, err = tx.LockPush(p.ID)
		found("LockPush", err)
		counts, err := tx.DecisionCounts(time.Time{})
		some("DecisionCounts", len(counts), err)
		pushes, err := tx.ListPushes(gatehouse.PushFilter{})
		some("ListPushes", len(pushes.Items), err)
		pushes, err = tx.ListPushes(gatehouse.PushFilter{Status: gatehouse.PushQueued})
		some("ListPushes by status", len(pushes.Items), err)
		lanes, err := tx.WaitingLanes(9)
		found("WaitingLanes", err)
		seen["WaitingLanes"] = len(lanes) > 0
		since, _, err := tx.DueInLane("erp")
		found("DueInLane", err)
		seen["DueInLane"] = !since.IsZero()
		_, leased, err := tx.DueInLane("crm")
		found("DueInLane of a leased push", err)
		seen["DueInLane of a leased push"] = leased
		_, err = tx.SuccessReceipt(p.IdempotencyKey)
		found("SuccessReceipt", err)
		receipts, err := tx.ListReceipts(a.ID)
		some("ListReceipts", len(receipts), err)
		mirror, err := tx.ListMirror("", "", 0)
		some("ListMirror", len(mirror.Items), err)
		corpus, err := tx.ListCorpus("", "", 0)
		some("ListCorpus", len(corpus.Items), err)
		_, err = tx.FindPrincipal(ana.ID)
		found("FindPrincipal", err)
		_, err = tx.FindPrincipal(ana.Name)
		found("FindPrincipal by name", err)
		_, err = tx.FindEditToken(ana.ID)
		found("FindEditToken", err)
		principals, err := tx.ListPrincipals("", 0)
		some("ListPrincipals", len(principals.Items), err)
		shared, err := tx.LockPrincipals([]string{ana.ID})
		some("LockPrincipals", len(shared), err)
		keys, err := tx.ListKeys(ana.ID)
		some("ListKeys", len(keys), err)
		_, err = tx.FindKeyByID("key_1")
		found("FindKeyByID", err)
		of := callerOf(&gatehouse.IdempotencyRecord{PrincipalID: ana.ID, Route: "r", Key: "k"})
		of.Cached = &gatehouse.CachedCredential{Key: [32]byte{1}}
		known, err := tx.OpenCaller(of)
		found("OpenCaller's key", err)
		seen["OpenCaller's key"], seen["OpenCaller's answer"] = known.Principal != nil, known.Answer != nil
		decision, err := tx.OpenDecision(gatehouse.DecisionQuery{By: of, ActionID: a.ID, Approve: true})
		found("OpenDecision", err)
		seen["OpenDecision"] = decision.Action != nil
		proposal, err := tx.OpenProposal(gatehouse.ProposalQuery{
			Key: a.IdempotencyKey, Effect: a.EffectHash(), Names: []string{ana.Name}, Asked: new(gatehouse.Audience),
		})
		found("OpenProposal", err)
		seen["OpenProposal"] = proposal.Same != nil || proposal.PolicyVersion != 0 || proposal.Named[ana.Name] != nil ||
			len(proposal.Answerers) > 0
		_, err = tx.OpenPush(gatehouse.PushQuery{ActionID: a.ID, PushID: p.ID, Rights: true,
			ReceiptKey: p.IdempotencyKey})
		found("OpenPush", err)
		_, err = tx.ActivePolicy()
		found("ActivePolicy", err)
		version, err := tx.ActivePolicyVersion()
		some("ActivePolicyVersion", version, err)
		_, err = tx.FindPolicy(1)
		found("FindPolicy", err)
		policies, err := tx.ListPolicies()
		some("ListPolicies", len(policies), err)
		entries, err := tx.ListEntries(0, 10)
		some("ListEntries", len(entries), err)
		entries, err = tx.ListActionEntries(a.ID)
		some("ListActionEntries", len(entries), err)
		size, err := tx.LogSize()
		some("LogSize", int(size), err)
		_, err = tx.LogHashes([]int64{0})
		found("LogHashes", err)
		used, err := lockDaily(tx, tx.Now().Add(-time.Hour))
		some("LockCeilings", used.Cmp("0"), err)
		uses, err := tx.ListCeilingUse("daily", "", tx.Now().Add(-time.Hour), 10)
		some("ListCeilingUse", len(uses), err)
		sums, err := tx.CeilingUses([]gatehouse.CeilingSpan{{Ceiling: "daily", Scope: "tenant",
			Since: tx.Now().Add(-time.Hour)}})
		some("CeilingUses", sums[0].Cmp("0"), err)
		return nil
	})
	return seen
}

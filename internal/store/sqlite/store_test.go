package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest"
)

// template is a file with the store's tables.
var template = sqlitetest.Template{Make: func(path string, clock func() time.Time) error {
	s, err := Open(context.Background(), Config{Path: path, Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return s.Close()
}}

func openTest(t testing.TB, config Config) *Store {
	t.Helper()
	if config.Path == "" {
		config.Path = template.File(t)
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func pendingAction(id string, at time.Time) *gatehouse.Action {
	return &gatehouse.Action{
		ID: "act_" + id, Revision: 1, Tenant: "default",
		Proposal: gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target:       gatehouse.Target{EntityType: "item", EntityRef: "SKU-" + id, Version: "7"},
			CurrentState: `{"price":"10.00"}`, ProposedChange: `{"price":"12.50"}`,
			Rationale: "supplier raised cost by 25 %", RiskLevel: 3, IdempotencyKey: "act_" + id + ":1",
			Magnitude: &gatehouse.Magnitude{Amount: "2.50", Currency: "USD"},
		},
		Status: gatehouse.StatusPending, Digest: gatehouse.NewDigest("x"), Fingerprint: "fp",
		Policy: gatehouse.PolicyOutcome{Outcome: gatehouse.OutcomeNeedsApproval, Rules: []string{"r1"},
			Reasons: []string{"L3 always needs a person"}, Version: 1},
		ProposedBy: "bot", ProposerID: "prn_bot", ProposedAt: at,
		Approval: &gatehouse.Approval{
			ID: "apr_" + id, ActionID: "act_" + id, Status: gatehouse.ApprovalRequested, Required: 1,
			Roles: []gatehouse.Role{gatehouse.RoleApprover}, Excluded: []string{"prn_bot"},
			ExpiresAt: at.Add(4 * time.Hour), CreatedAt: at, Votes: []gatehouse.Vote{},
		},
	}
}

func decide(tx gatehouse.Tx, id string) error {
	a, err := tx.LockAction("act_" + id)
	if err != nil {
		return err
	}
	now := tx.Now()
	if err := tx.PutVote(a.Approval.ID, gatehouse.Vote{
		Person: "prn_ana", PrincipalID: "prn_ana", Name: "ana", Decision: gatehouse.Approve, Via: gatehouse.ViaAPI,
		Digest: a.Digest, At: now,
	}); err != nil {
		return err
	}
	if err := tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalApproved); err != nil {
		return err
	}
	if err := tx.MoveAction(gatehouse.ActionMove{
		ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusApproved, DecidedBy: "ana", DecidedVia: gatehouse.ViaAPI,
		Decided: true,
	}); err != nil {
		return err
	}
	if err := tx.InsertPush(&gatehouse.Push{
		ID: "psh_" + id, Tenant: a.Tenant, ActionID: a.ID, Connector: a.Connector, IdempotencyKey: a.IdempotencyKey,
		Digest: a.Digest, Status: gatehouse.PushQueued, NotBefore: now, NextAttempt: &now, CreatedAt: now,
	}); err != nil {
		return err
	}
	for _, e := range []string{"hitl.approved", "push.queued"} {
		if err := tx.AppendLeaf(&gatehouse.Leaf{
			Tenant: a.Tenant, Type: e, Subject: a.ID, ActionID: a.ID, Actor: "prn_ana", From: "pending", To: "approved",
			Digest: a.Digest,
			Data:   `{"approval":"` + gatehouse.JSON(a.Approval.ID) + `","required":1,"via":"api","votes":1}`,
		}); err != nil {
			return err
		}
	}
	return nil
}

// TestViewWithoutSnapshot makes the BEGIN of a View fail. The View must not
// read anything afterwards, because the reads would not share one snapshot.
func TestViewWithoutSnapshot(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Readers: 1})
	c := <-s.readers
	if _, err := c.exec(`BEGIN`); err != nil { // makes the View's BEGIN fail
		t.Fatal(err)
	}
	s.readers <- c
	err := s.View(t.Context(), "default", func(tx gatehouse.ReadTx) error {
		if _, err := tx.FindTenant(); err == nil {
			t.Error("the View has begun: the test proves nothing")
		}
		_, err := tx.FindTenant()
		return err
	})
	if !errors.Is(err, errEnded) {
		t.Errorf("a read after the beginning has failed: %v", err)
	}
	if !tenants(t, s)["default"] {
		t.Error("the next View finds nothing")
	}
}

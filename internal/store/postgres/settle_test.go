package postgres

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
)

// written returns the rows of the tables that a decision writes, without random ids.
func written(t *testing.T, url string) (rows []string) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(context.Background(), `SELECT set_config($1, $2, false)`, TenantSetting, AllTenants); err != nil {
		t.Fatal(err)
	}
	randomID := regexp.MustCompile(`\\"id\\": ?\\"[^"]*\\"`)
	for _, table := range []string{"action", "approval", "vote", "push", "audit_leaf", "idempotency"} {
		list, err := c.Query(
			context.Background(),
			`SELECT $1 || ' ' || to_jsonb(x) FROM `+table+` x ORDER BY seq`,
			table,
		)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(list, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			rows = append(rows, randomID.ReplaceAllString(text, ""))
		}
	}
	return rows
}

// settle approves an action, with one write or with several, and stores an answer if asked to. between
// runs after the action is locked.
func settle(s *Store, oneWrite, answer bool, between func(tx *tx) error) error {
	return s.Update(context.Background(), "default", func(x gatehouse.Tx) error {
		a, err := x.LockAction("act_000000000")
		if err != nil {
			return err
		}
		if between != nil {
			if err := between(x.(*tx)); err != nil {
				return err
			}
		}
		now := x.Now()
		vote := gatehouse.Vote{
			Person: "prn_ana", PrincipalID: "prn_ana", Name: "ana", Decision: gatehouse.Approve, Via: gatehouse.ViaAPI,
			Digest: a.Digest, At: now,
		}
		push := &gatehouse.Push{
			ID: "psh_1", Tenant: a.Tenant, ActionID: a.ID, Connector: a.Connector, IdempotencyKey: a.IdempotencyKey,
			Digest: a.Digest, Status: gatehouse.PushQueued, NotBefore: now, NextAttempt: &now, CreatedAt: now,
		}
		leaf := &gatehouse.Leaf{
			Tenant: a.Tenant, Type: "hitl.approved", Subject: a.ID, ActionID: a.ID, Actor: "prn_ana",
		}
		if oneWrite {
			err = x.SettleDecision(&gatehouse.Settlement{
				ActionID: a.ID, ApprovalID: a.Approval.ID, Vote: vote, To: gatehouse.StatusApproved,
				Push: push, Leaf: leaf,
			})
		} else {
			err = errors.Join(
				x.PutVote(a.Approval.ID, vote),
				x.MoveApproval(a.Approval.ID, gatehouse.ApprovalApproved),
				x.MoveAction(gatehouse.ActionMove{
					ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusApproved,
					DecidedBy: "ana", DecidedVia: gatehouse.ViaAPI, Decided: true,
				}),
				x.InsertPush(push), x.AppendLeaf(leaf))
		}
		if answer && err == nil {
			err = x.InsertIdempotency(&gatehouse.IdempotencyRecord{
				Tenant: a.Tenant, PrincipalID: "prn_ana", Route: "POST", Key: "k", Body: []byte("{}"), CreatedAt: now,
			})
		}
		return err
	})
}

// TestSettleStatement: a decision in one statement stores the same rows as one in several statements. If
// one of its rows conflicts with a stored row, it stores none.
func TestSettleStatement(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	open := func(t *testing.T) (*Store, string, *tripCounter) {
		url, counter := database(t), &tripCounter{}
		s := openTest(t, Config{URL: url, Clock: func() time.Time { return at }, trip: counter.record})
		fill(t, s, 1)
		return s, url, counter
	}
	for name, answer := range map[string]bool{"without an answer": false, "with an answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stored [2][]string
			for i, oneWrite := range []bool{false, true} {
				s, url, counter := open(t)
				counter.count(t, "decision", func() {
					if err := settle(s, oneWrite, answer, nil); err != nil {
						t.Error(err)
					}
				})
				last := counter.trips[len(counter.trips)-1]
				if got := slices.Equal(last, []string{settleDecision.single, `commit`}); got != oneWrite {
					t.Errorf("the decision is sent as one statement: %v, want %v", got, oneWrite)
				}
				stored[i] = written(t, url)
			}
			if diff := cmp.Diff(stored[0], stored[1]); diff != "" || len(stored[0]) < 5 {
				t.Errorf("%d rows; several statements and one statement store different rows:\n%s", len(stored[0]), diff)
			}
		})
	}
	write := func(sql string, args ...any) func(tx *tx) error {
		return func(tx *tx) error { return tx.Write(sql, args...) }
	}
	for name, between := range map[string]func(tx *tx) error{
		"approval decided": write(`UPDATE approval SET status = 'rejected'`),
		"action moved":     write(`UPDATE action SET status = 'canceled', decided_at = 1`),
		"push exists": write(
			`INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts, ` +
				`attempt_base, last_error, error_code, not_before, created_at, generation, lease_owner, replays) SELECT tenant, ` +
				`'psh_2', seq, id, '', '', '', 'queued', 0, 0, '', '', 0, 0, 0, '', 0 FROM action`),
		"answer exists": write(`INSERT INTO idempotency (tenant, principal_id, route, key, body_hash, created_at)
			VALUES ('default', 'prn_ana', 'POST', 'k', sha256(''), $1)`, at.UnixMicro()),
		"mark removed": write(`UPDATE gatehouse_session SET last = -1`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url, counter := open(t)
			before := written(t, url)
			if len(before) < 2 {
				t.Fatalf("the rows before the decision are %v", before)
			}
			counter.count(t, "decision", func() {
				if err := settle(s, true, true, between); !errors.Is(err, gatehouse.ErrConflict) {
					t.Errorf("got %v, want a conflict", err)
				}
			})
			if !slices.Contains(counter.trips[len(counter.trips)-1], settleDecision.single) {
				t.Error("the decision was not sent as one statement")
			}
			if diff := cmp.Diff(before, written(t, url)); diff != "" {
				t.Errorf("the refused decision changed rows:\n%s", diff)
			}
		})
	}
}

// TestSettleInGroup: a group stores every decision in it, with the answer for its idempotency key.
func TestSettleInGroup(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	fill(t, s, 3)
	ids := []string{"act_000000000", "act_000000001", "act_000000002"}
	var calls []func() error
	for _, id := range ids {
		calls = append(calls, func() error {
			return s.Update(context.Background(), "default", func(x gatehouse.Tx) error {
				o, err := x.OpenDecision(gatehouse.DecisionQuery{ActionID: id})
				if err != nil {
					return err
				}
				err = x.SettleDecision(&gatehouse.Settlement{
					ActionID: id, ApprovalID: o.Action.Approval.ID, To: gatehouse.StatusRejected,
					Vote: gatehouse.Vote{Person: "prn_ana", PrincipalID: "prn_ana", Name: "ana",
						Decision: gatehouse.Reject, Via: gatehouse.ViaAPI, At: x.Now()},
					Leaf: &gatehouse.Leaf{Tenant: "default", Type: "hitl.rejected", Subject: id, ActionID: id, Actor: "a"},
				})
				return errors.Join(err, x.InsertIdempotency(&gatehouse.IdempotencyRecord{
					Tenant: "default", PrincipalID: "prn_ana", Route: "POST", Key: id, Body: []byte("{}"),
					CreatedAt: x.Now(),
				}))
			})
		})
	}
	for i, err := range together(t, s, calls...) {
		if err != nil {
			t.Errorf("member %d: %v", i, err)
		}
	}
	err := s.View(t.Context(), "default", func(tx gatehouse.ReadTx) error {
		for _, id := range ids {
			a, err := tx.FindAction(id)
			if err != nil || a.Status != gatehouse.StatusRejected || len(a.Approval.Votes) != 1 {
				t.Errorf("%s is %+v: %v", id, a, err)
			}
			by := &gatehouse.Caller{Principal: &gatehouse.Principal{ID: "prn_ana"},
				Idempotency: &gatehouse.IdempotencyRequest{Route: "POST", Key: id}}
			if facts, err := tx.OpenCaller(by); err != nil || facts.Answer == nil {
				t.Errorf("%s has no answer: %v", id, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

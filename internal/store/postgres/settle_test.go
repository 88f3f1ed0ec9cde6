package postgres

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
)

// written returns what a decision writes, without random values.
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
	drawn := regexp.MustCompile(`\\"id\\": ?\\"[^"]*\\"`)
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
			rows = append(rows, drawn.ReplaceAllString(text, ""))
		}
	}
	return rows
}

// lockWith locks an action by LockAction, or as a decision opens it.
func lockWith(tx gatehouse.Tx, opened bool, id string) (*gatehouse.Action, error) {
	if !opened {
		return tx.LockAction(id)
	}
	o, err := tx.OpenDecision(gatehouse.DecisionQuery{ActionID: id})
	if err != nil {
		return nil, err
	}
	return o.Action, nil
}

// settle decides an action that is likely to be open; between runs after the lock.
func settle(s *Store, opened, answer bool, between func(tx *tx) error) error {
	return s.Update(context.Background(), "default", func(x gatehouse.Tx) error {
		a, err := lockWith(x, opened, "act_000000000")
		if err != nil {
			return err
		}
		if between != nil {
			if err := between(x.(*tx)); err != nil {
				return err
			}
		}
		now := x.Now()
		err = errors.Join(
			x.PutVote(a.Approval.ID, gatehouse.Vote{
				Person: "prn_ana", PrincipalID: "prn_ana", Name: "ana", Decision: gatehouse.Approve, Via: gatehouse.ViaAPI, Digest: a.Digest, At: now,
			}),
			x.MoveApproval(a.Approval.ID, gatehouse.ApprovalApproved),
			x.MoveAction(gatehouse.ActionMove{
				ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusApproved,
				DecidedBy: "ana", DecidedVia: gatehouse.ViaAPI, Decided: true,
			}),
			x.InsertPush(&gatehouse.Push{
				ID: "psh_1", Tenant: a.Tenant, ActionID: a.ID, Connector: a.Connector, IdempotencyKey: a.IdempotencyKey, Digest: a.Digest,
				Status: gatehouse.PushQueued, NotBefore: now, NextAttempt: &now, CreatedAt: now,
			}),
			x.AppendLeaf(&gatehouse.Leaf{Tenant: a.Tenant, Type: "hitl.approved", Subject: a.ID, ActionID: a.ID, Actor: "prn_ana"}),
		)
		if answer && err == nil {
			err = x.InsertIdempotency(&gatehouse.IdempotencyRecord{
				Tenant: a.Tenant, PrincipalID: "prn_ana", Route: "POST", Key: "k", Body: []byte("{}"), CreatedAt: now,
			})
		}
		return err
	})
}

// TestSettleStatement: a decision in one statement stores what the single statements store, and each
// obstacle prevents all of it.
func TestSettleStatement(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	open := func(t *testing.T) (*Store, string, *traveler) {
		url, road := database(t), &traveler{}
		s := openTest(t, Config{URL: url, Clock: func() time.Time { return at }, trip: road.note})
		fill(t, s, 1)
		return s, url, road
	}
	for name, answer := range map[string]bool{"without an answer": false, "with an answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stored [2][]string
			for i, opened := range []bool{false, true} {
				s, url, road := open(t)
				road.of(t, "decision", func() {
					if err := settle(s, opened, answer, nil); err != nil {
						t.Error(err)
					}
				})
				if one := slices.ContainsFunc(road.trips,
					func(sent []string) bool { return slices.ContainsFunc(sent, s.isSettle) }); one != opened {
					t.Errorf("sent as one is %v, want %v", one, opened)
				}
				stored[i] = written(t, url)
			}
			if diff := cmp.Diff(stored[0], stored[1]); diff != "" || len(stored[0]) < 5 {
				t.Errorf("%d rows; one by one and in one differ:\n%s", len(stored[0]), diff)
			}
		})
	}
	other := func(sql string, args ...any) func(tx *tx) error {
		return func(tx *tx) error { return tx.write(sql, args...) }
	}
	for name, between := range map[string]func(tx *tx) error{
		"answered":     other(`UPDATE approval SET status = 'rejected'`),
		"moved":        other(`UPDATE action SET status = 'canceled', decided_at = 1`),
		"pushed":       other(`INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts, attempt_base, last_error, error_code, not_before, created_at, generation, lease_owner, replays) SELECT tenant, 'psh_2', seq, id, '', '', '', 'queued', 0, 0, '', '', 0, 0, 0, '', 0 FROM action`),
		"remembered":   other(`INSERT INTO idempotency (tenant, principal_id, route, key, body_hash, created_at) VALUES ('default', 'prn_ana', 'POST', 'k', sha256(''), $1)`, at.UnixMicro()),
		"mark removed": other(`UPDATE gatehouse_session SET last = -1`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url, road := open(t)
			before := written(t, url)
			if len(before) < 2 {
				t.Fatalf("stored are %v", before)
			}
			road.of(t, "decision", func() {
				if err := settle(s, true, true, between); !errors.Is(err, gatehouse.ErrConflict) {
					t.Errorf("it is %v, want a conflict", err)
				}
			})
			if !slices.ContainsFunc(road.trips, func(sent []string) bool { return slices.ContainsFunc(sent, s.isSettle) }) {
				t.Error("it was not sent as one")
			}
			if diff := cmp.Diff(before, written(t, url)); diff != "" {
				t.Errorf("something is stored:\n%s", diff)
			}
		})
	}
}

func (s *Store) isSettle(sql string) bool { return slices.Contains(s.settleStatements[:], sql) }

// TestSettleIsOneDecision: writes about another action, or with additional writes, go out as
// single statements.
func TestSettleIsOneDecision(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	mark := query{sql: markSession, args: []any{int64(1), int64(1)}}
	decision := func() *tx {
		args := func(n int, at map[int]any) []any {
			list := make([]any, n)
			for i, v := range at {
				list[i] = v
			}
			return list
		}
		x := &tx{readTx: readTx{s: s}, openAction: openAction{"t", "apr", "act"}}
		x.queue = []query{
			{sql: insertVote, args: args(13, map[int]any{0: "t", 1: "apr"})},
			{sql: moveApproval, args: args(3, map[int]any{1: "t", 2: "apr"})},
			{sql: moveOther, args: args(10, map[int]any{7: "t", 8: "act"})},
			{sql: insertPush, args: args(23, map[int]any{0: "t", 1: "act"})},
			{sql: appendLeaf, args: args(3, nil)},
		}
		return x
	}
	if x := decision(); !s.isSettle(x.mergeSettle(mark).sql) || len(x.queue) != 0 {
		t.Error("a decision goes out one by one")
	}
	for name, change := range map[string]func(x *tx){
		"another approval":      func(x *tx) { x.queue[1].args[2] = "apr2" },
		"another action":        func(x *tx) { x.queue[2].args[8] = "act2" },
		"another's push":        func(x *tx) { x.queue[3].args[1] = "act2" },
		"another tenant's push": func(x *tx) { x.queue[3].args[0] = "t2" },
		"not locked":            func(x *tx) { x.openAction = openAction{} },
		"another one locked":    func(x *tx) { x.openAction.action = "act2" },
		"a vote alone":          func(x *tx) { x.queue = x.queue[:1] },
		"another order":         func(x *tx) { x.queue[1], x.queue[2] = x.queue[2], x.queue[1] },
		"two leaves":            func(x *tx) { x.queue = append(x.queue, x.queue[4]) },
	} {
		x := decision()
		change(x)
		n := len(x.queue)
		if got := x.mergeSettle(mark); got.sql != markSession || len(x.queue) != n {
			t.Errorf("%s: it goes out as %.60s…", name, strings.TrimSpace(got.sql))
		}
	}
}

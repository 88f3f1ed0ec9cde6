package postgres

import (
	"context"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
)

// TestDecisionsLookRowsUp plans the reads of a decision with just enough actions for the
// server's autoanalyze, and a row or two in all other tables. At that size all plans cost the
// same, and the chosen one is kept while the tables grow, so the statements must allow only
// one.
func TestDecisionsLookRowsUp(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := openTest(t, Config{URL: url})
	p := populate(t, s)
	fill(t, s, 60)
	a := p.propose(p.known(p.agent))
	if err := p.approve(p.known(p.ana), a.ID, a); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), `ANALYZE`); err != nil {
		t.Fatal(err)
	}
	explain := planner(t, url)
	named := regexp.MustCompile(`\b(id|seq|hash|principal_id|action_seq|idempotency_key) = `)
	for name, sql := range map[string]string{
		"an action": findActions.text, "an open action": openActions.text,
		"an open action in a group": openActions.forGroup, "an open action, not locked": findDecisions.text,
		"a lock": lockActions.text, "a lock in a group": lockActions.forGroup,
		"the rights": findRights.text, "a key": findCredentials.text,
		"a key, locked": lockCredentials.text, "a key in a group": lockCredentials.forGroup,
	} {
		plan := slices.DeleteFunc(explain(sql), regexp.MustCompile(` on policy_active .*by \(tenant = `).MatchString)
		if len(plan) < 3 {
			t.Errorf("%s is found by %v", name, plan)
		}
		for _, way := range plan {
			if !named.MatchString(way) {
				t.Errorf("%s: %s", name, way)
			}
		}
	}
}

// TestVotesComeWithTheSides: every way of locking an action reads its earlier votes, in order.
func TestVotesComeWithTheSides(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	fill(t, s, 2)
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	vote := func(person string, n int) gatehouse.Vote {
		return gatehouse.Vote{
			Person: person, PrincipalID: person, Name: person, Decision: gatehouse.Approve, Via: gatehouse.ViaAPI,
			At: at.Add(time.Duration(n) * time.Second),
		}
	}
	var approval string
	in := func(fn func(tx gatehouse.Tx) error) {
		t.Helper()
		if err := s.Update(t.Context(), gatehouse.DefaultTenant, fn); err != nil {
			t.Fatal(err)
		}
	}
	in(func(tx gatehouse.Tx) error {
		a, err := tx.LockAction("act_000000000")
		if err != nil {
			return err
		}
		approval = a.Approval.ID
		for _, v := range []gatehouse.Vote{vote("zoe", 1), vote("eve", 2), vote("bob", 2), vote("ana", 3)} {
			if err := tx.PutVote(approval, v); err != nil {
				return err
			}
		}
		return nil
	})
	by := &gatehouse.Caller{Principal: &gatehouse.Principal{ID: "prn_none"}}
	for name, lock := range map[string]func(gatehouse.Tx, string) (*gatehouse.Action, error){
		"locked": gatehouse.Tx.LockAction,
		"opened to reject": func(tx gatehouse.Tx, id string) (*gatehouse.Action,
			error) {
			return lockWith(tx, true, id)
		},
		"opened with its rights": func(tx gatehouse.Tx, id string) (*gatehouse.Action, error) {
			o, err := tx.OpenDecision(gatehouse.DecisionQuery{By: by, ActionID: id, Approve: true})
			if err != nil {
				return nil, err
			}
			return o.Action, nil
		},
	} {
		for _, id := range []string{"act_000000000", approval} {
			in(func(tx gatehouse.Tx) error {
				a, err := lock(tx, id)
				if err != nil {
					return err
				}
				var people []string
				for _, v := range a.Approval.Votes {
					people = append(people, v.Person)
				}
				if !slices.Equal(people, []string{"zoe", "bob", "eve", "ana"}) {
					t.Errorf("%s by %s: %v voted", name, id, people)
				}
				return nil
			})
		}
	}
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

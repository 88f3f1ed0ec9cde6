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

// TestDecisionsLookRowsUp plans what a decision reads while there are as few
// actions as the server analyzes by itself, and of all else a row or two. Any way
// to a row costs the same then, and the plan is kept while the tables grow: the
// statements leave only one.
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
	named := regexp.MustCompile(`\b(id|seq|hash|principal_id|action_seq) = `)
	for name, sql := range map[string]string{
		"an action": askedByAction, "an action in a group": s.sets[askedByAction].sql,
		"an approval": askedByApproval, "an approval in a group": s.sets[askedByApproval].sql,
		"the sides of an action": sidesOfAction, "the sides of an action in a group": s.sets[sidesOfAction].sql,
		"the sides of an approval": sidesOfApproval, "the sides of an approval in a group": s.sets[sidesOfApproval].sql,
		"a key": findCredential, "a key, locked": lockCredential, "a key in a group": s.sets[lockCredential].sql,
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

// TestVotesComeWithTheSides: the votes of earlier days are among what is locked
// with the action, whichever way they came, in their order.
func TestVotesComeWithTheSides(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	fill(t, s, 2)
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	vote := func(person string, n int) gatehouse.Vote {
		return gatehouse.Vote{
			Person: person, PrincipalID: person, Name: person, Decision: gatehouse.Approve, Via: gatehouse.ViaAPI, At: at.Add(time.Duration(n) * time.Second),
		}
	}
	var approval string
	in := func(fn func(tx gatehouse.Tx) error) {
		t.Helper()
		if err := s.Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	in(func(tx gatehouse.Tx) error {
		a, err := tx.LockAction("default", "act_000000000")
		if err != nil {
			return err
		}
		approval = a.Approval.ID
		for _, v := range []gatehouse.Vote{vote("zoe", 1), vote("eve", 2), vote("bob", 2), vote("ana", 3)} {
			if err := tx.PutVote("default", approval, v); err != nil {
				return err
			}
		}
		return nil
	})
	for name, o := range map[string]gatehouse.Outlook{
		"nothing foreseen":   {},
		"by the action":      {Tenant: "default", ActionID: "act_000000000", Voters: true},
		"by the approval":    {Tenant: "default", ActionID: approval, Voters: true},
		"without the voters": {Tenant: "default", ActionID: "act_000000000"},
		"of another action":  {Tenant: "default", ActionID: "act_000000001", Voters: true},
	} {
		for _, id := range []string{"act_000000000", approval} {
			in(func(tx gatehouse.Tx) error {
				if o.Tenant != "" {
					tx.Foresee(o)
				}
				a, err := tx.LockAction("default", id)
				if err != nil {
					return err
				}
				var people []string
				for _, v := range a.Approval.Votes {
					people = append(people, v.Person)
				}
				if !slices.Equal(people, []string{"zoe", "bob", "eve", "ana"}) {
					t.Errorf("%s, locked by %s: %v voted", name, id, people)
				}
				return nil
			})
		}
	}
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func claim(amount gatehouse.Decimal) gatehouse.CeilingClaim {
	return gatehouse.CeilingClaim{Ceiling: "daily", Scope: "tenant", Amount: amount, Limit: "100",
		Window: gatehouse.Duration(24 * time.Hour)}
}

// reserve reserves claims that must fit.
func reserve(tx gatehouse.Tx, actionID string, claims ...gatehouse.CeilingClaim) error {
	excess, err := tx.ReserveCeilings(actionID, claims...)
	if err == nil && excess != nil {
		err = fmt.Errorf("%s does not fit: %s are used", excess.Amount, excess.Used)
	}
	return err
}

// lockDaily locks the ceiling of the claims that the function claim makes, and returns their sum.
func lockDaily(tx gatehouse.Tx, since time.Time) (gatehouse.Decimal, error) {
	used, err := tx.LockCeilings(gatehouse.CeilingSpan{Ceiling: "daily", Scope: "tenant", Since: since})
	if err != nil {
		return "", err
	}
	return used[0], nil
}

func (s *suite) used(since time.Duration) (sum gatehouse.Decimal) {
	s.Helper()
	s.update(func(tx gatehouse.Tx) (err error) {
		sum, err = lockDaily(tx, tx.Now().Add(since))
		return err
	})
	return sum
}

func (s *suite) ceilings() {
	a, b := s.pending(), s.pending()
	want := func(when string, sum gatehouse.Decimal) {
		s.Helper()
		if got := s.used(-time.Hour); got.Cmp(sum) != 0 {
			s.Fatalf("%s: used %s, want %s", when, got, sum)
		}
	}
	want("at first", "0")
	var reserved time.Time
	s.update(func(tx gatehouse.Tx) error {
		reserved = tx.Now()
		err := reserve(tx, a.ID,
			claim("1.25"),
			gatehouse.CeilingClaim{Ceiling: "daily", Scope: "agent:x", Amount: "7", Limit: "7", Window: 1},
			gatehouse.CeilingClaim{Ceiling: "other", Scope: "tenant", Amount: "7", Limit: "7", Window: 1},
		)
		if err != nil {
			return err
		}
		return reserve(tx, b.ID, claim("0.0000001"))
	})
	want("rounded away from zero", "1.250001")
	s.update(func(tx gatehouse.Tx) error {
		c := claim("9")
		c.Scope = "agent:y"
		return reserve(tx, b.ID, claim("0.0000001"), c)
	})
	uses := func(tenant, scope string, since time.Time, limit int) (list []gatehouse.CeilingUse) {
		s.Helper()
		s.as(tenant).view(func(tx gatehouse.ReadTx) (err error) {
			list, err = tx.ListCeilingUse("daily", scope, since, limit)
			return err
		})
		return list
	}
	before := reserved.Add(-time.Hour)
	counted := claim("0").CountedAt(reserved)
	fullest := []gatehouse.CeilingUse{{Scope: "agent:y", Used: "9"}, {Scope: "agent:x", Used: "7"},
		{Scope: "tenant", Used: "1.250001"}}
	s.same("all accounts, the fullest first", uses(tenant, "", before, 10), fullest)
	s.same("the fullest two", uses(tenant, "", before, 2), fullest[:2])
	s.same("of one scope", uses(tenant, "tenant", before, 1), fullest[2:])
	s.same("of a part of a scope", uses(tenant, "agent:", before, 10), []gatehouse.CeilingUse(nil))
	s.same("of another tenant", uses("acme", "", before, 10), []gatehouse.CeilingUse(nil))
	s.same("at the edge of the window", uses(tenant, "tenant", counted, 10), []gatehouse.CeilingUse(nil))
	s.same("within the slice of time that the claims were reserved in",
		uses(tenant, "tenant", counted.Add(-time.Microsecond), 10), fullest[2:])
	sums := func(tenant string, spans ...gatehouse.CeilingSpan) (list []gatehouse.Decimal) {
		s.Helper()
		s.as(tenant).view(func(tx gatehouse.ReadTx) (err error) {
			list, err = tx.CeilingUses(spans)
			return err
		})
		return list
	}
	many := []gatehouse.CeilingSpan{
		{Ceiling: "daily", Scope: "tenant", Since: before}, {Ceiling: "daily", Scope: "none", Since: before},
		{Ceiling: "other", Scope: "tenant", Since: before}, {Ceiling: "daily", Scope: "tenant", Since: counted},
		{Ceiling: "daily", Scope: "agent:x", Since: before}, {Ceiling: "daily", Scope: "tenant", Since: before},
	}
	s.same("several spans, in their order", sums(tenant, many...),
		[]gatehouse.Decimal{"1.250001", "0", "7", "0", "7", "1.250001"})
	s.same("several spans of another tenant", sums("acme", many[:2]...), []gatehouse.Decimal{"0", "0"})
	s.same("no spans", sums(tenant), []gatehouse.Decimal{})
	s.update(func(tx gatehouse.Tx) error {
		locked, err := tx.LockCeilings(many...)
		s.same("several spans, locked", locked, []gatehouse.Decimal{"1.250001", "0", "7", "0", "7", "1.250001"})
		return errors.Join(err, reserve(tx, a.ID)) // no claims
	})
	s.update(func(tx gatehouse.Tx) error {
		sum, err := lockDaily(tx, counted)
		if err == nil && sum.Cmp("0") != 0 {
			s.Errorf("reserved at the edge of the window: used %s", sum)
		}
		return err
	})
	s.update(func(tx gatehouse.Tx) error { return reserve(tx, a.ID, claim("2")) })
	want("new claims of an action replace the earlier ones", "2.000001")
	s.same("also those on other ceilings", uses(tenant, "agent:x", before, 1), []gatehouse.CeilingUse(nil))
	s.update(func(tx gatehouse.Tx) error { return tx.ReleaseCeilings(a.ID) })
	want("released", "0.000001")
	s.update(func(tx gatehouse.Tx) error { return tx.ReleaseCeilings(a.ID) })
	s.update(func(tx gatehouse.Tx) error { return reserve(tx, a.ID, claim("3")) })
	want("reserved again", "3.000001")
	s.updateReturns(
		gatehouse.ErrNotFound,
		"a claim for an action that does not exist",
		func(tx gatehouse.Tx) error { return reserve(tx, "act_none", claim("1")) },
	)
	err := s.store.Update(
		context.Background(),
		tenant,
		func(tx gatehouse.Tx) error { return reserve(tx, a.ID, claim("1e30")) },
	)
	if err == nil {
		s.Fatal("an amount that is too large to store was reserved")
	}
	want("after refusals", "3.000001")

	of := func(scope string, amount gatehouse.Decimal) gatehouse.CeilingClaim {
		c := claim(amount)
		c.Scope = scope
		return c
	}
	s.update(func(tx gatehouse.Tx) error {
		return reserve(tx, a.ID, of("agent:x_1", "2"), of("agent:x_1/EUR", "3"), of("agent:x_1/USD", "1"),
			of("agent:x_12", "8"), of("agent:xa1/EUR", "8"))
	})
	s.same("of one scope, in all currencies", uses(tenant, "agent:x_1", before, 10), []gatehouse.CeilingUse{
		{Scope: "agent:x_1/EUR", Used: "3"}, {Scope: "agent:x_1", Used: "2"}, {Scope: "agent:x_1/USD", Used: "1"},
	})
}

// ceilingRace lets more callers claim at once than fit under the limit. The first caller that
// gets the lock keeps it for a while, to let the others read the sum too. They must
// not be able to read it before the first caller's claim is committed.
func (s *suite) ceilingRace() {
	const callers, limit = 40, 7
	actions := make([]*gatehouse.Action, callers)
	for i := range actions {
		actions[i] = s.pending()
	}
	full := errors.New("full")
	var won, lost atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	var looks atomic.Int64
	all := make(chan struct{})
	for _, a := range actions {
		wg.Go(func() {
			<-start
			err := s.store.Update(context.Background(), tenant, func(tx gatehouse.Tx) error {
				used, err := lockDaily(tx, tx.Now().Add(-time.Hour))
				if err != nil {
					return err
				}
				switch looks.Add(1) {
				case 1:
					select {
					case <-all:
					case <-time.After(200 * time.Millisecond):
					}
				case callers:
					close(all)
				}
				if used.Add("1").Cmp("7") > 0 {
					return full
				}
				return reserve(tx, a.ID, claim("1"))
			})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, full):
				lost.Add(1)
			default:
				s.Errorf("Update: %v", err)
			}
		})
	}
	close(start)
	wg.Wait()
	if won.Load() != limit || lost.Load() != callers-limit {
		s.Fatalf("%d won and %d lost, want %d and %d", won.Load(), lost.Load(), limit, callers-limit)
	}
	if got := s.used(-time.Hour); got.Cmp("7") != 0 {
		s.Fatalf("used %s", got)
	}
}

// ceilingGroups lets many callers open decisions and claim three ceilings at once. Some fail after their
// claim, which then does not count. As many as fit succeed.
func (s *suite) ceilingGroups() {
	const callers, limit = 48, 20
	failed, full := errors.New("failed"), errors.New("full")
	claims := make([]gatehouse.CeilingClaim, 3)
	for i := range claims {
		claims[i] = claim("1")
		claims[i].Ceiling, claims[i].Limit = fmt.Sprint("c", i), "20"
	}
	var won, lost, gone atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range callers {
		a, mine := s.pending(), slices.Clone(claims)
		if i%2 == 1 {
			slices.Reverse(mine)
		}
		wg.Go(func() {
			<-start
			err := s.store.Update(context.Background(), tenant, func(tx gatehouse.Tx) error {
				if _, err := tx.OpenDecision(gatehouse.DecisionQuery{ActionID: a.ID}); err != nil {
					return err
				}
				excess, err := tx.ReserveCeilings(a.ID, mine...)
				if err == nil && excess != nil {
					err = full
				}
				if err == nil && i%8 == 0 {
					_, err = tx.ListCeilingUse("c0", "", tx.Now().Add(-time.Hour), 1)
				}
				if err == nil && i%4 == 0 {
					err = failed
				}
				return err
			})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, full):
				lost.Add(1)
			case errors.Is(err, failed):
				gone.Add(1)
			default:
				s.Errorf("Update: %v", err)
			}
		})
	}
	close(start)
	wg.Wait()
	if won.Load() != limit || won.Load()+lost.Load()+gone.Load() != callers {
		s.Errorf("%d won, %d lost and %d failed, want %d to win", won.Load(), lost.Load(), gone.Load(), limit)
	}
	spans := make([]gatehouse.CeilingSpan, len(claims))
	for i, c := range claims {
		spans[i] = gatehouse.CeilingSpan{Ceiling: c.Ceiling, Scope: c.Scope, Since: s.now().Add(-time.Hour)}
	}
	want := []gatehouse.Decimal{"20", "20", "20"}
	s.view(func(tx gatehouse.ReadTx) error {
		stored, err := tx.CeilingUses(spans)
		s.same("the stored sums", stored, want)
		return err
	})
	s.update(func(tx gatehouse.Tx) error {
		locked, err := tx.LockCeilings(spans...)
		s.same("the sums in a transaction that writes", locked, want)
		return err
	})
}

// ceilingExcess compares a claim with its limit.
func (s *suite) ceilingExcess() {
	a, b := s.pending(), s.pending()
	small, big := claim("60.5"), claim("39.5000001")
	other := claim("1")
	other.Ceiling = "other"
	try := func(id string, claims ...gatehouse.CeilingClaim) (excess *gatehouse.CeilingExcess) {
		s.Helper()
		s.update(func(tx gatehouse.Tx) (err error) {
			excess, err = tx.ReserveCeilings(id, claims...)
			return err
		})
		return excess
	}
	s.same("a claim that fits", try(a.ID, small), (*gatehouse.CeilingExcess)(nil))
	s.same("a claim that does not fit", try(b.ID, other, big),
		&gatehouse.CeilingExcess{CeilingClaim: big, Used: "60.5", Left: "39.5"})
	s.update(func(tx gatehouse.Tx) error {
		list, err := tx.ListCeilingUse("other", "", time.Time{}, 10)
		s.same("the claim beside it", list, []gatehouse.CeilingUse(nil))
		return err
	})
	never := claim("100.1")
	s.same("a claim above the limit", try(b.ID, never),
		&gatehouse.CeilingExcess{CeilingClaim: never, Used: "60.5", Left: "39.5", Never: true})
	exact := claim("39.5")
	s.same("a claim that takes the rest", try(b.ID, exact), (*gatehouse.CeilingExcess)(nil))
	precise := claim("0.0000004")
	precise.Ceiling, precise.Limit = "precise", "0.0000005"
	if excess := try(b.ID, precise); excess == nil {
		s.Error("a claim of a millionth, rounded up, fits under half a millionth")
	}
}

package sqlite

import (
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	// maxAccounts bounds the accounts of ceilings whose sums the writer remembers.
	maxAccounts = 1024
	// maxSlices is the number of slices of time of an account above which the old slices are dropped.
	maxSlices = 256
)

// ceilingSums are the sums of the claims on ceilings, by slices of time. Only the writer changes them, so
// it remembers those that it has read. It stores the changes of a batch once, before COMMIT: the decisions
// of a batch change the same few sums.
type ceilingSums struct {
	known map[account]*accountSums
	// changes are the changes of the batch that are not stored yet.
	changes map[timeSlice]int64
	// undo holds functions that undo the changes of the running closure, in the order of the changes.
	undo []func()
}

// account is what a limit applies to: a ceiling and a scope of a tenant.
type account struct{ tenant, ceiling, scope string }

// timeSlice is a slice of time of an account, by its end.
type timeSlice struct {
	account
	end int64
}

// accountSums holds the sums of an account, with the changes of the batch, for all slices that end after
// since.
type accountSums struct {
	since int64
	sums  []sliceSum
}

type sliceSum struct{ end, amount int64 }

// forget drops everything, after a rollback.
func (s *ceilingSums) forget() { *s = ceilingSums{} }

// undoClosure undoes the changes of a closure whose writes were rolled back.
func (s *ceilingSums) undoClosure() {
	for _, undo := range slices.Backward(s.undo) {
		undo()
	}
	s.undo = nil
}

// change changes the sum of a slice.
func (s *ceilingSums) change(at timeSlice, amount int64) {
	s.unstored(at, amount)
	s.known[at.account].add(at.end, amount)
}

// unstored adds to the changes that are not stored yet.
func (s *ceilingSums) unstored(at timeSlice, amount int64) {
	if s.changes == nil {
		s.changes = make(map[timeSlice]int64)
	}
	if s.changes[at] += amount; s.changes[at] == 0 {
		delete(s.changes, at)
	}
}

// add adds to the sum of the slice with this end; a may be nil, for an account that is not known.
func (a *accountSums) add(end, amount int64) {
	if a == nil || end <= a.since {
		return
	}
	for i := range slices.Backward(a.sums) {
		if a.sums[i].end == end {
			a.sums[i].amount += amount
			return
		}
	}
	a.sums = append(a.sums, sliceSum{end, amount})
}

// used sums the slices of an account that end after since. A sum that overflows is an error.
func (t *tx) used(a account, since int64) (sum int64, err error) {
	s := &t.w.sums
	k := s.known[a]
	if k == nil || k.since > since {
		if k, err = t.readSums(a, since); err != nil {
			return 0, err
		}
	}
	if len(k.sums) > maxSlices {
		k.since, k.sums = since, slices.DeleteFunc(k.sums, func(x sliceSum) bool { return x.end <= since })
	}
	for _, x := range k.sums {
		if x.end <= since {
			continue
		}
		if sum += x.amount; sum < 0 {
			return 0, errors.New("sqlite: the sum of the claims on a ceiling overflows")
		}
	}
	return sum, nil
}

// readSums reads the sums of an account, and remembers them.
func (t *tx) readSums(a account, since int64) (*accountSums, error) {
	k := &accountSums{since: since}
	err := t.each(`
SELECT counted_at, amount FROM ceiling_sum WHERE tenant = ? AND ceiling = ? AND scope = ? AND counted_at > ?`,
		func(r *stmt) error {
			k.sums = append(k.sums, sliceSum{end: r.Int(), amount: r.Int()})
			return nil
		}, a.tenant, a.ceiling, a.scope, since)
	if err != nil {
		return nil, err
	}
	s := &t.w.sums
	for at, amount := range s.changes {
		if at.account == a {
			k.add(at.end, amount)
		}
	}
	if s.known == nil || len(s.known) >= maxAccounts {
		s.known = make(map[account]*accountSums)
	}
	s.known[a] = k
	return k, nil
}

// count adds to the sum of a claim's slice of time.
func (t *tx) count(c shared.Claim, amount int64) {
	s, at := &t.w.sums, timeSlice{account{t.tenant, c.Ceiling, c.Scope}, c.CountedAt}
	s.change(at, amount)
	s.undo = append(s.undo, func() { s.change(at, -amount) })
}

// store writes the changes of the batch.
func (s *ceilingSums) store(c *conn) error {
	for at, amount := range s.changes {
		// A negative amount comes from a released claim, so its slice has a row already.
		sql := `
INSERT INTO ceiling_sum (tenant, ceiling, scope, counted_at, amount) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO UPDATE SET amount = amount + excluded.amount`
		if amount < 0 {
			sql = `
UPDATE ceiling_sum SET amount = amount + $5
WHERE tenant = $1 AND ceiling = $2 AND scope = $3 AND counted_at = $4`
		}
		if _, err := c.exec(sql, at.tenant, at.ceiling, at.scope, at.end, amount); err != nil {
			return err
		}
		if amount < 0 {
			_, err := c.exec(`
DELETE FROM ceiling_sum
WHERE tenant = $1 AND ceiling = $2 AND scope = $3 AND counted_at = $4 AND amount = 0`,
				at.tenant, at.ceiling, at.scope, at.end)
			if err != nil {
				return err
			}
		}
		delete(s.changes, at)
		s.undo = append(s.undo, func() { s.unstored(at, amount) })
	}
	return nil
}

package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *suite) attempts() {
	w := s.workflow(tenant, "triage", 1)
	r, st := s.one(w)
	_, other := s.one(w)
	now := s.now()
	of := func(st *gatehouse.Step, generation int, outcome string) *gatehouse.StepAttempt {
		return &gatehouse.StepAttempt{
			Tenant: tenant, RunID: st.RunID, StepID: st.ID, Attempt: generation, Generation: generation, Worker: "w",
			StartedAt:  now,
			FinishedAt: now.Add(time.Second), Outcome: outcome, Code: "c", Detail: "d",
		}
	}
	want := []*gatehouse.StepAttempt{of(st, 1, "lease_expired"), of(st, 2, "succeeded")}
	s.update(func(tx gatehouse.Tx) error {
		return errors.Join(tx.InsertAttempt(want[0]), tx.InsertAttempt(of(other, 1, "failed_terminal")),
			tx.InsertAttempt(want[1]))
	})
	s.view(func(tx gatehouse.ReadTx) error {
		got, err := tx.ListAttempts(r.ID)
		s.same("attempts", got, want)
		return err
	})
	s.updateReturns(gatehouse.ErrConflict, "a lease that already has an outcome",
		func(tx gatehouse.Tx) error { return tx.InsertAttempt(of(st, 2, "failed_terminal")) })
	nobody := of(st, 3, "x")
	nobody.StepID = "stp_x"
	s.updateReturns(gatehouse.ErrNotFound, "an attempt at no step",
		func(tx gatehouse.Tx) error { return tx.InsertAttempt(nobody) })
}

func (s *suite) usage() {
	w, v := s.workflow(tenant, "triage", 1), s.workflow(tenant, "other", 1)
	r, st := s.one(w)
	_, other := s.one(v)
	base := s.now()
	use := func(st *gatehouse.Step, cost gatehouse.Decimal, currency string, at time.Time) *gatehouse.ModelUsage {
		u := &gatehouse.ModelUsage{
			Tenant: tenant, RunID: st.RunID, Workflow: st.Workflow, StepID: st.ID, Attempt: 1, Provider: "openai", Model: "m",
			InputTokens: 1 << 40, OutputTokens: 20, Cost: cost, Currency: currency, At: at,
		}
		s.update(func(tx gatehouse.Tx) error { return tx.InsertUsage(u) })
		return u
	}
	spent := func(workflow, currency string, since time.Time, want gatehouse.Decimal) {
		s.Helper()
		var got gatehouse.Decimal
		s.view(func(tx gatehouse.ReadTx) (err error) {
			got, err = tx.Spent(workflow, currency, since)
			return err
		})
		if got != want {
			s.Errorf("spent of %q in %s: %s, want %s", workflow, currency, got, want)
		}
	}
	before := base.Add(-time.Hour)
	spent("", "USD", before, "0")
	want := []*gatehouse.ModelUsage{use(st, "0.10", "USD", base), use(st, "0.20", "USD", base.Add(time.Second))}
	spent("", "USD", before, "0.3") // not 0.30000000000000004
	use(other, "1.000000000001", "USD", base)
	use(other, "7", "EUR", base)
	spent("", "USD", before, "1.300000000001")
	spent("triage", "USD", before, "0.3")
	spent("other", "USD", before, "1.000000000001")
	spent("other", "EUR", before, "7")
	spent("triage", "EUR", before, "0")
	spent("triage", "USD", base, "0.2") // after the time, not at it
	want = append(want, use(st, "1.5e-7", "USD", base), use(st, "0.000000000000000001", "USD", base),
		use(st, "", "USD", base), use(st, "12", "USD", base))
	spent("triage", "USD", before, "12.300000150001") // never too low
	s.view(func(tx gatehouse.ReadTx) error {
		got, err := tx.ListUsage(r.ID)
		s.same("usage", got, want)
		return err
	})
	for _, cost := range []gatehouse.Decimal{"-0.01", "x", "1e30"} {
		u := *want[0]
		u.Cost = cost
		err := s.store.Update(s.Context(), u.Tenant, func(tx gatehouse.Tx) error { return tx.InsertUsage(&u) })
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			s.Errorf("a cost of %s: error %v", cost, err)
		}
	}
}

func (s *suite) signals() {
	w := s.workflow(tenant, "triage", 1)
	r, _ := s.one(w)
	other, _ := s.one(w)
	now := s.now()
	send := func(r *gatehouse.Run, name string) *gatehouse.Signal {
		g := &gatehouse.Signal{Tenant: tenant, RunID: r.ID, ID: "sig_" + s.next(), Name: name, Data: `{"n":1.10}`, By: "ana",
			At: now}
		s.update(func(tx gatehouse.Tx) error { return tx.InsertSignal(g) })
		return g
	}
	first, second, third := send(r, "go"), send(r, "stop"), send(r, "go")
	send(other, "go")
	take := func(r *gatehouse.Run, name string) (got *gatehouse.Signal) {
		s.Helper()
		s.update(func(tx gatehouse.Tx) (err error) { got, err = tx.TakeSignal(r.ID, name); return err })
		return got
	}
	s.same("the oldest", take(r, "go"), first)
	s.same("the next", take(r, "go"), third)
	s.same("of another name", take(r, "stop"), second)
	for name, of := range map[string]*gatehouse.Run{"go": r, "come": other} {
		s.updateReturns(
			gatehouse.ErrNotFound,
			"none is left",
			func(tx gatehouse.Tx) error { _, err := tx.TakeSignal(of.ID, name); return err },
		)
	}
	s.view(func(tx gatehouse.ReadTx) error {
		got, err := tx.ListSignals(r.ID)
		s.same("all of the run", got, []*gatehouse.Signal{first, second, third})
		return err
	})
	s.updateReturns(gatehouse.ErrConflict, "a known id", func(tx gatehouse.Tx) error { return tx.InsertSignal(first) })
	s.updateReturns(gatehouse.ErrNotFound, "to no run", func(tx gatehouse.Tx) error {
		return tx.InsertSignal(&gatehouse.Signal{Tenant: tenant, RunID: "run_x", ID: "sig_x", Name: "go", At: now})
	})
}

// runContributors: each contributor to a run is stored once, for that run only, and stays.
func (s *suite) runContributors() {
	w := s.workflow(tenant, "triage", 1)
	r, _ := s.one(w)
	beside, _ := s.one(w)
	for _, who := range []string{"prn_b", "prn_a", "prn_b"} {
		s.update(func(tx gatehouse.Tx) error { return tx.InsertRunContributor(r.ID, who) })
	}
	s.update(func(tx gatehouse.Tx) error { return tx.InsertRunContributor(beside.ID, "prn_c") })
	list := func(tenant, run string) (got []string) {
		s.Helper()
		s.as(tenant).view(func(tx gatehouse.ReadTx) (err error) { got, err = tx.ListRunContributors(run); return err })
		return got
	}
	s.same("contributors", list(tenant, r.ID), []string{"prn_a", "prn_b"})
	s.same("contributors to the run beside", list(tenant, beside.ID), []string{"prn_c"})
	s.same("contributors as another tenant sees them", list("acme", r.ID), []string(nil))
	s.updateReturns(gatehouse.ErrNotFound, "a contributor to no run",
		func(tx gatehouse.Tx) error { return tx.InsertRunContributor("run_x", "prn_a") })
	s.as("acme").updateReturns(gatehouse.ErrNotFound, "a contributor to another tenant's run",
		func(tx gatehouse.Tx) error { return tx.InsertRunContributor(r.ID, "prn_a") })
}

func (s *suite) reflexions() {
	w, v := s.workflow(tenant, "triage", 1), s.workflow(tenant, "other", 1)
	var all, triage []*gatehouse.Reflexion
	for i := range 5 {
		of := []*gatehouse.Workflow{w, v}[i%2]
		r, _ := s.one(of)
		x := &gatehouse.Reflexion{
			ID: "rfx_" + s.next(), Tenant: tenant, RunID: r.ID, Workflow: of.Name, Version: 1, Outcome: gatehouse.RunFailed,
			Attempted: "a", Happened: "b", Otherwise: fmt.Sprint(i), At: s.now(),
		}
		s.update(func(tx gatehouse.Tx) error { return tx.InsertReflexion(x) })
		all = append([]*gatehouse.Reflexion{x}, all...)
		if of == w {
			triage = append([]*gatehouse.Reflexion{x}, triage...)
		}
	}
	for workflow, want := range map[string][]*gatehouse.Reflexion{"": all, "triage": triage, "nobody": nil} {
		var got []*gatehouse.Reflexion
		for cursor, more := "", true; more; more = cursor != "" {
			s.view(func(tx gatehouse.ReadTx) error {
				page, err := tx.ListReflexions(workflow, "", cursor, 2)
				got, cursor = append(got, page.Items...), page.NextCursor
				return err
			})
		}
		s.same("reflexions of "+workflow, got, want)
	}
	s.view(func(tx gatehouse.ReadTx) error {
		got, err := tx.FindReflexion(all[0].RunID)
		s.same("that of a run", got, all[0])
		if _, err := tx.FindReflexion("run_x"); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("of no run: error %v", err)
		}
		return err
	})
	again := *all[0]
	again.ID = "rfx_again"
	s.updateReturns(gatehouse.ErrConflict, "a second one of a run",
		func(tx gatehouse.Tx) error { return tx.InsertReflexion(&again) })
}

func (s *suite) bundles() {
	w := s.workflow(tenant, "triage", 1)
	end := func(at time.Time, to gatehouse.RunStatus) *gatehouse.Run {
		r, _ := s.one(w)
		r.FinishedAt = &at
		s.moveRun(r, gatehouse.RunRunning)
		next := *r
		next.Status, next.FinishedAt = to, &at
		s.update(func(tx gatehouse.Tx) error { return tx.MoveRun(&next, r.Status) })
		return &next
	}
	base := s.now()
	third, first, second := end(base, gatehouse.RunSucceeded), end(base.Add(-time.Hour), gatehouse.RunFailed),
		end(base.Add(-time.Minute), gatehouse.RunCanceled)
	s.one(w) // has not ended
	unbundled := func(limit int, want ...*gatehouse.Run) {
		s.Helper()
		s.viewQueues(func(q gatehouse.ReadQueues) error {
			got, err := q.UnbundledRuns(limit)
			s.same("without evidence", runIDs(got), runIDs(want))
			if len(got) > 0 && len(got[0].Steps) > 0 {
				s.Error("the runs contain their steps")
			}
			return err
		})
	}
	unbundled(10, first, second, third)
	unbundled(2, first, second)
	archive := []byte{0, 1, 2, 0xff}
	sum := sha256.Sum256(archive)
	b := &gatehouse.Bundle{Tenant: tenant, RunID: second.ID, SHA256: hex.EncodeToString(sum[:]), Manifest: `{"files":[]}`,
		Archive: archive, CreatedAt: base}
	s.update(func(tx gatehouse.Tx) error { return tx.InsertBundle(b) })
	unbundled(10, first, third)
	s.view(func(tx gatehouse.ReadTx) error {
		got, err := tx.FindBundle(second.ID)
		s.same("the bundle", got, b)
		if _, err := tx.FindBundle(first.ID); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("no bundle: error %v", err)
		}
		return err
	})
	if got := s.findRun(tenant, second.ID).Evidence; got != b.SHA256 {
		s.Errorf("the run's evidence is %q", got)
	}
	s.updateReturns(gatehouse.ErrConflict, "a second bundle", func(tx gatehouse.Tx) error { return tx.InsertBundle(b) })
	s.updateReturns(gatehouse.ErrNotFound, "a bundle of no run", func(tx gatehouse.Tx) error {
		c := *b
		c.RunID = "run_x"
		return tx.InsertBundle(&c)
	})
}

func (s *suite) runEntries() {
	w := s.workflow(tenant, "triage", 1)
	r, _ := s.one(w)
	other, _ := s.one(w)
	a := s.pending()
	leaf := func(subject, action, kind string) {
		s.update(func(tx gatehouse.Tx) error {
			return tx.AppendLeaf(&gatehouse.Leaf{Tenant: tenant, Type: kind, Subject: subject, ActionID: action, Actor: "ana"})
		})
	}
	leaf(r.ID, "", "run.created")
	leaf(a.ID, a.ID, "action.proposed")
	leaf(other.ID, "", "run.created")
	leaf(r.ID, "", "run.succeeded")
	list := func(id string) (got []*gatehouse.Entry) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) (err error) { got, err = tx.ListRunEntries(id); return err })
		return got
	}
	if got := list(r.ID); len(got) != 0 {
		s.Errorf("%d entries that have no number yet", len(got))
	}
	waiting := s.waiting(10)
	s.update(func(tx gatehouse.Tx) error {
		leaves, hashes, err := numbered(tx, 0, waiting)
		return errors.Join(err, tx.NumberLeaves(0, leaves, hashes))
	})
	got := list(r.ID)
	if len(got) != 2 || got[0].Index != 0 || got[1].Index != 3 || got[0].Body != waiting[0].Body {
		s.Errorf("entries of the run: %+v", got)
	}
	for _, id := range []string{"", a.ID, "run_x"} {
		if got := list(id); len(got) != 0 {
			s.Errorf("entries of %q: %d", id, len(got))
		}
	}
	s.view(func(tx gatehouse.ReadTx) error {
		got, err := tx.ListActionEntries(a.ID)
		if len(got) != 1 {
			s.Errorf("%d entries of the action", len(got))
		}
		return err
	})
}

package storetest

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// readers checks that lists bound to a reader contain exactly what the reader
// proposed, started or inherited, each once over all pages.
func (s *suite) readers() {
	now := s.now()
	agents := []string{"prn_mine", "prn_other"}
	s.update(func(tx gatehouse.Tx) error {
		for _, id := range append(agents, "prn_clerk") {
			p := &gatehouse.Principal{ID: id, Tenant: tenant, Name: id, Kind: gatehouse.KindAgent,
				Roles: []gatehouse.Role{gatehouse.RoleProposer}, Person: id, CreatedAt: now}
			if id == "prn_clerk" {
				p.Kind = gatehouse.KindPerson
			}
			if err := tx.InsertPrincipal(p); err != nil {
				return err
			}
		}
		return nil
	})
	by := func(id string) func(*gatehouse.Action) {
		return func(a *gatehouse.Action) { a.ProposerID, a.ProposedBy = id, id }
	}
	var mine []string
	for i := range 5 {
		s.pending(by("prn_other"))
		if i%2 == 0 {
			mine = append(mine, s.pending(by("prn_mine")).ID)
		}
		s.pending(by("prn_clerk"))
	}
	// A revision of a revision, and proposals of a run and of its child.
	revised := s.pending(by("prn_clerk"))
	again := s.pending(by("prn_clerk"))
	w := s.workflow(tenant, "triage", 1)
	run, child, foreign := s.newRun(w, "a"), s.newRun(w, "a"), s.newRun(w, "a")
	run.StarterID, foreign.StarterID = "prn_mine", "prn_other"
	child.StarterID, child.ParentRun, child.ParentStep = "prn_clerk", run.ID, run.Steps[0].ID
	s.insert(run, child, foreign)
	fromRun, fromChild := s.pending(by("prn_clerk")), s.pending(by("prn_clerk"))
	fromForeign := s.pending(by("prn_clerk"))
	s.update(func(tx gatehouse.Tx) error {
		for _, pair := range [][2]string{
			{revised.ID, mine[0]}, {again.ID, revised.ID}, {child.ID, run.ID}, {fromRun.ID, run.ID}, {fromChild.ID, child.ID},
			{fromForeign.ID, foreign.ID}, {fromRun.ID, run.ID},
		} {
			if err := tx.Inherit(pair[0], pair[1]); err != nil {
				return err
			}
		}
		return nil
	})
	mine = append(mine, revised.ID, again.ID, fromRun.ID, fromChild.ID)
	slices.Sort(mine)
	for _, f := range []gatehouse.ActionFilter{{}, {Sort: gatehouse.SortUrgency}, {Status: gatehouse.StatusPending}} {
		f.ReadBy = "prn_mine"
		s.same("what the reader sees, sorted by "+string(f.Sort), sorted(s.list(f)), mine)
	}
	s.same("what the agent that started another run sees",
		slices.Contains(s.list(gatehouse.ActionFilter{ReadBy: "prn_other"}), fromForeign.ID), true)

	var runs []string
	s.view(func(tx gatehouse.ReadTx) error {
		runs = runs[:0]
		list, err := walk(func(cursor string) (gatehouse.Page[*gatehouse.Run], error) {
			return tx.ListRuns(gatehouse.RunFilter{ReadBy: "prn_mine", Limit: 1, Cursor: cursor})
		})
		for _, r := range list {
			runs = append(runs, r.ID)
		}
		return err
	})
	s.same("the reader's runs", sorted(runs), sorted([]string{run.ID, child.ID}))

	for _, c := range []struct {
		who, id string
		want    bool
	}{{"prn_mine", revised.ID, true}, {"prn_mine", child.ID, true}, {"prn_other", revised.ID, false}, {"prn_clerk",
		revised.ID, false}, {"prn_mine", fromForeign.ID, false}} {
		s.view(func(tx gatehouse.ReadTx) error {
			got, err := tx.Inherited(c.who, c.id)
			s.same(c.who+" inherited "+c.id, got, c.want)
			return err
		})
	}

	var facts []string
	s.view(func(tx gatehouse.ReadTx) error {
		facts = facts[:0]
		return tx.ActionFacts(
			"prn_mine",
			func(f gatehouse.ActionFact) bool { facts = append(facts, f.ID); return true },
		)
	})
	s.same("the reader's facts", sorted(facts), mine)
}

// readPushes is readers for pushes, applied changes and corpus entries.
func (s *suite) readPushes() {
	var mine []string
	for i := range 6 {
		id := "prn_" + []string{"mine", "other"}[i%2]
		_, p := s.queued(func(a *gatehouse.Action) { a.ProposerID, a.ProposedBy = id, id })
		if i%2 == 0 {
			mine = append(mine, p.ID)
		}
	}
	var got []string
	s.view(func(tx gatehouse.ReadTx) error {
		got = got[:0]
		list, err := walk(func(cursor string) (gatehouse.Page[*gatehouse.Push], error) {
			return tx.ListPushes(
				gatehouse.PushFilter{Status: gatehouse.PushQueued, ReadBy: "prn_mine", Limit: 2, Cursor: cursor},
			)
		})
		for _, p := range list {
			got = append(got, p.ID)
		}
		return err
	})
	slices.Sort(got)
	s.same("the reader's pushes", got, mine)
	s.view(func(tx gatehouse.ReadTx) error {
		corpus, err := tx.ListCorpus("prn_nobody", "", 10)
		if err != nil {
			return err
		}
		mirror, err := tx.ListMirror("prn_nobody", "", 10)
		s.same("what a stranger sees", len(corpus.Items)+len(mirror.Items), 0)
		return err
	})
}

// bulkCalls checks that a person's calls read back as stored, and that
// concurrent counts are not lost.
func (s *suite) bulkCalls() {
	at := s.now().Truncate(time.Microsecond)
	s.update(func(tx gatehouse.Tx) error {
		return tx.PutBulkCalls("ana", []time.Time{at, at.Add(time.Second)})
	})
	const calls = 8
	done := make(chan error, calls)
	for range calls {
		go func() {
			done <- s.store.Update(s.Context(), tenant, func(tx gatehouse.Tx) error {
				times, err := tx.LockBulkCalls("ana")
				if err != nil {
					return err
				}
				return tx.PutBulkCalls("ana", append(times, at.Add(time.Minute)))
			})
		}()
	}
	for range calls {
		if err := <-done; err != nil {
			s.Error(err)
		}
	}
	s.update(func(tx gatehouse.Tx) error {
		times, err := tx.LockBulkCalls("ana")
		if len(times) != 2+calls || !times[0].Equal(at) || !times[1].Equal(at.Add(time.Second)) {
			s.Errorf("times = %v", times)
		}
		return err
	})
	s.update(func(tx gatehouse.Tx) error {
		times, err := tx.LockBulkCalls("ben")
		s.same("of somebody else", len(times), 0)
		return err
	})
}

package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func laneOf(w *gatehouse.Workflow, tool string) gatehouse.Lane {
	return gatehouse.Lane{Tenant: w.Tenant, Workspace: w.Workspace, Workflow: w.Name, Tool: tool}
}

func (s *suite) claimSteps(lease time.Duration, shares ...gatehouse.StepShare) (got []*gatehouse.Step) {
	s.Helper()
	s.updateQueues(func(q gatehouse.Queues) (err error) { got, err = q.ClaimSteps("w1", lease, shares...); return err })
	s.heads(got)
	return got
}

// heads checks the run heads that an engine returns with claimed steps, and
// removes them so that all engines' steps compare equal.
func (s *suite) heads(claimed []*gatehouse.Step) {
	s.Helper()
	for _, st := range claimed {
		if st.Head == nil {
			continue
		}
		s.as(st.Tenant).view(func(tx gatehouse.ReadTx) error {
			head, err := tx.FindRunHead(st.RunID)
			s.same("the head of a claimed step's run", st.Head, head)
			return err
		})
		st.Head = nil
	}
}

// readySteps stores a run with n ready steps of a tool. The last step became ready first; the result is in the order of
// readiness.
func (s *suite) readySteps(w *gatehouse.Workflow, tool string, n int) []*gatehouse.Step {
	s.Helper()
	r := s.newRun(w)
	var inOrder []*gatehouse.Step
	for i := range n {
		st := s.newStep(r, fmt.Sprintf("s%d", i), i)
		at := r.CreatedAt.Add(-time.Duration(i) * time.Second)
		st.Tool, st.ReadyAt = tool, &at
		r.Steps = append(r.Steps, st)
		inOrder = append([]*gatehouse.Step{st}, inOrder...)
	}
	s.insert(r)
	return inOrder
}

func stepIDs(steps []*gatehouse.Step) (ids []string) {
	for _, st := range steps {
		ids = append(ids, st.ID)
	}
	return ids
}

func (s *suite) stepClaims() {
	w := s.workflow(tenant, "triage", 1)
	r := s.newRun(w, "a")
	blocked := s.newStep(r, "b", 1)
	blocked.Status, blocked.ReadyAt = gatehouse.StepBlocked, nil
	r.Steps = append(r.Steps, blocked)
	r.Steps[0].Input, r.Steps[0].Item, r.Steps[0].Output = `{"x":1.10}`, `[1]`, `"o"`
	s.insert(r)
	mine := gatehouse.StepShare{Lane: laneOf(w, ""), Limit: 10}
	for _, other := range []gatehouse.Lane{
		{Tenant: "acme", Workspace: w.Workspace, Workflow: w.Name}, {Tenant: tenant, Workspace: "x", Workflow: w.Name},
		{Tenant: tenant, Workspace: w.Workspace, Workflow: "x"},
		{Tenant: tenant, Workspace: w.Workspace, Workflow: w.Name, Tool: "x"},
	} {
		if got := s.claimSteps(time.Minute, gatehouse.StepShare{Lane: other, Limit: 10}); len(got) != 0 {
			s.Errorf("another lane's claim took %v", stepIDs(got))
		}
	}
	var now time.Time
	var got []*gatehouse.Step
	s.updateQueues(func(q gatehouse.Queues) (err error) {
		now = q.Now()
		got, err = q.ClaimSteps("w1", time.Minute, mine)
		return err
	})
	s.heads(got)
	until := now.Add(time.Minute)
	want := *r.Steps[0]
	want.Status, want.LeaseOwner, want.LeaseUntil, want.StartedAt, want.Generation, want.Attempts = gatehouse.StepRunning,
		"w1", &until, &now, 1, 1
	s.same("what was claimed", got, []*gatehouse.Step{&want})
	s.same("what is stored of it", s.findStep(&want), &want)
	if got := s.claimSteps(time.Minute, mine); len(got) != 0 {
		s.Errorf("claimed again: %v", stepIDs(got))
	}
	// A second lease continues the count of attempts, and has its own start time.
	s.moveStep(&want, gatehouse.StepRetrying)
	s.moveStep(&want, gatehouse.StepReady)
	s.updateQueues(func(q gatehouse.Queues) (err error) {
		now = q.Now()
		got, err = q.ClaimSteps("w1", time.Hour, mine)
		return err
	})
	if len(got) != 1 || got[0].Generation != 2 || got[0].Attempts != 2 || !got[0].StartedAt.Equal(now) {
		s.Errorf("claimed a second time: %+v", got)
	}
}

// stepShares checks that a claim takes from each lane what its share allows.
func (s *suite) stepShares() {
	s.newTenants("acme")
	a, b, c := s.workflow(tenant, "a", 1), s.workflow(tenant, "b", 1), s.workflow("acme", "a", 1)
	as, bs, cs := s.readySteps(a, "", 6), s.readySteps(b, "", 4), s.readySteps(c, "", 2)
	tool := s.readySteps(a, "page", 3)
	share := func(w *gatehouse.Workflow, tool string, limit, workflow, tenant int) gatehouse.StepShare {
		return gatehouse.StepShare{Lane: laneOf(w, tool), Limit: limit, MostOfWorkflow: workflow, MostOfTenant: tenant}
	}
	s.same("a claim without shares", stepIDs(s.claimSteps(time.Minute)), []string(nil))
	got := s.claimSteps(time.Minute, share(a, "", 2, 0, 0), share(b, "", 1, 0, 0), share(c, "", 0, 0, 0))
	s.same("those ready first, lane by lane", stepIDs(got), stepIDs(append(as[:2:2], bs[0])))
	got = s.claimSteps(time.Minute, share(a, "", 4, 3, 0))
	s.same("up to three of the workflow", stepIDs(got), stepIDs(as[2:3]))
	got = s.claimSteps(time.Minute, share(a, "page", 4, 3, 0))
	s.same("of another tool of the same workflow", stepIDs(got), []string(nil))
	got = s.claimSteps(time.Minute, share(a, "page", 4, 4, 0), share(a, "", 4, 5, 0))
	s.same("two lanes of one workflow", stepIDs(got), stepIDs(append(tool[:1:1], as[3])))
	got = s.claimSteps(time.Minute, share(b, "", 4, 9, 7), share(a, "", 4, 9, 7), share(c, "", 4, 9, 7))
	s.same("up to seven of the tenant", stepIDs(got), stepIDs(append(bs[1:2:2], cs...)))
	got = s.claimSteps(time.Minute, share(b, "", 4, 1, 1))
	s.same("more running than now allowed", stepIDs(got), []string(nil))
	// Waiting and ended steps no longer count as running.
	s.moveStep(s.findStep(as[0]), gatehouse.StepWaitingApproval)
	s.moveStep(s.findStep(as[1]), gatehouse.StepSucceeded)
	got = s.claimSteps(time.Minute, share(b, "", 4, 0, 7))
	s.same("into the places that became free", stepIDs(got), stepIDs(bs[2:4]))
}

// stepClaimRace lets many claim at once: no step is claimed twice, every step
// is claimed in the end, and no bound is exceeded.
func (s *suite) stepClaimRace() {
	for _, bound := range []struct{ workflow, tenant int }{{0, 0}, {3, 0}, {0, 4}, {3, 4}} {
		w, v := s.workflow(tenant, s.next(), 1), s.workflow(tenant, s.next(), 1)
		s.readySteps(w, "", 15)
		s.readySteps(v, "", 15)
		var mutex sync.Mutex
		holders := make(map[string]bool)
		var group sync.WaitGroup
		var done atomic.Int64
		for n := range 5 {
			group.Go(func() {
				for done.Load() < 30 {
					var got []*gatehouse.Step
					err := s.store.UpdateQueues(context.Background(), func(q gatehouse.Queues) (err error) {
						shares := []gatehouse.StepShare{
							{Lane: laneOf(w, ""), Limit: 2, MostOfWorkflow: bound.workflow, MostOfTenant: bound.tenant},
							{Lane: laneOf(v, ""), Limit: 2, MostOfWorkflow: bound.workflow, MostOfTenant: bound.tenant},
						}
						got, err = q.ClaimSteps(fmt.Sprint("w", n), time.Minute, shares[n%2], shares[1-n%2])
						return err
					})
					if err != nil {
						s.Error(err)
						return
					}
					s.withinBounds(bound.workflow, bound.tenant, w, v)
					mutex.Lock()
					for _, st := range got {
						if holders[st.ID] {
							s.Errorf("%s was claimed twice", st.ID)
						}
						holders[st.ID] = true
					}
					mutex.Unlock()
					for _, st := range got {
						err := s.store.Update(context.Background(), st.Tenant, func(tx gatehouse.Tx) error {
							return tx.UpdateStep(moved(st, gatehouse.StepSucceeded, tx.Now()), st.Status, st.Generation)
						})
						if err != nil {
							s.Error(err)
						}
					}
					done.Add(int64(len(got)))
				}
			})
		}
		group.Wait()
		if len(holders) != 30 {
			s.Errorf("%d of 30 steps were claimed", len(holders))
		}
	}
}

func (s *suite) withinBounds(workflow, inTenant int, of ...*gatehouse.Workflow) {
	s.Helper()
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		lanes, err := q.DueLanes(tenant, "", gatehouse.Lane{}, 10, 1)
		if err != nil {
			return err
		}
		total := 0
		for _, w := range of {
			for _, l := range lanes {
				if l.Workflow == w.Name && workflow > 0 && l.WorkflowRunning > workflow {
					s.Errorf("%d steps of a workflow are running, %d are allowed", l.WorkflowRunning, workflow)
				}
				total = max(total, l.TenantRunning)
			}
		}
		if inTenant > 0 && total > inTenant {
			s.Errorf("%d steps of a tenant are running, %d are allowed", total, inTenant)
		}
		return nil
	})
}

// dueLanes checks the lanes that DueLanes returns, their counts, and their order: round-robin after the given lane.
func (s *suite) dueLanes() {
	s.newTenants("acme", "beta")
	a, b, c, d := s.workflow("acme", "a", 1), s.workflow("acme", "b", 1), s.workflow("beta", "a", 1),
		s.workflow("beta", "z", 1)
	s.readySteps(a, "", 5)
	s.readySteps(b, "", 1)
	s.readySteps(c, "", 2)
	s.readySteps(d, "", 1)
	s.readySteps(c, "page", 3)
	other := *c
	other.Workspace = "alone" // another workspace of the same workflow
	s.readySteps(&other, "", 1)
	s.inState(d, gatehouse.StepBlocked)
	got := s.claimSteps(time.Minute,
		gatehouse.StepShare{Lane: laneOf(c, ""), Limit: 1}, gatehouse.StepShare{Lane: laneOf(c, "page"), Limit: 1},
		gatehouse.StepShare{Lane: laneOf(d, ""), Limit: 1})
	if len(got) != 3 {
		s.Fatalf("claimed %d, want 3", len(got))
	}
	la := gatehouse.DueLane{Lane: laneOf(a, ""), Ready: 4}
	lb := gatehouse.DueLane{Lane: laneOf(b, ""), Ready: 1}
	lo := gatehouse.DueLane{Lane: laneOf(&other, ""), Ready: 1, WorkflowRunning: 2, TenantRunning: 3}
	lc := gatehouse.DueLane{Lane: laneOf(c, ""), Ready: 1, WorkflowRunning: 2, TenantRunning: 3}
	lp := gatehouse.DueLane{Lane: laneOf(c, "page"), Ready: 2, WorkflowRunning: 2, TenantRunning: 3}
	at := func(l gatehouse.DueLane) gatehouse.Lane { return l.Lane }
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		for i, c := range []struct {
			tenant, tool string
			after        gatehouse.Lane
			limit        int
			want         []gatehouse.DueLane
		}{
			{"", "", gatehouse.Lane{}, 10, []gatehouse.DueLane{la, lb, lo, lc}},
			{"", "", gatehouse.Lane{}, 3, []gatehouse.DueLane{la, lb, lo}},
			{"", "", at(lb), 10, []gatehouse.DueLane{lo, lc, la, lb}},
			{"", "", at(lb), 3, []gatehouse.DueLane{lo, lc, la}},
			{"", "", at(lc), 10, []gatehouse.DueLane{la, lb, lo, lc}},
			{"", "", gatehouse.Lane{Tenant: "acme", Workspace: "support", Workflow: "aa"}, 10,
				[]gatehouse.DueLane{lb, lo, lc, la}},
			{"", "", gatehouse.Lane{Tenant: "zeta"}, 10, []gatehouse.DueLane{la, lb, lo, lc}},
			{"", "page", gatehouse.Lane{}, 10, []gatehouse.DueLane{lp}},
			{"", "page", at(lp), 10, []gatehouse.DueLane{lp}},
			{"", "none", gatehouse.Lane{}, 10, nil},
			{"beta", "", gatehouse.Lane{}, 10, []gatehouse.DueLane{lo, lc}},
			{"beta", "", at(lo), 10, []gatehouse.DueLane{lc, lo}},
			{"beta", "", at(lb), 10, []gatehouse.DueLane{lo, lc}},
			{"acme", "", at(lc), 10, []gatehouse.DueLane{la, lb}},
			{"acme", "", at(la), 1, []gatehouse.DueLane{lb}},
			{"nobody", "", gatehouse.Lane{}, 10, nil},
		} {
			got, err := q.DueLanes(c.tenant, c.tool, c.after, c.limit, 4)
			if err != nil {
				return err
			}
			s.same(fmt.Sprintf("lanes %d", i), got, c.want)
		}
		return nil
	})
}

// readyTools checks the list of tools with ready steps, over all tenants and for one.
func (s *suite) readyTools() {
	s.newTenants("acme", "beta")
	a, b := s.workflow("acme", "a", 1), s.workflow("beta", "b", 1)
	other := *b
	other.Workspace = "alone"
	first := func(steps []*gatehouse.Step) time.Time { return *steps[0].ReadyAt }
	zipped := first(s.readySteps(b, "zip", 1))
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		got, err := q.ReadyTools("", 1)
		s.same("the only tool with ready steps", got, []gatehouse.ReadyTool{{Tool: "zip", Since: zipped}})
		return err
	})
	built := first(s.readySteps(a, "", 3))
	mailed := first(s.readySteps(a, "mail", 2))
	paged := first(s.readySteps(&other, "page", 5)) // has waited longer than the lanes around it
	s.readySteps(b, "page", 2)
	pagedA := first(s.readySteps(a, "page", 3))
	s.inState(b, gatehouse.StepBlocked)
	if got := s.claimSteps(time.Minute, gatehouse.StepShare{Lane: laneOf(b, "zip"), Limit: 1},
		gatehouse.StepShare{Lane: laneOf(b, "page"), Limit: 1}); len(got) != 2 {
		s.Fatalf("claimed %d, want 2", len(got))
	}
	if got := s.claimSteps(time.Microsecond, gatehouse.StepShare{Lane: laneOf(a, "mail"), Limit: 1}); len(got) != 1 {
		s.Fatalf("claimed %d, want 1", len(got))
	}
	mailed = mailed.Add(time.Second)
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		for i, c := range []struct {
			tenant string
			limit  int
			want   []gatehouse.ReadyTool
		}{
			{"", 10, []gatehouse.ReadyTool{{Tool: "", Since: built}, {Tool: "mail", Since: mailed},
				{Tool: "page", Since: paged, Leased: true}}},
			{"", 1, []gatehouse.ReadyTool{{Tool: "", Since: built}}},
			{"acme", 10, []gatehouse.ReadyTool{{Tool: "", Since: built}, {Tool: "mail", Since: mailed},
				{Tool: "page", Since: pagedA}}},
			{"beta", 10, []gatehouse.ReadyTool{{Tool: "page", Since: paged, Leased: true}}},
			{"nobody", 10, nil},
		} {
			got, err := q.ReadyTools(c.tenant, c.limit)
			if err != nil {
				return err
			}
			s.same(fmt.Sprintf("tools %d", i), got, c.want)
		}
		return nil
	})
}

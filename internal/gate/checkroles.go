package gate

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// lateAfter is how long work may wait for its role without being reported: each
	// role polls about once a second, and a busy one may lag a little.
	lateAfter = 30 * time.Second
	// lateTenants bounds the tenants with due pushes that are checked, and
	// lateLines the workflows with queued runs.
	lateTenants = 64
	lateLines   = 64
	// lateTools bounds the tools, over all tenants, whose steps are checked, and
	// maxLateTools the tools that are reported.
	lateTools    = 1000
	maxLateTools = 16
	// lateLanes bounds the connectors of outside workers, also of removed ones, whose pushes are
	// checked, and maxLateLanes the connectors that are reported.
	lateLanes    = 64
	maxLateLanes = 16
)

// CheckRoles finds the oldest work that waits for the roles sequencer, dispatcher,
// sweeper and runner, over all tenants, since a role serves all of them. It reports
// late work only, so that nobody can observe the activity of other tenants. Outside
// workers belong to a tenant, so it checks those of the caller's tenant only.
func (g *Gate) CheckRoles(ctx context.Context) (*gatehouse.RoleCheck, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	var out *gatehouse.RoleCheck
	err = g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		out = &gatehouse.RoleCheck{Late: []gatehouse.LateWork{}}
		tell := func(late gatehouse.LateWork, since time.Time) {
			if waited := q.Now().Sub(since); !since.IsZero() && waited > lateAfter {
				late.Waited = gatehouse.Duration(waited.Truncate(time.Second))
				out.Late = append(out.Late, late)
			}
		}

		for _, look := range []func(gatehouse.ReadQueues) (gatehouse.LateWork, time.Time, error){
			lateLeaf, latePush, lateExpiry, lateRun, lateQueued, lateStep,
		} {
			late, since, err := look(q)
			if err != nil {
				return err
			}
			tell(late, since)
		}

		tools, err := q.ReadyTools(c.Principal.Tenant, lateTools)
		if err != nil {
			return err
		}
		before := len(out.Late)
		for _, t := range tools {
			if t.Tool != "" && len(out.Late) < before+maxLateTools {
				tell(gatehouse.LateWork{Role: "worker", Tool: t.Tool, What: "a step of the tool " + t.Tool + " has been ready",
					Busy: t.Leased}, t.Since)
			}
		}

		before = len(out.Late)
		tx := q.In(c.Principal.Tenant)
		lanes, err := tx.WaitingLanes(lateLanes)
		if err != nil {
			return err
		}
		for _, lane := range lanes {
			if len(out.Late) == before+maxLateLanes {
				break
			}
			since, leased, err := tx.DueInLane(lane)
			if err != nil {
				return err
			}
			tell(gatehouse.LateWork{Role: "worker", Connector: lane, What: "a push of the connector " + lane + " has been due",
				Busy: leased}, since)
		}
		return nil
	})
	return out, err
}

func lateLeaf(q gatehouse.ReadQueues) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "sequencer", What: "an entry of the audit log has waited for its number"}
	leaves, err := q.UnnumberedLeaves(1)
	if err != nil || len(leaves) == 0 {
		return late, since, err
	}
	at, _ := leaves[0].Body.Get("at")
	text, _ := at.Text()
	since, err = time.Parse(time.RFC3339Nano, text)
	return late, since, err
}

// latePush checks queued pushes and ended leases, both of which a dispatcher
// handles. While a dispatcher has pushes of these tenants in flight, a push may
// wait for the tenant's bound.
func latePush(q gatehouse.ReadQueues) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "dispatcher", What: "a push has been due"}
	if since, err = q.NextPushAt(); err != nil {
		return late, since, err
	}
	due, err := q.DueTenants("", lateTenants, 1)
	if err != nil {
		return late, since, err
	}
	lost, err := q.ExpiredLeases(1)
	if err != nil {
		return late, since, err
	}
	for _, d := range due {
		late.Busy = late.Busy || len(lost) == 0 && d.InFlight > 0
	}
	return late, since, nil
}

func lateExpiry(q gatehouse.ReadQueues) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "sweeper", What: "an approval that has expired has waited to be closed"}
	refs, err := q.ExpiredActions(1)
	if err != nil || len(refs) == 0 {
		return late, since, err
	}
	a, err := q.In(refs[0].Tenant).FindAction(refs[0].ID)
	if err != nil || a.Approval == nil {
		return late, since, err
	}
	return late, a.Approval.End(), nil
}

// lateRun checks the runs' timers. For a step whose action or child run has ended,
// the store does not know since when it could continue, so it is not checked.
func lateRun(q gatehouse.ReadQueues) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "runner", What: "a retry, a wait, a deadline or a schedule of runs has been due"}
	earliest := func(at *time.Time) {
		if at != nil && (since.IsZero() || at.Before(since)) {
			since = *at
		}
	}
	for _, find := range []func(int) ([]gatehouse.StepRef, error){q.DueSteps, q.ExpiredSteps} {
		refs, err := find(1)
		if err != nil {
			return late, since, err
		}
		for _, ref := range refs {
			s, err := q.In(ref.Tenant).FindStep(ref.StepID)
			if err != nil {
				return late, since, err
			}
			earliest(s.DueAt)
			earliest(s.LeaseUntil)
		}
	}
	runs, err := q.OverdueRuns(1)
	if err != nil {
		return late, since, err
	}
	for _, r := range runs {
		earliest(r.Deadline)
	}
	schedules, err := q.DueSchedules(1)
	for _, s := range schedules {
		earliest(&s.NextAt)
	}
	return late, since, err
}

// lateQueued checks the runs that wait for max_runs_per_min. Every bound admits a
// run each minute: if the tenant has started none for longer than that, no bound
// explains the wait.
func lateQueued(q gatehouse.ReadQueues) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "runner", What: "a run in line for max_runs_per_min has been queued"}
	lines, err := q.QueuedLanes(gatehouse.QueuedLane{}, lateLines, 1, q.Now().Add(-time.Minute-lateAfter))
	if err != nil {
		return late, since, err
	}
	var held time.Time // the oldest run that a bound may hold back
	for _, line := range lines {
		runs, err := q.In(line.Tenant).OldestQueued(line.Workflow, 1)
		if err != nil {
			return late, since, err
		}
		oldest := &since
		if line.TenantStarted > 0 {
			oldest = &held
		}
		if len(runs) > 0 && (oldest.IsZero() || runs[0].CreatedAt.Before(*oldest)) {
			*oldest = runs[0].CreatedAt
		}
	}
	if since.IsZero() || q.Now().Sub(since) <= lateAfter {
		late.Busy, since = true, held
	}
	return late, since, nil
}

// lateStep checks the ready built-in steps.
func lateStep(q gatehouse.ReadQueues) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "runner", What: "a built-in step has been ready"}
	tools, err := q.ReadyTools("", 1)
	if err != nil || len(tools) == 0 || tools[0].Tool != "" {
		return late, since, err
	}
	late.Busy = tools[0].Leased
	return late, tools[0].Since, nil
}

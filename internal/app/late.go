package app

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// lateAfter is how long work may wait for its role untold: each role looks
	// about once a second, and a busy one may be some behind.
	lateAfter = 30 * time.Second
	// lateTenants bounds the tenants with due pushes that are looked at, and
	// lateLines the workflows with runs in line.
	lateTenants = 64
	lateLines   = 64
	// lateTools bounds the tools whose steps are looked at, of all tenants, and
	// maxLateTools those of them that are told.
	lateTools    = 1000
	maxLateTools = 16
)

// CheckRoles looks for the oldest of what waits for each role, over all tenants:
// a role is no tenant's. What is not late is not told, so that nobody sees from
// it when others are at work. Of outside workers, which are a tenant's, it tells
// the caller's tenant.
func (g *Gate) CheckRoles(ctx context.Context) (*gatehouse.RoleCheck, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := require(c, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	var out *gatehouse.RoleCheck
	err = g.store.View(ctx, func(tx gatehouse.ReadTx) error {
		out = &gatehouse.RoleCheck{Late: []gatehouse.LateWork{}}
		tell := func(late gatehouse.LateWork, since time.Time) {
			if waited := tx.Now().Sub(since); !since.IsZero() && waited > lateAfter {
				late.Waited = gatehouse.Duration(waited.Truncate(time.Second))
				out.Late = append(out.Late, late)
			}
		}
		for _, look := range []func(gatehouse.ReadTx) (gatehouse.LateWork, time.Time, error){
			lateLeaf, latePush, lateExpiry, lateRun, lateQueued, lateStep,
		} {
			late, since, err := look(tx)
			if err != nil {
				return err
			}
			tell(late, since)
		}
		tools, err := tx.ReadyTools(c.Principal.Tenant, lateTools)
		if err != nil {
			return err
		}
		before := len(out.Late)
		for _, t := range tools {
			if t.Tool != "" && len(out.Late) < before+maxLateTools {
				tell(gatehouse.LateWork{Role: "worker", Tool: t.Tool, What: "a step of the tool " + t.Tool + " has been ready", Busy: t.Leased}, t.Since)
			}
		}
		return nil
	})
	return out, err
}

func lateLeaf(tx gatehouse.ReadTx) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "sequencer", What: "an entry of the audit log has waited for its number"}
	leaves, err := tx.UnnumberedLeaves(1)
	if err != nil || len(leaves) == 0 {
		return late, since, err
	}
	at, _ := leaves[0].Body.Get("at")
	text, _ := at.Text()
	since, err = time.Parse(time.RFC3339Nano, text)
	return late, since, err
}

// latePush looks at what is queued and at leases that have ended, which are a
// dispatcher's too. While one holds others of those tenants, their bounds may be
// what a push waits for.
func latePush(tx gatehouse.ReadTx) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "dispatcher", What: "a push has been due"}
	if since, err = tx.NextPushAt(); err != nil {
		return late, since, err
	}
	due, err := tx.DueTenants("", lateTenants, 1)
	if err != nil {
		return late, since, err
	}
	lost, err := tx.ExpiredLeases(1)
	if err != nil {
		return late, since, err
	}
	for _, d := range due {
		late.Busy = late.Busy || len(lost) == 0 && d.InFlight > 0
	}
	return late, since, nil
}

func lateExpiry(tx gatehouse.ReadTx) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "sweeper", What: "an approval that has expired has waited to be closed"}
	refs, err := tx.ExpiredActions(1)
	if err != nil || len(refs) == 0 {
		return late, since, err
	}
	a, err := tx.FindAction(refs[0].Tenant, refs[0].ID)
	if err != nil || a.Approval == nil {
		return late, since, err
	}
	return late, a.Approval.End(), nil
}

// lateRun looks at what the clock begins, ends or goes on with. Of a step whose
// action or child run has ended nobody knows since when it can go on.
func lateRun(tx gatehouse.ReadTx) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "runner", What: "a retry, a wait, a deadline or a schedule of runs has been due"}
	earliest := func(at *time.Time) {
		if at != nil && (since.IsZero() || at.Before(since)) {
			since = *at
		}
	}
	for _, find := range []func(int) ([]gatehouse.StepRef, error){tx.DueSteps, tx.ExpiredSteps} {
		refs, err := find(1)
		if err != nil {
			return late, since, err
		}
		for _, ref := range refs {
			s, err := tx.FindStep(ref.Tenant, ref.StepID)
			if err != nil {
				return late, since, err
			}
			earliest(s.DueAt)
			earliest(s.LeaseUntil)
		}
	}
	runs, err := tx.OverdueRuns(1)
	if err != nil {
		return late, since, err
	}
	for _, r := range runs {
		earliest(r.Deadline)
	}
	schedules, err := tx.DueSchedules(1)
	for _, s := range schedules {
		earliest(&s.NextAt)
	}
	return late, since, err
}

// lateQueued looks at the runs that wait for max_runs_per_min. Every bound lets a
// run begin in each minute: where the tenant has begun none for longer than that,
// it is not a bound that holds its runs.
func lateQueued(tx gatehouse.ReadTx) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "runner", What: "a run in line for max_runs_per_min has been queued"}
	lines, err := tx.QueuedLanes(gatehouse.QueuedLane{}, lateLines, 1, tx.Now().Add(-minute-lateAfter))
	if err != nil {
		return late, since, err
	}
	var held time.Time // since when the oldest waits that a bound may hold
	for _, q := range lines {
		runs, err := tx.OldestQueued(q.Tenant, q.Workflow, 1)
		if err != nil {
			return late, since, err
		}
		oldest := &since
		if q.TenantStarted > 0 {
			oldest = &held
		}
		if len(runs) > 0 && (oldest.IsZero() || runs[0].CreatedAt.Before(*oldest)) {
			*oldest = runs[0].CreatedAt
		}
	}
	if since.IsZero() || tx.Now().Sub(since) <= lateAfter {
		late.Busy, since = true, held
	}
	return late, since, nil
}

// lateStep looks at the ready steps that are built in.
func lateStep(tx gatehouse.ReadTx) (late gatehouse.LateWork, since time.Time, err error) {
	late = gatehouse.LateWork{Role: "runner", What: "a built-in step has been ready"}
	tools, err := tx.ReadyTools("", 1)
	if err != nil || len(tools) == 0 || tools[0].Tool != "" {
		return late, since, err
	}
	late.Busy = tools[0].Leased
	return late, tools[0].Since, nil
}

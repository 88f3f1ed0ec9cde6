package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (w readWalls) FindWorkflow(tenant, name string, version int) (*gatehouse.Workflow, error) {
	return w.in(tenant).FindWorkflow(tenant, name, version)
}

func (w readWalls) ListWorkflows(tenant string, since time.Time, cursor string, limit int) (gatehouse.Page[*gatehouse.WorkflowSummary], error) {
	return w.in(tenant).ListWorkflows(tenant, since, cursor, limit)
}

func (w readWalls) ListWorkflowVersions(tenant, name string) ([]*gatehouse.Workflow, error) {
	return w.in(tenant).ListWorkflowVersions(tenant, name)
}

func (w readWalls) FindRun(tenant, id string) (*gatehouse.Run, error) {
	return w.in(tenant).FindRun(tenant, id)
}

func (w readWalls) FindRunByRef(tenant, workflow, ref string) (*gatehouse.Run, error) {
	return w.in(tenant).FindRunByRef(tenant, workflow, ref)
}

func (w readWalls) FindRunHead(tenant, id string) (*gatehouse.Run, error) {
	return w.in(tenant).FindRunHead(tenant, id)
}

func (w readWalls) FindRunBodies(tenant, id string) (input, output gatehouse.JSON, err error) {
	return w.in(tenant).FindRunBodies(tenant, id)
}

func (w readWalls) ListLineage(tenant, id string) ([]*gatehouse.Run, error) {
	return w.in(tenant).ListLineage(tenant, id)
}

func (w readWalls) ListRuns(tenant string, f gatehouse.RunFilter) (gatehouse.Page[*gatehouse.Run], error) {
	return w.in(tenant).ListRuns(tenant, f)
}

func (w readWalls) FindStep(tenant, id string) (*gatehouse.Step, error) {
	return w.in(tenant).FindStep(tenant, id)
}

func (w readWalls) FindStepOf(tenant, runID, key string) (*gatehouse.Step, error) {
	return w.in(tenant).FindStepOf(tenant, runID, key)
}

func (w readWalls) ListItems(tenant, stepID string, open bool) ([]*gatehouse.Step, error) {
	return w.in(tenant).ListItems(tenant, stepID, open)
}

func (w readWalls) CountSteps(tenant, runID string) (int, error) {
	return w.in(tenant).CountSteps(tenant, runID)
}

func (w readWalls) FindStepByKey(tenant, idempotencyKey string) (*gatehouse.Step, error) {
	return w.in(tenant).FindStepByKey(tenant, idempotencyKey)
}

func (w readWalls) FindStepByAction(tenant, actionID string) (*gatehouse.Step, error) {
	return w.in(tenant).FindStepByAction(tenant, actionID)
}

func (w readWalls) ListAttempts(tenant, runID string) ([]*gatehouse.StepAttempt, error) {
	return w.in(tenant).ListAttempts(tenant, runID)
}

func (w readWalls) ListUsage(tenant, runID string) ([]*gatehouse.ModelUsage, error) {
	return w.in(tenant).ListUsage(tenant, runID)
}

func (w readWalls) ListSignals(tenant, runID string) ([]*gatehouse.Signal, error) {
	return w.in(tenant).ListSignals(tenant, runID)
}

func (w readWalls) Spent(tenant, workflow, currency string, since time.Time) (gatehouse.Decimal, error) {
	return w.in(tenant).Spent(tenant, workflow, currency, since)
}

func (w readWalls) BudgetClaimed(tenant, workflow, currency string, since time.Time) (gatehouse.Decimal, error) {
	return w.in(tenant).BudgetClaimed(tenant, workflow, currency, since)
}

func (w readWalls) ListReflexions(tenant, workflow, readBy, cursor string, limit int) (gatehouse.Page[*gatehouse.Reflexion], error) {
	return w.in(tenant).ListReflexions(tenant, workflow, readBy, cursor, limit)
}

func (w readWalls) FindBundle(tenant, runID string) (*gatehouse.Bundle, error) {
	return w.in(tenant).FindBundle(tenant, runID)
}

func (w readWalls) ListRunEntries(tenant, runID string) ([]*gatehouse.Entry, error) {
	return w.in(tenant).ListRunEntries(tenant, runID)
}

func (w readWalls) DueLanes(tenant, tool string, after gatehouse.Lane, limit, each int) ([]gatehouse.DueLane, error) {
	if tenant != "" {
		return w.in(tenant).DueLanes(tenant, tool, after, limit, each)
	}
	return w.all().DueLanes(tenant, tool, after, limit, each)
}

func (w readWalls) ReadyTools(tenant string, limit int) ([]gatehouse.ReadyTool, error) {
	return w.all().ReadyTools(tenant, limit)
}

func (w readWalls) QueuedLanes(after gatehouse.QueuedLane, limit, each int, since time.Time) ([]gatehouse.QueuedLane, error) {
	return w.all().QueuedLanes(after, limit, each, since)
}

func (w readWalls) OldestQueued(tenant, workflow string, limit int) ([]*gatehouse.Run, error) {
	return w.in(tenant).OldestQueued(tenant, workflow, limit)
}

func (w readWalls) StartedRuns(tenant, workflow string, since time.Time) (ofWorkflow, ofTenant int, err error) {
	return w.in(tenant).StartedRuns(tenant, workflow, since)
}

func (w readWalls) SettledSteps(limit int) ([]gatehouse.StepRef, error) {
	return w.all().SettledSteps(limit)
}

func (w readWalls) DueSteps(limit int) ([]gatehouse.StepRef, error) {
	return w.all().DueSteps(limit)
}

func (w readWalls) ExpiredSteps(limit int) ([]gatehouse.StepRef, error) {
	return w.all().ExpiredSteps(limit)
}

func (w readWalls) OverdueRuns(limit int) ([]*gatehouse.Run, error) {
	return w.all().OverdueRuns(limit)
}

func (w readWalls) UnbundledRuns(limit int) ([]*gatehouse.Run, error) {
	return w.all().UnbundledRuns(limit)
}

func (w readWalls) DueSchedules(limit int) ([]*gatehouse.Schedule, error) {
	return w.all().DueSchedules(limit)
}

func (w readWalls) NextRunWorkAt() (time.Time, error) {
	return w.all().NextRunWorkAt()
}

func (w readWalls) RunCounts() (map[gatehouse.RunStatus]int, error) {
	return w.all().RunCounts()
}

func (w walls) InsertWorkflow(f *gatehouse.Workflow) error {
	return w.in(f.Tenant).InsertWorkflow(f)
}

func (w walls) PutSchedule(s *gatehouse.Schedule, from time.Time) error {
	return w.in(s.Tenant).PutSchedule(s, from)
}

func (w walls) InsertRun(r *gatehouse.Run) error {
	return w.in(r.Tenant).InsertRun(r)
}

func (w walls) LockRun(tenant, id, item string) (*gatehouse.Run, error) {
	return w.in(tenant).LockRun(tenant, id, item)
}

func (w walls) LockRunHead(tenant, id string) (*gatehouse.Run, error) {
	return w.in(tenant).LockRunHead(tenant, id)
}

func (w walls) MoveRun(r *gatehouse.Run, from gatehouse.RunStatus) error {
	return w.in(r.Tenant).MoveRun(r, from)
}

func (w walls) LockAdmission(tenant string) error { return w.in(tenant).LockAdmission(tenant) }

func (w walls) InsertSteps(steps ...*gatehouse.Step) error {
	if len(steps) == 0 {
		return nil
	}
	return w.in(steps[0].Tenant).InsertSteps(steps...) // a run's
}

func (w walls) ClaimSteps(owner string, lease time.Duration, shares ...gatehouse.StepShare) ([]*gatehouse.Step, error) {
	return w.all().ClaimSteps(owner, lease, shares...)
}

func (w walls) PassStep(s *gatehouse.Step, worker string) error {
	return w.in(s.Tenant).PassStep(s, worker)
}

func (w walls) UpdateStep(s *gatehouse.Step, from gatehouse.StepStatus, generation int) error {
	return w.in(s.Tenant).UpdateStep(s, from, generation)
}

func (w walls) InsertAttempt(a *gatehouse.StepAttempt) error {
	return w.in(a.Tenant).InsertAttempt(a)
}

func (w walls) InsertUsage(u *gatehouse.ModelUsage) error {
	return w.in(u.Tenant).InsertUsage(u)
}

func (w walls) LockBudget(tenant string) error { return w.in(tenant).LockBudget(tenant) }

func (w walls) ClaimBudget(c *gatehouse.BudgetClaim, forget time.Time) error {
	return w.in(c.Tenant).ClaimBudget(c, forget)
}

func (w walls) ReleaseBudget(tenant, stepID string, generation int) error {
	return w.in(tenant).ReleaseBudget(tenant, stepID, generation)
}

func (w readWalls) ListHands(tenant, runID string) ([]string, error) {
	return w.in(tenant).ListHands(tenant, runID)
}

func (w walls) InsertHand(tenant, runID, principal string) error {
	return w.in(tenant).InsertHand(tenant, runID, principal)
}

func (w walls) InsertSignal(s *gatehouse.Signal) error {
	return w.in(s.Tenant).InsertSignal(s)
}

func (w walls) TakeSignal(tenant, runID, name string) (*gatehouse.Signal, error) {
	return w.in(tenant).TakeSignal(tenant, runID, name)
}

func (w walls) InsertReflexion(r *gatehouse.Reflexion) error {
	return w.in(r.Tenant).InsertReflexion(r)
}

func (w walls) InsertBundle(b *gatehouse.Bundle) error {
	return w.in(b.Tenant).InsertBundle(b)
}

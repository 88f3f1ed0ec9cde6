package gatehouse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The bounds of a mandate.
const (
	// MaxMandateLevel is the highest risk level that a mandate covers.
	MaxMandateLevel = L4
	// MaxMandateWindow is the longest duration of a mandate; the policy can lower it.
	MaxMandateWindow = 31 * 24 * time.Hour
	// DefaultMandateWindow is the policy's longest duration where it names none.
	DefaultMandateWindow = 7 * 24 * time.Hour
	// MaxMandateSteps is the highest number of steps, MaxMandateKeys the highest
	// number of keys in all steps.
	MaxMandateSteps = 20
	MaxMandateKeys  = 200
	// MaxMandateGoal is the greatest length of a goal, in bytes.
	MaxMandateGoal = 4096
	// MaxMandates is the highest number of open mandates of one agent.
	MaxMandates = 20
)

// Cover selects the actions that one step of a plan covers.
type Cover struct {
	ActionType string `json:"action_type"`
	Connector  string `json:"connector"`
	// Fingerprint is the connector's fingerprint when the plan was proposed; the
	// server sets it. After a change of its definition, the connector is not covered.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Operation is the connector's operation.
	Operation string `json:"operation"`
	// EntityType is the kind of record; see [Target].
	EntityType string `json:"entity_type"`
	// Keys are the only records that the step may change; nil for all of the type.
	Keys []string `json:"keys,omitempty"`
	// When is a CEL condition over the facts of a policy, except its calendar; "true"
	// where the plan names none.
	When string `json:"when,omitempty"`
}

// Covers reports whether the step covers an action of one target, apart from its
// condition.
func (c *Cover) Covers(a *Action) bool {
	return c.ActionType == a.ActionType && c.Connector == a.Connector && c.Fingerprint == a.Fingerprint &&
		c.Operation == a.Operation && c.EntityType == a.Target.EntityType &&
		(len(c.Keys) == 0 || slices.Contains(c.Keys, a.Target.EntityRef))
}

// PlanStep is one step of a plan: the actions that it covers, and their limit.
type PlanStep struct {
	Cover
	Limit
}

// Plan is an agent's request for a mandate of its own.
type Plan struct {
	// Goal describes the purpose of the plan. It authorises nothing.
	Goal string `json:"goal"`
	// Steps are 1 to [MaxMandateSteps].
	Steps []PlanStep `json:"steps"`
	// InAll limits all steps together; nil for the sum of the steps.
	InAll *Limit `json:"in_all,omitempty"`
	// PerDay limits each day in UTC; nil for no such limit. Without amounts, those of InAll apply.
	PerDay *Limit `json:"per_day,omitempty"`
	// MaxLevel is the highest level that the plan covers; 0 for the policy's, at most L3.
	MaxLevel RiskLevel `json:"max_level,omitempty"`
	// For is the duration of the mandate from the proposal of the plan.
	For Duration `json:"for"`
}

// Validate checks the plan without any lookup.
func (p *Plan) Validate() error {
	var v Violations
	if strings.TrimSpace(p.Goal) == "" {
		v.Add("/goal", "is required")
	}
	v.CheckText("/goal", p.Goal, MaxMandateGoal)
	if len(p.Steps) == 0 || len(p.Steps) > MaxMandateSteps {
		v.Add("/steps", "must have 1 to %d steps", MaxMandateSteps)
	}
	keys, actions := 0, 0
	for i := range p.Steps {
		keys += len(p.Steps[i].Keys)
		actions += p.Steps[i].Count
		p.Steps[i].check(&v, fmt.Sprintf("/steps/%d", i), p.MaxLevel)
	}
	if keys > MaxMandateKeys {
		v.Add("/steps", "have more than %d keys", MaxMandateKeys)
	}
	if p.InAll != nil {
		p.InAll.check(&v, "/in_all")
	} else if actions > MaxGrantCount {
		v.Add("/in_all", "is required: the steps have more than %d actions together", MaxGrantCount)
	}
	if p.PerDay != nil {
		p.PerDay.check(&v, "/per_day")
	}
	if p.MaxLevel < 0 || p.MaxLevel > MaxMandateLevel {
		v.Add("/max_level", "must be 1 to %d: L5 is never approved in advance", MaxMandateLevel)
	}
	if p.For.D() < MinGrantWindow || p.For.D() > MaxMandateWindow {
		v.Add("/for", "must be %s to %s", Duration(MinGrantWindow), Duration(MaxMandateWindow))
	}
	return v.Err()
}

func (s *PlanStep) check(v *Violations, at string, level RiskLevel) {
	for _, field := range []struct{ name, value string }{
		{"/action_type", s.ActionType}, {"/connector", s.Connector}, {"/operation", s.Operation},
		{"/entity_type", s.EntityType},
	} {
		if strings.TrimSpace(field.value) == "" {
			v.Add(at+field.name, "is required")
		}
		v.CheckText(at+field.name, field.value, 128)
	}
	if s.ActionType != "" && (!ValidName(s.ActionType) || s.ActionType != strings.ToLower(s.ActionType)) {
		v.Add(at+"/action_type", "must be lower-case letters, digits, or any of ._@:+-")
	}
	if s.Fingerprint != "" {
		v.Add(at+"/fingerprint", "is set by the server")
	}
	for i, key := range s.Keys {
		if key == "" {
			v.Add(fmt.Sprintf("%s/keys/%d", at, i), "is empty")
		}
		v.CheckText(fmt.Sprintf("%s/keys/%d", at, i), key, 128)
	}
	if level == L4 && len(s.Keys) == 0 {
		v.Add(at+"/keys", "are required at L4: the exact records")
	}
	v.CheckText(at+"/when", s.When, MaxGrantCondition)
	s.Limit.check(v, at)
}

// sum adds up the limits of the steps.
func (p *Plan) sum() Limit {
	var b Budget
	for _, s := range p.Steps {
		b.Used += s.Count - 1
		b.Use(s.Amounts)
	}
	return Limit{Count: b.Used, Amounts: b.UsedAmounts}
}

// Terms is the change of an action that asks for a mandate: people approve it.
type Terms struct {
	// Agent is the principal id of the agent that may use the mandate.
	Agent string `json:"agent"`
	// AgentName is the agent's name, for the approvers.
	AgentName string `json:"agent_name"`
	// Steps are as in the plan, with the fingerprints of their connectors.
	Steps []PlanStep `json:"steps"`
	// InAll limits all steps together.
	InAll Limit `json:"in_all"`
	// PerDay limits each day in UTC; nil for no such limit.
	PerDay *Limit `json:"per_day,omitempty"`
	// MaxLevel is the highest risk level that the mandate covers.
	MaxLevel RiskLevel `json:"max_level"`
	// Until is when the mandate ends.
	Until time.Time `json:"until"`
}

// Terms completes an agent's valid plan. upTo is the highest level that the policy lets a
// mandate cover, and now the time of the proposal.
func (p *Plan) Terms(agent *Principal, upTo RiskLevel, now time.Time) *Terms {
	t := &Terms{
		Agent: agent.ID, AgentName: agent.Name, Steps: slices.Clone(p.Steps), InAll: p.sum(),
		MaxLevel: cmp.Or(p.MaxLevel, min(upTo, MaxGrantLevel)), Until: now.Add(p.For.D().Truncate(time.Microsecond)),
	}
	for i := range t.Steps {
		t.Steps[i].When = cmp.Or(strings.TrimSpace(t.Steps[i].When), "true")
	}
	if p.InAll != nil {
		t.InAll = *p.InAll
	}
	if p.PerDay != nil {
		day := *p.PerDay
		if len(day.Amounts) == 0 {
			day.Amounts = t.InAll.Amounts
		}
		t.PerDay = &day
	}
	return t
}

// WorstCase describes the most that can happen under the terms.
func (t *Terms) WorstCase() string {
	const shownCondition = 80 // characters
	steps := make([]string, len(t.Steps))
	for i, s := range t.Steps {
		steps[i] = fmt.Sprintf("%s (%s of %s), %s", s.ActionType, s.Operation, s.Connector, counted(s.Count, "time"))
		if when := strings.Join(strings.Fields(s.When), " "); when != "" && when != "true" {
			if r := []rune(when); len(r) > shownCondition {
				when = string(r[:shownCondition]) + "…"
			}
			steps[i] += ", when " + when
		}
		if n := len(s.Keys); n > 0 {
			steps[i] += ", on " + counted(n, "named record")
		}
	}
	text := fmt.Sprintf("at most %s by %s", counted(t.InAll.Count, "action"), t.AgentName)
	if len(t.InAll.Amounts) > 0 {
		text += ", " + t.InAll.money() + " in all"
	} else {
		text += ", without money"
	}
	if t.PerDay != nil {
		text += ", " + counted(t.PerDay.Count, "action")
		if money := t.PerDay.money(); money != "" {
			text += " and " + money
		}
		text += " a day"
	}
	return text + fmt.Sprintf(", up to %s, until %s: ", t.MaxLevel, t.Until.UTC().Format("2006-01-02 15:04:05 UTC")) +
		strings.Join(steps, "; ")
}

// MandateStep is a step of a mandate, with the used part of its limit.
type MandateStep struct {
	Cover
	Budget
}

// MandateVoter is a person whose approval of the plan can count as a vote for each use.
type MandateVoter struct {
	// ID is the voter's principal id.
	ID string `json:"id"`
	// Name is the voter's name at the approval.
	Name string `json:"name"`
}

// Mandate is an approved plan: people approved one agent's actions in advance, in
// several steps, with limits per step, in all, and per day. The policy judges each
// action that uses the mandate. The action has its own approval, with votes of the
// people who approved the plan, and is counted in the transaction that proposes it.
type Mandate struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Action is the id of the action by which people approved the plan.
	Action string `json:"action"`
	// Agent is the id of the one principal that may use the mandate.
	Agent string `json:"agent"`
	// AgentName is the agent's name at the proposal of the plan.
	AgentName string `json:"agent_name"`
	// Goal is the agent's text. It authorises nothing.
	Goal string `json:"goal"`
	// Steps have their own limits, each with its used part.
	Steps []MandateStep `json:"steps"`
	// InAll limits all steps together.
	InAll Budget `json:"in_all"`
	// PerDay is the budget of Day, a date in UTC; nil for no limit per day, "" before the first use.
	// Each day begins with the same limit.
	PerDay *Budget `json:"per_day,omitempty"`
	Day    string  `json:"day,omitempty"`
	// Level is the highest risk level that the mandate covers.
	Level RiskLevel `json:"max_level"`
	// Voters are the people who approved the plan.
	Voters []MandateVoter `json:"voters"`

	// CreatedAt begins the mandate.
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt ends the mandate, unless it ends earlier.
	ExpiresAt time.Time `json:"expires_at"`
	// PausedAt is set while the mandate is paused, and so approves nothing. Then either
	// PausedBy names the person who paused it, or PausedAction is the action that failed
	// or has an unknown outcome.
	PausedAt     *time.Time `json:"paused_at,omitempty"`
	PausedBy     string     `json:"paused_by,omitempty"`
	PausedAction string     `json:"paused_action,omitempty"`
	// EndedAt is set when the mandate ended before ExpiresAt.
	EndedAt *time.Time `json:"ended_at,omitempty"`
	// EndedBy names the principal whose request or action ended the mandate, or a sign-in
	// provider, or "somebody at the machine"; "" for none.
	EndedBy string `json:"ended_by,omitempty"`
	// EndReason says why it ended early.
	EndReason GrantEnd `json:"end_reason,omitempty"`
	// Worst is [Mandate.WorstCase] in answers; it is not stored.
	Worst string `json:"worst_case,omitempty"`
}

// Mandate makes the mandate of a plan that was approved as the action a.
func (t *Terms) Mandate(id string, a *Action, now time.Time) *Mandate {
	m := &Mandate{
		ID: id, Tenant: a.Tenant, Action: a.ID, Agent: t.Agent, AgentName: t.AgentName, Goal: a.Rationale,
		InAll: Budget{Limit: t.InAll}, Level: t.MaxLevel, CreatedAt: now, ExpiresAt: t.Until,
	}
	for _, s := range t.Steps {
		m.Steps = append(m.Steps, MandateStep{Cover: s.Cover, Budget: Budget{Limit: s.Limit}})
	}
	if t.PerDay != nil {
		m.PerDay = &Budget{Limit: *t.PerDay}
	}
	for _, v := range a.Approval.Votes {
		if v.Decision == Approve {
			m.Voters = append(m.Voters, MandateVoter{v.PrincipalID, v.Name})
		}
	}
	return m
}

// HoldsAt reports whether the mandate approves actions at a time.
func (m *Mandate) HoldsAt(at time.Time) bool {
	return m.EndedAt == nil && m.PausedAt == nil && at.Before(m.ExpiresAt)
}

// Fits reports whether one more action of a step, with these amounts, fits in the
// budgets of the step, of all steps, and of the day.
func (m *Mandate) Fits(step int, moved []Magnitude, now time.Time) bool {
	day := m.today(now)
	return m.Steps[step].Fits(moved) && m.InAll.Fits(moved) && (day == nil || day.Fits(moved))
}

// Use counts one action of a step.
func (m *Mandate) Use(step int, moved []Magnitude, now time.Time) {
	m.Steps[step].Use(moved)
	m.InAll.Use(moved)
	if day := m.today(now); day != nil {
		day.Use(moved)
		m.PerDay, m.Day = day, dayOf(now)
	}
}

// today is the budget of the day, nil for none.
func (m *Mandate) today(now time.Time) *Budget {
	if m.PerDay == nil {
		return nil
	}
	if m.Day != dayOf(now) {
		return &Budget{Limit: m.PerDay.Limit}
	}
	day := *m.PerDay
	return &day
}

func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// MandateLeft is the unused part of a mandate's limits.
type MandateLeft struct {
	// InAll is the unused part of all steps together.
	InAll Limit `json:"in_all"`
	// Today is nil for a mandate without a limit per day.
	Today *Limit `json:"today,omitempty"`
	// Steps are in the order of the mandate's steps.
	Steps []Limit `json:"steps"`
}

// Left returns the unused part of the limits at a time.
func (m *Mandate) Left(now time.Time) MandateLeft {
	left := MandateLeft{InAll: m.InAll.Left()}
	if day := m.today(now); day != nil {
		today := day.Left()
		left.Today = &today
	}
	for i := range m.Steps {
		left.Steps = append(left.Steps, m.Steps[i].Left())
	}
	return left
}

// Pause stops the mandate until an approver resumes it. action is the action that
// failed or has an unknown outcome, "" for none.
func (m *Mandate) Pause(at time.Time, by, action string) {
	m.PausedAt, m.PausedBy, m.PausedAction = &at, by, action
}

// Resume ends a pause.
func (m *Mandate) Resume() { m.PausedAt, m.PausedBy, m.PausedAction = nil, "", "" }

// End ends the mandate.
func (m *Mandate) End(at time.Time, by string, why GrantEnd) {
	m.EndedAt, m.EndedBy, m.EndReason = &at, by, why
}

// State names the state at a time: active, paused, expired, or [Mandate.EndReason].
func (m *Mandate) State(at time.Time) string {
	switch {
	case m.EndedAt != nil:
		return string(m.EndReason)
	case !at.Before(m.ExpiresAt):
		return "expired"
	case m.PausedAt != nil:
		return "paused"
	}
	return "active"
}

// WorstCase describes the most that the mandate permits, including the part that is used
// already.
func (m *Mandate) WorstCase() string {
	t := Terms{AgentName: m.AgentName, InAll: m.InAll.Limit, MaxLevel: m.Level, Until: m.ExpiresAt}
	for _, s := range m.Steps {
		t.Steps = append(t.Steps, PlanStep{s.Cover, s.Limit})
	}
	if m.PerDay != nil {
		t.PerDay = &m.PerDay.Limit
	}
	return t.WorstCase()
}

// Text is the stored form of the mandate: JSON without Worst.
func (m *Mandate) Text() JSON {
	stored := *m
	stored.Worst = ""
	return MustJSON(&stored)
}

// MandateFilter selects mandates. An empty field, except Limit, selects all.
type MandateFilter struct {
	// Agent is an agent's id, "" for all.
	Agent string
	// Open leaves out ended and expired mandates.
	Open bool
	// Limit is the maximum number of mandates that are returned, at least 1.
	Limit int
}

// MandateService lets agents propose plans, and people narrow, pause and end
// mandates.
type MandateService interface {
	// ProposeMandate proposes a plan of the caller, an agent or a service with the role
	// proposer. The answer is an action of L4; once people have approved it, its push
	// makes the mandate. The error has code [CodeInvalid] where the active policy
	// allows no such mandate.
	ProposeMandate(ctx context.Context, p Plan) (*Action, error)
	// ListMandates returns at most 500 of the tenant's mandates, newest first; an agent
	// gets its own.
	ListMandates(ctx context.Context) ([]*Mandate, error)
	FindMandate(ctx context.Context, id string) (*Mandate, error)
	// NarrowMandate lowers limits at once, for any approver or administrator. A mandate whose
	// new count is used up ends.
	NarrowMandate(ctx context.Context, id string, n Narrowing) (*Mandate, error)
	// PauseMandate stops a mandate at once, for any approver or administrator.
	PauseMandate(ctx context.Context, id string) (*Mandate, error)
	// ResumeMandate ends a pause, for an approver who may decide the agent's
	// proposals.
	ResumeMandate(ctx context.Context, id string) (*Mandate, error)
	// RevokeMandate ends a mandate at once, for any approver or administrator. Actions
	// that it approved stay approved.
	RevokeMandate(ctx context.Context, id string) (*Mandate, error)
}

// MandateReader finds mandates.
type MandateReader interface {
	// ListMandates returns mandates, newest first.
	ListMandates(f MandateFilter) ([]*Mandate, error)
	FindMandate(id string) (*Mandate, error)
}

// MandateWriter writes mandates.
type MandateWriter interface {
	// InsertMandate stores a mandate. A known id fails with ErrConflict.
	InsertMandate(m *Mandate) error
	// LockMandate finds a mandate and locks it until the transaction ends.
	LockMandate(id string) (*Mandate, error)
	// UpdateMandate writes all that may change. A mandate that has already ended fails
	// with ErrConflict.
	UpdateMandate(m *Mandate) error
}

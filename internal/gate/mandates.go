package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.MandateService = (*Gate)(nil)

// MandateOperation identifies actions of the connector [PolicyConnector] that ask for a
// mandate. Only [Gate.ProposeMandate] and [Gate.Undo] propose such actions.
const MandateOperation = "approve_plan"

// ProposeMandate proposes a plan of the caller. The digest covers its terms; the goal is
// the rationale.
func (g *Gate) ProposeMandate(ctx context.Context, p gatehouse.Plan) (*gatehouse.Action, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleProposer); err != nil {
		return nil, err
	}
	if c.Principal.Kind == gatehouse.KindPerson {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "only an agent or a service proposes a plan")
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	var terms *gatehouse.Terms
	err = g.View(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		active, _, _, err := g.activePolicy(tx, c.Principal.Tenant)
		if err != nil {
			return err
		}
		if active == nil || active.MandateUpTo() == 0 {
			return gatehouse.Violations{{
				Detail: "the active policy allows no mandates: it lacks mandates: {up_to: 1..4}",
			}}.Err()
		}
		terms = p.Terms(c.Principal, active.MandateUpTo(), tx.Now())
		return g.checkPlan(c.Principal.Tenant, active, &p, terms)
	})
	if err != nil {
		return nil, err
	}
	proposal := &gatehouse.Proposal{
		ActionType: "mandate", Connector: PolicyConnector, Operation: MandateOperation,
		Target:         gatehouse.Target{EntityType: "mandate", EntityRef: c.Principal.Name},
		ProposedChange: gatehouse.MustJSON(terms), Rationale: p.Goal,
	}
	a, _, err := g.propose(ctx, c, proposal, lineage{revision: 1, own: true, title: "Approve in advance: " +
		terms.WorstCase()})
	return a, err
}

// checkPlan checks a plan against the policy and the connectors, and writes the
// connectors' fingerprints into the terms.
func (g *Gate) checkPlan(tenant string, active *policy.Policy, p *gatehouse.Plan, t *gatehouse.Terms) error {
	var v gatehouse.Violations
	if p.For.D() > active.MandateWindow() {
		v.Add("/for", "is more than the policy's %s", gatehouse.Duration(active.MandateWindow()))
	}
	if t.MaxLevel > active.MandateUpTo() {
		v.Add("/max_level", "is more than the policy's %s", active.MandateUpTo())
	}
	for i := range t.Steps {
		s, at := &t.Steps[i], fmt.Sprintf("/steps/%d", i)
		if err := active.CheckGrantCondition(s.When); err != nil {
			v.Add(at+"/when", "%s", detailOf(err))
		}
		fingerprint, err := g.describeStep(tenant, &s.Cover, t.MaxLevel)
		if err != nil {
			v.Add(at+"/operation", "%s", detailOf(err))
		}
		s.Fingerprint = fingerprint
	}
	return v.Err()
}

// detailOf returns the detail of the first violation, else the error's text.
func detailOf(err error) string {
	var e *gatehouse.Error
	if errors.As(err, &e) && len(e.Violations) > 0 {
		return e.Violations[0].Detail
	}
	return err.Error()
}

// describeStep returns the fingerprint of a step's connector.
func (g *Gate) describeStep(tenant string, s *gatehouse.Cover, level gatehouse.RiskLevel) (string, error) {
	if OwnConnector(s.Connector) {
		return "", gatehouse.E(gatehouse.CodeInvalid,
			"is an internal connector of Gatehouse: its actions cannot be approved in advance")
	}
	p := gatehouse.Proposal{
		Connector: s.Connector, Operation: s.Operation, Target: gatehouse.Target{EntityType: s.EntityType},
	}
	fingerprint, floor, _, err := g.targets.Describe(tenant, &p)
	if err == nil && floor > level {
		err = gatehouse.E(gatehouse.CodeInvalid, "is %s, above the plan's %s", floor, level)
	}
	return fingerprint, err
}

// StartMandate makes the mandate of an approved plan, once: a repeated call for the
// same action returns the earlier result. A change since the proposal is an error with
// code target_changed or invalid, and nothing is stored.
func (g *Gate) StartMandate(ctx context.Context, tenant, actionID string) (id string, err error) {
	id = "mnd_" + strings.TrimPrefix(actionID, "act_")
	err = g.Update(ctx, tenant, nil, func(tx gatehouse.Tx) error {
		if _, err := tx.FindMandate(id); err == nil || !errors.Is(err, gatehouse.ErrNotFound) {
			return err
		}
		a, err := tx.FindAction(actionID)
		if err != nil {
			return err
		}
		var terms gatehouse.Terms
		if a.Approval == nil || a.Approval.Status != gatehouse.ApprovalApproved {
			return gatehouse.E(gatehouse.CodeInvalid, "nobody has approved the plan")
		}
		if err := json.Unmarshal([]byte(a.ProposedChange), &terms); err != nil {
			return gatehouse.E(gatehouse.CodeInvalid, "the change holds no plan")
		}
		if err := g.checkStart(tx, a, &terms); err != nil {
			return err
		}
		m := terms.Mandate(id, a, tx.Now())
		if err := tx.InsertMandate(m); err != nil {
			return err
		}
		by := author{id: a.ProposerID, name: a.ProposedBy, tenant: tenant, via: a.DecidedVia}
		return recordChange(tx, by, change{
			tenant: tenant, kind: "mandate.given", subject: id, name: m.AgentName, detail: m.WorstCase(),
			data: mandateData(m, map[string]any{"action": a.ID, "digest": a.Digest}),
		})
	})
	return id, err
}

// checkStart repeats the checks whose result may have changed since the proposal.
func (g *Gate) checkStart(tx gatehouse.Tx, a *gatehouse.Action, t *gatehouse.Terms) error {
	active, _, _, err := g.activePolicy(tx, a.Tenant)
	if err != nil {
		return err
	}
	if active == nil || active.MandateUpTo() < t.MaxLevel || t.Until.Sub(tx.Now()) > active.MandateWindow() {
		return gatehouse.E(gatehouse.CodeInvalid, "the active policy allows no such mandate any more")
	}
	if !t.Until.After(tx.Now()) {
		return gatehouse.E(gatehouse.CodeInvalid, "the plan's time has ended")
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		fingerprint, err := g.describeStep(a.Tenant, &s.Cover, t.MaxLevel)
		if err != nil {
			return gatehouse.E(gatehouse.CodeInvalid, "step %d %s", i+1, detailOf(err))
		}
		if fingerprint != s.Fingerprint {
			return gatehouse.E(gatehouse.CodeTargetChanged, "the connector %s has changed since the proposal", s.Connector)
		}
	}
	agent, err := tx.FindPrincipal(t.Agent)
	if err != nil {
		return err
	}
	if agent.Disabled || !agent.Has(gatehouse.RoleProposer) {
		return gatehouse.E(gatehouse.CodeInvalid, "%s may not propose any more", agent.Name)
	}
	open, err := tx.ListMandates(gatehouse.MandateFilter{Agent: t.Agent, Open: true, Limit: gatehouse.MaxMandates})
	if err == nil && len(open) == gatehouse.MaxMandates {
		err = gatehouse.E(gatehouse.CodeInvalid, "%s has %d open mandates: revoke one", agent.Name, len(open))
	}
	return err
}

// MandatesUpTo returns the highest level that the active policy lets a mandate cover, for
// display.
func (g *Gate) MandatesUpTo(ctx context.Context) (gatehouse.RiskLevel, error) {
	return g.policyLevel(ctx, (*policy.Policy).MandateUpTo)
}

// ListMandates returns the newest 500 mandates of the tenant, newest first; an agent gets
// its own.
func (g *Gate) ListMandates(ctx context.Context) (list []*gatehouse.Mandate, err error) {
	err = g.View(ctx, "mandate", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		f := gatehouse.MandateFilter{Limit: maxGrantList}
		if requireGrantReader(c) != nil {
			if err := Require(c, gatehouse.RoleProposer); err != nil {
				return requireGrantReader(c)
			}
			f.Agent = c.Principal.ID
		}
		if list, err = tx.ListMandates(f); err != nil {
			return err
		}
		for _, m := range list {
			m.Worst = m.WorstCase()
		}
		return nil
	})
	return list, err
}

// FindMandate returns a mandate.
func (g *Gate) FindMandate(ctx context.Context, id string) (m *gatehouse.Mandate, err error) {
	err = g.View(ctx, "mandate", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		if m, err = readMandate(tx, c, id); err != nil {
			return err
		}
		if m.Agent != c.Principal.ID {
			if err := requireGrantReader(c); err != nil {
				return err
			}
		}
		m.Worst = m.WorstCase()
		return nil
	})
	return m, err
}

// readMandate finds a mandate. For an agent, other agents' mandates do not exist.
func readMandate(tx gatehouse.MandateReader, c *gatehouse.Caller, id string) (*gatehouse.Mandate, error) {
	m, err := tx.FindMandate(id)
	if err == nil && m.Agent != c.Principal.ID && requireGrantReader(c) != nil && c.Principal.Has(gatehouse.RoleProposer) {
		return nil, gatehouse.ErrNotFound
	}
	return m, err
}

// NarrowMandate lowers limits of a mandate.
func (g *Gate) NarrowMandate(ctx context.Context, id string, n gatehouse.Narrowing) (*gatehouse.Mandate, error) {
	return g.changeMandate(ctx, id, func(tx gatehouse.Tx, c *gatehouse.Caller, m *gatehouse.Mandate) error {
		if m.EndedAt != nil || !tx.Now().Before(m.ExpiresAt) {
			return gatehouse.E(gatehouse.CodeInvalid, "the mandate has ended")
		}
		if err := m.Narrow(n, tx.Now()); err != nil {
			return err
		}
		if m.InAll.Used == m.InAll.Count {
			return endMandate(tx, authorOf(c), m, gatehouse.GrantUsedUp, nil)
		}
		return writeMandate(tx, authorOf(c), m, "mandate.narrowed", map[string]any{
			"left": m.Left(tx.Now()), "expires_at": m.ExpiresAt,
		})
	})
}

// PauseMandate stops a mandate.
func (g *Gate) PauseMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return g.changeMandate(ctx, id, func(tx gatehouse.Tx, c *gatehouse.Caller, m *gatehouse.Mandate) error {
		if !m.HoldsAt(tx.Now()) {
			return nil
		}
		m.Pause(tx.Now(), c.Principal.Name, "")
		return writeMandate(tx, authorOf(c), m, "mandate.paused", nil)
	})
}

// ResumeMandate ends a pause. People who may not decide the agent's proposals may not
// resume its mandates.
func (g *Gate) ResumeMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return g.changeMandate(ctx, id, func(tx gatehouse.Tx, c *gatehouse.Caller, m *gatehouse.Mandate) error {
		if m.EndedAt != nil || m.PausedAt == nil || !tx.Now().Before(m.ExpiresAt) {
			return nil
		}
		// changeMandate has locked the caller's row.
		people, err := tx.LockPrincipals([]string{c.Principal.ID})
		if err != nil {
			return err
		}
		if len(people) == 0 || !people[0].MayDecide() {
			return gatehouse.E(gatehouse.CodeRoleRequired, "only a person with the role approver resumes a mandate")
		}
		agent, err := tx.FindPrincipal(m.Agent)
		if err != nil {
			return err
		}
		barred, err := exclude(tx.FindPrincipal, agent, "")
		if err != nil {
			return err
		}
		if excluded(barred, people[0]) {
			return gatehouse.E(gatehouse.CodeSelfApproval,
				"you answer for %s, so you cannot resume what it may do", agent.Name)
		}
		m.Resume()
		return writeMandate(tx, authorOf(c), m, "mandate.resumed", nil)
	})
}

// RevokeMandate ends a mandate.
func (g *Gate) RevokeMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return g.changeMandate(ctx, id, func(tx gatehouse.Tx, c *gatehouse.Caller, m *gatehouse.Mandate) error {
		if m.EndedAt != nil || !tx.Now().Before(m.ExpiresAt) {
			return nil
		}
		return endMandate(tx, authorOf(c), m, gatehouse.GrantRevoked, nil)
	})
}

// changeMandate runs a change of a locked mandate for a person who may revoke it.
func (g *Gate) changeMandate(
	ctx context.Context, id string, fn func(gatehouse.Tx, *gatehouse.Caller, *gatehouse.Mandate) error,
) (*gatehouse.Mandate, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if c.Principal.Kind != gatehouse.KindPerson {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "only people change mandates")
	}
	if err := Require(c, gatehouse.RoleApprover, gatehouse.RoleAdmin); err != nil {
		return nil, err
	}
	out, err := usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Mandate, error) {
		if err := checkStepUp(tx, c); err != nil {
			return nil, err
		}
		// The same lock order as in a change of the person's rights.
		if _, err := tx.LockPrincipals([]string{c.Principal.ID}); err != nil {
			return nil, err
		}
		m, err := tx.LockMandate(id)
		if err != nil {
			return nil, err
		}
		if err := fn(tx, c, m); err != nil {
			return nil, err
		}
		m.Worst = m.WorstCase()
		return m, nil
	})
	return out, usecase.NotFound(err, "mandate")
}

// PauseFailed pauses the mandate that approved an action, after the action failed or
// its outcome became unknown.
func PauseFailed(tx mandateMover, a *gatehouse.Action, actor string) error {
	if a.DecidedVia != gatehouse.ViaMandate || a.Approval == nil || len(a.Approval.Votes) == 0 {
		return nil
	}
	m, err := tx.LockMandate(a.Approval.Votes[0].Grant)
	if err != nil || !m.HoldsAt(tx.Now()) {
		return err
	}
	m.Pause(tx.Now(), "", a.ID)
	return writeMandate(tx, author{id: actor}, m, "mandate.paused", map[string]any{"action": a.ID})
}

// endMandates ends the open mandates for which ends is true.
func endMandates(tx mandateMover, by author, why gatehouse.GrantEnd, ends func(*gatehouse.Mandate) bool) error {
	open, err := tx.ListMandates(gatehouse.MandateFilter{Open: true, Limit: maxOpenMandates})
	if err != nil {
		return err
	}
	for _, found := range open {
		if !ends(found) {
			continue
		}
		m, err := tx.LockMandate(found.ID)
		if err != nil {
			return err
		}
		if m.EndedAt == nil {
			if err := endMandate(tx, by, m, why, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxOpenMandates bounds how many mandates are ended at once. The others stay open, and end at a
// use that the policy or a lost right forbids.
const maxOpenMandates = 10_000

// endMandate ends a locked mandate. action is the action that ended it, nil for none.
func endMandate(
	tx mandateMover, by author, m *gatehouse.Mandate, why gatehouse.GrantEnd, action *gatehouse.Action,
) error {
	m.End(tx.Now(), by.name, why)
	data := map[string]any{
		"reason": string(why), "used": m.InAll.Used, "used_amounts": usecase.OrEmpty(m.InAll.UsedAmounts),
	}
	if action != nil {
		data["action"] = action.ID
	}
	return writeMandate(tx, by, m, "mandate.ended", data)
}

// writeMandate stores a changed mandate with its log entry.
func writeMandate(tx mandateMover, by author, m *gatehouse.Mandate, event string, data map[string]any) error {
	if err := tx.UpdateMandate(m); err != nil {
		return err
	}
	return logMandate(tx, by, m, event, data)
}

// logMandate writes the log entry of a change of a mandate.
func logMandate(tx gatehouse.LogWriter, by author, m *gatehouse.Mandate, event string, data map[string]any) error {
	if data == nil {
		data = map[string]any{}
	}
	if by.via != "" {
		data["via"] = by.via
	}
	return tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: m.Tenant, Type: event, Subject: m.ID, Actor: by.id, Data: usecase.Object(mandateData(m, data)),
	})
}

// mandateData adds the mandate's agent and the hash of its row to the data of a log
// entry, so that a changed row is detected.
func mandateData(m *gatehouse.Mandate, data map[string]any) map[string]any {
	sum := sha256.Sum256([]byte(m.Text()))
	data["agent"], data["row"] = m.Agent, hex.EncodeToString(sum[:])
	return data
}

package policy

import (
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// Facts are the inputs of a judgement. The policy does not change them.
type Facts struct {
	Tenant   string
	Proposal *gatehouse.Proposal  // as proposed
	Proposer *gatehouse.Principal // id, name, kind, roles and sponsor are used
	// Starter is the principal that started the proposing run: a ceiling per agent
	// counts for it. It is nil when no run proposes, or nobody started the run.
	Starter *gatehouse.Principal
	// Floor is the connector's floor for the operation, 0 for none.
	Floor gatehouse.RiskLevel
	// ProposedAt is the store's time of the proposal, which is stored with the
	// action, so that judging again gives the same result. Zero is a missing fact.
	ProposedAt time.Time
	// Declared is what the connector declares about the operation; nil for nothing.
	Declared *gatehouse.Declared
	// Reversal is true for an action that reverses another.
	Reversal bool
}

// emptyObject replaces an object that the proposal does not have.
const emptyObject = gatehouse.JSON("{}")

// view gives CEL access to the facts. Values are built on demand and cached. A view
// serves one evaluation, in one goroutine.
type view struct {
	*Facts
	risk gatehouse.RiskLevel
	// actionType is the policy's name for the action type.
	actionType string
	// budget is the cost limit of this judgement's conditions and amounts.
	budget *expr.Budget
	// The cached values that are costly to build, by name.
	change, current, context, metadata *expr.Object
	evaluations, refs, roles           ref.Val
	money                              *money
}

// money is what [card.Money] returns.
type money struct {
	amount   gatehouse.Decimal
	currency string
	ok       bool
}

// newView returns a view with the level that the type, the floor and the proposer's claim give.
func (p *Policy) newView(f *Facts) *view {
	name := known(p.risk, f.Proposal.ActionType)
	return &view{Facts: f, actionType: name,
		risk: min(gatehouse.L5, max(p.levelOf(name), f.Floor, f.Proposal.RiskLevel, gatehouse.L1))}
}

var _ cel.Activation = (*view)(nil)

// Parent implements cel.Activation.
func (*view) Parent() cel.Activation { return nil }

// ResolveName implements cel.Activation. A fact that the proposal does not give is
// reported as not found, which CEL turns into an error.
func (v *view) ResolveName(name string) (any, bool) {
	if fact, ok := strings.CutPrefix(name, expr.GivenPrefix); ok {
		_, given := v.ResolveName(fact)
		return types.Bool(given), true
	}
	p := v.Proposal
	switch name {
	case "risk":
		return types.Int(v.risk), true
	case "tenant":
		return types.String(v.Tenant), true
	case "action.type":
		return types.String(v.actionType), true
	case "action.proposed_type":
		return types.String(p.ActionType), true
	case "action.connector":
		return types.String(p.Connector), true
	case "action.operation":
		return types.String(p.Operation), true
	case "action.reversal":
		return types.Bool(v.Reversal), true
	case "proposed_at":
		return types.Timestamp{Time: v.ProposedAt.UTC()}, !v.ProposedAt.IsZero()
	case "action.idempotency_key":
		return optionalString(p.IdempotencyKey)
	case "action.risk_claimed":
		return types.Int(p.RiskLevel), p.RiskLevel != 0
	case "target.type":
		return types.String(p.Target.EntityType), true
	case "target.ref":
		return optionalString(p.Target.EntityRef)
	case "target.version":
		return optionalString(p.Target.Version)
	case "target.refs":
		return lazy(&v.refs, func() ref.Val { return texts(targets(p)) }), true
	case "on_behalf_of":
		return types.String(p.OnBehalfOf), true
	case "change":
		return lazyObject(&v.change, p.ProposedChange), true
	case "current":
		return lazyObject(&v.current, p.CurrentState), true
	case "context":
		return lazyObject(&v.context, p.Context), true
	case "metadata":
		return lazyObject(&v.metadata, p.Metadata), true
	case "evaluations":
		return lazy(&v.evaluations, func() ref.Val { return evaluations(p.Evaluations) }), true
	case "magnitude.amount":
		if p.Magnitude == nil || p.Magnitude.Amount == "" {
			return nil, false
		}
		return expr.Number(p.Magnitude.Amount), true
	case "magnitude.currency":
		if p.Magnitude == nil {
			return nil, false
		}
		return optionalString(p.Magnitude.Currency)
	case "magnitude.differs":
		return types.Bool(card.ClaimDiffers(v.action())), true
	case "money.amount":
		m := v.moneyOf()
		return expr.Number(m.amount), m.ok
	case "money.currency":
		m := v.moneyOf()
		if !m.ok {
			return nil, false
		}
		return optionalString(m.currency)
	}
	return v.proposerFact(name)
}

func (v *view) proposerFact(name string) (any, bool) {
	who := v.Proposer
	if who == nil {
		return nil, false
	}
	switch name {
	case "proposer.id":
		return types.String(who.ID), true
	case "proposer.name":
		return types.String(who.Name), true
	case "proposer.kind":
		return types.String(who.Kind), true
	case "proposer.sponsor":
		return optionalString(who.Sponsor)
	case "proposer.roles":
		return lazy(&v.roles, func() ref.Val {
			names := make([]string, len(who.Roles))
			for i, r := range who.Roles {
				names[i] = string(r)
			}
			return texts(names)
		}), true
	}
	return nil, false
}

// moneyOf returns the money of the proposal.
func (v *view) moneyOf() *money {
	if v.money == nil {
		v.money = new(money)
		v.money.amount, v.money.currency, v.money.ok = card.Money(v.action())
	}
	return v.money
}

// action returns the proposal in the form that [card.Money] and [card.ClaimDiffers] take.
func (v *view) action() *gatehouse.Action {
	return &gatehouse.Action{Proposal: *v.Proposal, Declared: v.Declared}
}

// targets lists the keys of a proposal's target: one, or those of a bulk operation,
// without duplicates.
func targets(p *gatehouse.Proposal) []string {
	if len(p.Target.EntityRefs) > 0 {
		seen := make(map[string]bool, len(p.Target.EntityRefs))
		once := make([]string, 0, len(p.Target.EntityRefs))
		for _, ref := range p.Target.EntityRefs {
			if !seen[ref] {
				seen[ref] = true
				once = append(once, ref)
			}
		}
		return once
	}
	if p.Target.EntityRef != "" {
		return []string{p.Target.EntityRef}
	}
	return nil
}

func optionalString(s string) (any, bool) {
	if s == "" {
		return nil, false
	}
	return types.String(s), true
}

func lazy(kept *ref.Val, build func() ref.Val) ref.Val {
	if *kept == nil {
		*kept = build()
	}
	return *kept
}

func lazyObject(kept **expr.Object, text gatehouse.JSON) ref.Val {
	if *kept == nil {
		if text == "" {
			text = emptyObject
		}
		*kept = expr.NewObject(text)
	}
	return *kept
}

func texts(list []string) ref.Val {
	return types.NewStringList(types.DefaultTypeAdapter, list)
}

// evaluations builds a list of objects with the fields that each evaluation has.
func evaluations(list []gatehouse.Evaluation) ref.Val {
	values := make([]ref.Val, len(list))
	for i, e := range list {
		members := []gatehouse.Member{
			{Name: "kind", Value: gatehouse.StringJSON(e.Kind)},
			{Name: "name", Value: gatehouse.StringJSON(e.Name)},
			{Name: "result", Value: gatehouse.StringJSON(e.Result)},
		}
		if e.Confidence != "" {
			members = append(members, gatehouse.Member{Name: "confidence", Value: e.Confidence})
		}
		if e.Details != "" {
			members = append(members, gatehouse.Member{Name: "details", Value: gatehouse.StringJSON(e.Details)})
		}
		values[i] = expr.NewObject(gatehouse.ObjectJSON(members...))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// Evaluate judges a proposal. It never fails: whatever cannot be evaluated makes
// the verdict stricter. It stops when the context ends; the verdict is then
// invalid. It is safe for concurrent use.
func (p *Policy) Evaluate(ctx context.Context, f Facts) gatehouse.Verdict {
	v, _ := p.judge(ctx, f, p.language.Budget, nil)
	return v
}

// maxQuickInput is the largest input that EvaluateQuickly judges, as weighed by [Facts.weight].
const maxQuickInput = 16 << 10

// EvaluateQuickly judges like Evaluate if policy and proposal are small: within some 20 µs mostly, and about a
// millisecond at most. It returns false if they are not.
func (p *Policy) EvaluateQuickly(f Facts) (v gatehouse.Verdict, ok bool) {
	if f.weight() > maxQuickInput {
		return v, false
	}
	return p.judge(context.Background(), f, p.language.SmallBudget, nil)
}

// weight returns the size in bytes of what conditions may walk. The change counts eight times, because the facts
// about money walk it outside of the budget.
func (f *Facts) weight() int {
	p := f.Proposal
	n := 8*len(p.ProposedChange) + len(p.CurrentState) + len(p.Context) + len(p.Metadata)
	for _, ref := range p.Target.EntityRefs {
		n += len(ref)
	}
	for i := range p.Evaluations {
		e := &p.Evaluations[i]
		n += len(e.Kind) + len(e.Name) + len(e.Result) + len(e.Details)
	}
	return n
}

// Explain judges like Evaluate and also returns the result of each rule, in the
// order of the file.
func (p *Policy) Explain(ctx context.Context, f Facts) (gatehouse.Verdict, []gatehouse.RuleTrace) {
	trace := make([]gatehouse.RuleTrace, 0, len(p.rules))
	v, _ := p.judge(ctx, f, p.language.Budget, func(r *rule, matched bool, err error) {
		t := gatehouse.RuleTrace{Rule: r.id, Outcome: r.then, Matched: matched}
		switch {
		case err != nil:
			t.Detail = "error: " + err.Error()
		case !matched:
			t.Detail = "does not hold: " + form.OneLine(r.when.Source)
		}
		trace = append(trace, t)
	})
	position := make(map[string]int, len(p.rules))
	for _, r := range p.rules {
		position[r.id] = r.at.Line*10_000 + r.at.Column
	}
	slices.SortStableFunc(trace, func(a, b gatehouse.RuleTrace) int { return position[a.Rule] - position[b.Rule] })
	return v, trace
}

// rank orders outcomes by strictness.
func rank(o gatehouse.Outcome) int {
	switch o {
	case gatehouse.OutcomeDeny:
		return 2
	case gatehouse.OutcomeNeedsApproval:
		return 1
	}
	return 0
}

// finding is a rule that takes part in the verdict.
type finding struct {
	*rule
	err error // why it could not be evaluated
}

// outcome returns the rule's outcome; a rule that cannot be evaluated never allows.
func (f finding) outcome() gatehouse.Outcome {
	if f.err != nil && f.then == gatehouse.OutcomeAllow {
		return gatehouse.OutcomeNeedsApproval
	}
	return f.then
}

func (f finding) reasonText() string {
	if f.err != nil {
		return fmt.Sprintf("rule %s cannot be evaluated: %v", f.id, f.err)
	}
	if f.reason != "" {
		return f.reason
	}
	switch f.then {
	case gatehouse.OutcomeAllow:
		return "rule " + f.id + " allows it"
	case gatehouse.OutcomeDeny:
		return "rule " + f.id + " denies it"
	}
	return "rule " + f.id + " asks for approval"
}

// judge evaluates the rules, and calls observe for each. It returns false if the budget was too small.
func (p *Policy) judge(
	ctx context.Context, f Facts, budget func(context.Context) (*expr.Budget, error), observe func(*rule, bool, error),
) (verdict gatehouse.Verdict, ok bool) {
	if f.Proposal == nil {
		return denied(gatehouse.L5, "there is no proposal to judge"), true
	}
	v := p.newView(&f)
	var err error
	if v.budget, err = budget(ctx); err != nil {
		return denied(v.risk, "the policy cannot be evaluated: "+err.Error()), true
	}
	var found []finding
	risk, facts := v.risk, v.guardedFacts()
	for i := range p.rules {
		r := &p.rules[i]
		var matched bool
		var err error
		if !r.when.excluded(facts) {
			matched, err = r.when.holds(v)
		}
		if observe != nil {
			observe(r, matched, err)
		}
		if matched || err != nil {
			found = append(found, finding{r, err})
			risk = max(risk, r.risk)
		}
	}
	v.risk = risk
	verdict = p.combine(found, risk)
	verdict.EditUpTo = p.editUpTo
	p.ask(&verdict, found)
	p.claim(&verdict, v)
	if verdict.Outcome == gatehouse.OutcomeDeny {
		d := denied(verdict.RiskLevel, verdict.Reasons...)
		d.Rules = verdict.Rules
		verdict = d
	}
	return verdict, !v.budget.Spent()
}

// maxReasons bounds the rules whose reasons a verdict gives. It bounds neither the verdict's list of rules nor the
// reasons of ceilings.
const maxReasons = 20

// combine determines the outcome, the rules that decided it, and their reasons.
func (p *Policy) combine(found []finding, risk gatehouse.RiskLevel) gatehouse.Verdict {
	v := gatehouse.Verdict{RiskLevel: risk, Rules: []string{}}
	if len(found) == 0 {
		v.Outcome = gatehouse.OutcomeNeedsApproval
		v.Reasons = []string{"No rule matched. " + p.levelWords(risk) + " needs approval."}
		return v
	}
	v.Outcome = gatehouse.OutcomeAllow
	for _, f := range found {
		if o := f.outcome(); rank(o) > rank(v.Outcome) {
			v.Outcome = o
		}
	}
	if v.Outcome == gatehouse.OutcomeAllow && risk.NeedsPerson() {
		v.Outcome = gatehouse.OutcomeNeedsApproval
		v.Reasons = append(v.Reasons,
			fmt.Sprintf("%s is never allowed without a person, though rule %s allows it", risk, found[0].id))
		return v
	}
	for _, f := range found {
		if f.outcome() != v.Outcome {
			continue
		}
		v.Rules = append(v.Rules, f.id)
		if len(v.Reasons) < maxReasons {
			v.Reasons = append(v.Reasons, f.reasonText())
		}
	}
	if more := len(v.Rules) - maxReasons; more > 0 {
		v.Reasons = append(v.Reasons, fmt.Sprintf("and %d more rules", more))
	}
	return v
}

// levelWords is a level as the subject of a sentence, with the policy's own name when it has one.
func (p *Policy) levelWords(risk gatehouse.RiskLevel) string {
	if name := p.LevelName(risk); name != "" {
		return fmt.Sprintf("Level %s (%s)", risk, name)
	}
	word := map[gatehouse.RiskLevel]string{
		gatehouse.L1: "A note",
		gatehouse.L2: "A change to a safe field",
		gatehouse.L3: "A medium write",
		gatehouse.L4: "Creating or removing a record",
		gatehouse.L5: "A destructive or bulk change",
	}[risk]
	return fmt.Sprintf("%s (%s)", word, risk)
}

// ask fills in the approval. A rule that asks for approval states its own values,
// and takes the others from the level. Of several such rules the stricter values
// count: more persons, only people who satisfy each rule, less time, a longer hold.
// The hold of a rule that could not be evaluated, or whose outcome is not the
// verdict's, counts only if it is longer than the hold without this rule.
func (p *Policy) ask(v *gatehouse.Verdict, found []finding) {
	level := p.approvals[v.RiskLevel]
	all, asked := question{}, false
	var least time.Duration
	for _, f := range found {
		switch {
		case f.hold == nil:
		case f.err != nil || f.then != v.Outcome:
			least = max(least, *f.hold)
		case v.Outcome == gatehouse.OutcomeAllow:
			all.hold = longer(all.hold, f.hold)
		}
		if f.outcome() != gatehouse.OutcomeNeedsApproval {
			continue
		}
		q, why := f.questionAt(level)
		if why == "" && asked {
			q, why = all.merge(q)
		}
		if why != "" {
			refuse(v, why)
			return
		}
		all, asked = q, true
	}

	if !asked {
		hold := cmp.Or(all.hold, level.hold)
		all = level
		all.hold = hold
	}
	if least > 0 {
		v.HoldAtLeast = all.hold == nil
		all.hold = longer(all.hold, &least)
	}

	all.required = max(all.required, minimum(v.RiskLevel))
	if !all.everybody().enough(all.required) {
		refuse(v, fmt.Sprintf("%d persons must approve, but the policy names only %d", all.required,
			len(all.everybody().people)))
		return
	}

	v.Timing = all.verdict()
	v.Required, v.Expiry = all.required, all.expiry
	v.Roles, v.People, v.Groups = slices.Clone(all.audience.roles), slices.Clone(all.audience.people),
		slices.Clone(all.audience.groups)
	if all.hold != nil {
		hold := *all.hold
		v.Hold = &hold
	}
}

// longer returns the longer of two holds; nil is the shortest.
func longer(a, b *time.Duration) *time.Duration {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// questionAt returns the finding's question, with the level's values where the finding
// states none. A rule's expiry can shorten the level's stages, but not lengthen them. If
// the rule could not be evaluated, its question is merged with the level's, so that the
// rule cannot loosen the level's question. why says why nobody could answer the merged
// question.
func (f finding) questionAt(level question) (_ question, why string) {
	q := level
	if f.required > 0 {
		q.required = f.required
	}
	if f.audience.stated() {
		q.audience, q.stages = f.audience, f.stages
	}
	switch {
	case len(f.stages) > 0:
		q.expiry = f.expiry
	case f.expiry > 0 && len(q.stages) > 0:
		q = q.within(f.expiry)
	case f.expiry > 0:
		q.expiry = f.expiry
	}
	if len(f.reminders) > 0 {
		q.reminders = f.reminders
	}
	if f.onTimeout != "" {
		q.onTimeout, q.extendBy = f.onTimeout, f.extendBy
	}
	if f.err != nil {
		return level.merge(q)
	}
	if f.hold != nil {
		q.hold = f.hold
	}
	return q, ""
}

// denied returns a verdict of which only outcome, level and reasons count.
func denied(level gatehouse.RiskLevel, reasons ...string) gatehouse.Verdict {
	return gatehouse.Verdict{
		Outcome: gatehouse.OutcomeDeny, RiskLevel: level, Rules: []string{}, Reasons: reasons,
	}
}

// holds evaluates a condition. Any result but a truth value is an error.
func (e *expression) holds(v *view) (bool, error) {
	out, err := v.eval(e)
	if err != nil {
		return false, brief(err)
	}
	return truth(out)
}

// eval evaluates within the judgement's total budget. Once that is spent, or the
// context has ended, every further expression is an error, and so makes the verdict
// stricter.
func (v *view) eval(e *expression) (ref.Val, error) {
	if err := v.budget.Err(); err != nil {
		return nil, err
	}
	if v.budget.Spent() {
		return nil, errors.New("the policy has reached the cost limit of one judgement")
	}
	return e.EvalWithin(v.budget, v)
}

// holdsFor is holds for any activation. Only the expression's own cost limit applies, not the budget of a judgement.
func (e *expression) holdsFor(v cel.Activation) (bool, error) {
	out, err := e.Eval(v)
	if err != nil {
		return false, brief(err)
	}
	return truth(out)
}

func truth(out ref.Val) (bool, error) {
	is, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the condition gives %s, not a truth value", expr.TypeName(out))
	}
	return bool(is), nil
}

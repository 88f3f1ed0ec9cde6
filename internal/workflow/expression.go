package workflow

import (
	"errors"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// Scope is what an expression can read.
type Scope struct {
	// Run is the run; nil before there is one.
	Run   *gatehouse.Run
	Input gatehouse.JSON
	// ReadInput, when set, replaces Input. It is called when an expression needs
	// the input.
	ReadInput func() gatehouse.JSON
	// Output returns a step's output; false for a skipped step, which has none.
	Output func(stepID string) (gatehouse.JSON, bool)
	// Rejection describes a step's rejected or expired action; false when there
	// is none.
	Rejection func(stepID string) (gatehouse.JSON, bool)
	// Iteration is the number of the step's iteration, from 1; 0 counts as 1.
	Iteration int
	// Item and Index are set inside a for_each, with HasItem.
	Item    gatehouse.JSON
	Index   int
	HasItem bool
	Now     time.Time
	// ReadNow, when set, replaces Now. It is called when an expression needs the
	// time.
	ReadNow func() time.Time
}

// Expr is a compiled expression.
type Expr struct {
	*expr.Expression
	// limit is the maximum number of elements of List's result; a longer list is an
	// error. 0 means no limit.
	limit int
}

// String returns the source text.
func (e *Expr) String() string { return e.Source }

// Bool evaluates a condition. A result that is not a boolean is an error.
// Evaluation errors have code invalid.
func (e *Expr) Bool(s *Scope) (bool, error) {
	v, err := e.eval(&activation{Scope: s})
	if err != nil {
		return false, err
	}
	is, ok := v.(types.Bool)
	if !ok {
		return false, gatehouse.E(gatehouse.CodeInvalid, "the condition gives %s, not true or false", expr.TypeName(v))
	}
	return bool(is), nil
}

// Value evaluates to JSON of at most [MaxOutput] bytes.
func (e *Expr) Value(s *Scope) (gatehouse.JSON, error) {
	v, err := e.eval(&activation{Scope: s})
	if err != nil {
		return "", err
	}
	return whole(expr.ToJSON(v, MaxOutput))
}

// List evaluates to the elements of a list. For a for_each, more elements than
// its max_items are an error.
func (e *Expr) List(s *Scope) ([]gatehouse.JSON, error) {
	v, err := e.eval(&activation{Scope: s})
	if err != nil {
		return nil, err
	}
	if _, ok := v.(traits.Lister); !ok {
		return nil, gatehouse.E(gatehouse.CodeInvalid, "the expression gives %s, not a list", expr.TypeName(v))
	}
	j, err := whole(expr.ToJSON(v, MaxOutput))
	if err != nil {
		return nil, err
	}
	items, err := j.Elements()
	if err != nil {
		return nil, gatehouse.E(gatehouse.CodeInternal, "the list cannot be parsed").Because(err)
	}
	if e.limit > 0 && len(items) > e.limit {
		return nil, gatehouse.E(gatehouse.CodeInvalid, "there are %d items, but max_items is %d", len(items), e.limit)
	}
	return items, nil
}

func (e *Expr) eval(a *activation) (ref.Val, error) {
	v, spent, err := e.EvalCost(a)
	if a.spent += spent; err == nil && a.spent > templateLimit {
		err = errors.New("evaluation takes too long: actual cost limit exceeded")
	}
	if err != nil {
		return nil, gatehouse.E(gatehouse.CodeInvalid, "%s: %s", expr.Brief(e.Source, 80), explain(err)).Because(err)
	}
	return v, nil
}

// explain turns an evaluation error into the message for users.
func explain(err error) string {
	s := expr.Brief(err.Error(), 200)
	if name, ok := strings.CutPrefix(s, "no such attribute(s): "); ok {
		return "there is no " + name + " here"
	}
	switch {
	case s == "no such key: output":
		return "the step was skipped and has no output; test for it with has(steps.<id>.output)"
	case s == "no such key: rejection":
		return "the step was not rejected; test for it with has(steps.<id>.rejection)"
	case strings.HasPrefix(s, "no such key: "):
		return "there is no " + gatehouse.Quote(strings.TrimPrefix(s, "no such key: ")) + "; test for it with has(…)"
	}
	return s
}

// whole checks that the result is valid JSON within the bounds of depth and
// size.
func whole(j gatehouse.JSON, err error) (gatehouse.JSON, error) {
	var said *gatehouse.Error
	if errors.As(err, &said) {
		return "", said
	}
	if errors.Is(err, expr.ErrTooLarge) || err == nil && len(j) > MaxOutput {
		return "", gatehouse.E(gatehouse.CodeInvalid, "the result is larger than %d bytes", MaxOutput)
	}
	if err == nil {
		err = gatehouse.CheckJSON([]byte(j))
	}
	if err != nil {
		return "", gatehouse.E(gatehouse.CodeInvalid, "%v", err)
	}
	return j, nil
}

// activation exposes a scope to CEL, for one evaluation. All expressions of a
// template share one, and spent is the sum of their costs.
type activation struct {
	*Scope
	spent        uint64
	input, steps ref.Val
	item         ref.Val
	outputs      map[string]ref.Val
}

var _ cel.Activation = (*activation)(nil)

// Parent implements cel.Activation.
func (*activation) Parent() cel.Activation { return nil }

// ResolveName implements cel.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	if fact, ok := strings.CutPrefix(name, expr.GivenPrefix); ok {
		_, given := a.ResolveName(fact)
		return types.Bool(given), true
	}
	switch name {
	case "input":
		if a.input == nil {
			in := a.Input
			if a.ReadInput != nil {
				in = a.ReadInput()
			}
			if in == "" {
				in = "{}"
			}
			a.input = expr.ToValue(in)
		}
		return a.input, true
	case "steps":
		if a.steps == nil {
			a.steps = expr.NewMap(nil, a.step)
		}
		return a.steps, true
	case "item":
		if a.item == nil && a.HasItem {
			a.item = expr.ToValue(a.Item)
		}
		return a.item, a.HasItem
	case "index":
		return types.Int(a.Index), a.HasItem
	case "iteration":
		return types.Int(max(a.Iteration, 1)), true
	case "now":
		if a.ReadNow != nil {
			return types.Timestamp{Time: a.ReadNow().UTC()}, true
		}
		return types.Timestamp{Time: a.Now.UTC()}, !a.Now.IsZero()
	}
	return a.ofRun(name)
}

func (a *activation) step(id string) (ref.Val, bool) {
	return expr.NewMap([]string{"output", "rejection"}, func(field string) (ref.Val, bool) {
		if field == "rejection" && a.Rejection != nil {
			j, ok := a.Rejection(id)
			if !ok {
				return nil, false
			}
			return expr.ToValue(j), true
		}
		if field != "output" || a.Output == nil {
			return nil, false
		}
		if v, ok := a.outputs[id]; ok {
			return v, true
		}
		j, ok := a.Output(id)
		if !ok {
			return nil, false
		}
		if a.outputs == nil {
			a.outputs = make(map[string]ref.Val)
		}
		a.outputs[id] = expr.ToValue(j)
		return a.outputs[id], true
	}), true
}

func (a *activation) ofRun(name string) (any, bool) {
	r := a.Run
	if r == nil {
		return nil, false
	}
	given := func(s string) (any, bool) { return types.String(s), s != "" }
	switch name {
	case "run.id":
		return given(r.ID)
	case "run.tenant":
		return given(r.Tenant)
	case "run.workflow":
		return given(r.Workflow)
	case "run.workspace":
		return given(r.Workspace)
	case "run.trigger":
		return given(string(r.Trigger))
	case "run.trigger_ref":
		return given(r.TriggerRef)
	case "run.started_by":
		return given(r.StartedBy)
	case "run.retry_of":
		return given(r.RetryOf)
	case "run.version":
		return types.Int(r.Version), true
	case "run.created_at":
		return types.Timestamp{Time: r.CreatedAt.UTC()}, !r.CreatedAt.IsZero()
	}
	return nil, false
}

package expr

import (
	"context"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// interruptEvery is the number of loop steps between two checks of an
// expression's context.
const interruptEvery = 64

// smallPart is the number of small budgets in a whole budget.
const smallPart = 500

// Budget limits the total cost of several expressions of one language. When its context ends, so does an
// evaluation. A Budget must be used by one goroutine only.
type Budget struct {
	ctx     context.Context
	tracker *cost.Tracker
	limit   uint64
}

// limit is the cost limit of one kind of budget, with an unused cost tracker that each new budget clones.
type limit struct {
	cost    uint64
	tracker *cost.Tracker
}

func newLimit(most uint64, functions []cost.TrackerOption) (limit, error) {
	options := append(functions[:len(functions):len(functions)], cost.TrackerLimit(most))
	tracker, err := cost.NewTracker(nil, options...)
	if err != nil {
		return limit{}, fmt.Errorf("expr: cost tracker: %w", err)
	}
	return limit{most, tracker}, nil
}

func (l limit) budget(ctx context.Context) (*Budget, error) {
	tracker, err := l.tracker.Clone()
	return &Budget{ctx: ctx, tracker: tracker, limit: l.cost}, err
}

// Budget returns an unspent budget with the limit of a single expression, [Config.Cost].
func (l *Language) Budget(ctx context.Context) (*Budget, error) { return l.whole.budget(ctx) }

// SmallBudget returns an unspent budget of a 500th of [Config.Cost].
func (l *Language) SmallBudget(ctx context.Context) (*Budget, error) { return l.small.budget(ctx) }

// Spent reports whether the budget is used up.
func (b *Budget) Spent() bool { return b.tracker.ActualCost() > b.limit }

// Err returns the error of the budget's context.
func (b *Budget) Err() error { return b.ctx.Err() }

// EvalWithin is Eval within what remains of a budget.
func (e *Expression) EvalWithin(b *Budget, a cel.Activation) (ref.Val, error) {
	frame, err := interpreter.NewExecutionFrame(a)
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	if b.ctx.Done() != nil {
		if err := frame.SetContext(b.ctx, interruptEvery); err != nil {
			return nil, err
		}
	}
	frame.SetCostTracker(b.tracker)
	v, _, err := e.program.Eval(frame)
	if err != nil {
		return nil, err
	}
	if types.IsUnknownOrError(v) {
		return nil, fmt.Errorf("%v", v)
	}
	return v, nil
}

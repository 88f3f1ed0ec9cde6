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

// interruptEvery is after how many steps of its loops an expression looks whether
// its context has ended.
const interruptEvery = 64

// Budget is what several expressions of one language may cost together: what a
// single one may. They end with its context. It serves one goroutine.
type Budget struct {
	ctx     context.Context
	tracker *cost.Tracker
	limit   uint64
}

// Budget makes a budget of which nothing is spent.
func (l *Language) Budget(ctx context.Context) (*Budget, error) {
	tracker, err := l.tracker.Clone()
	return &Budget{ctx: ctx, tracker: tracker, limit: l.cost}, err
}

// Spent reports whether nothing is left.
func (b *Budget) Spent() bool { return b.tracker.ActualCost() > b.limit }

// Err returns the error of the budget's context.
func (b *Budget) Err() error { return b.ctx.Err() }

// EvalWithin is Eval for what is left of a budget.
func (e *Expression) EvalWithin(b *Budget, a cel.Activation) (ref.Val, error) {
	frame, err := interpreter.NewExecutionFrame(a)
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	if err := frame.SetContext(b.ctx, interruptEvery); err != nil {
		return nil, err
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

package expr_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// stopFact is an activation that calls a function whenever an expression reads the
// fact stop.
type stopFact func() bool

func (stopFact) Parent() cel.Activation { return nil }

func (f stopFact) ResolveName(name string) (any, bool) {
	switch name {
	case "stop":
		return types.Bool(f()), true
	case "list":
		return types.DefaultTypeAdapter.NativeToValue(make([]int64, 300)), true
	}
	return nil, false
}

func compiled(t *testing.T) (*expr.Language, *expr.Expression) {
	t.Helper()
	l, err := expr.New(expr.Config{Cost: 1_000_000, Facts: []expr.Fact{
		{Name: "stop", Type: cel.BoolType}, {Name: "list", Type: cel.ListType(cel.IntType)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e, errs := l.Compile("list.all(a, list.all(b, !stop))", nil, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	return l, e
}

// TestEvaluationEndsWithItsContext cancels during an expression of 90,000
// steps. Only the steps up to the next check of the context still run.
func TestEvaluationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, e := compiled(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	budget, err := l.Budget(ctx)
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	_, err = e.EvalWithin(budget, stopFact(func() bool {
		steps++
		cancel()
		return false
	}))
	if err == nil || steps > 200 {
		t.Errorf("error %v after %d steps", err, steps)
	}
}

// TestBudgetIsSpentOnce: expressions that share a budget cost together no more than
// a single expression may cost.
func TestBudgetIsSpentOnce(t *testing.T) {
	t.Parallel()
	l, e := compiled(t)
	budget, err := l.Budget(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	evaluate := func() (steps int, err error) {
		_, err = e.EvalWithin(budget, stopFact(func() bool { steps++; return false }))
		return steps, err
	}
	first, err := evaluate()
	if err != nil || budget.Spent() {
		t.Fatalf("the first evaluation: %v after %d steps", err, first)
	}
	all := first
	for err == nil {
		var steps int
		steps, err = evaluate()
		all += steps
	}
	if !strings.Contains(err.Error(), "cost limit") || !budget.Spent() || errors.Is(err, context.Canceled) {
		t.Errorf("the last evaluation: %v", err)
	}
	fresh, err := l.Budget(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A single expression that needs more than the whole budget.
	budget = fresh
	long, errs := l.Compile("list.all(a, list.all(b, list.all(c, !stop)))", nil, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	whole := 0
	if _, err := long.EvalWithin(budget, stopFact(func() bool { whole++; return false })); err == nil {
		t.Fatal("an expression may cost more than the budget")
	}
	if all > whole+whole/10 {
		t.Errorf("several expressions ran %d steps within a budget, a single expression %d", all, whole)
	}
	if steps, err := evaluate(); err == nil || steps > 1 {
		t.Errorf("after the budget was spent: %d steps, error %v", steps, err)
	}
}

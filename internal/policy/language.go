package policy

import (
	"slices"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// costLimit bounds the total cost of one judgement's expressions. It allows an
// expression to process the 10,000 keys of the largest bulk operation, and ends an
// evaluation within a fraction of a second.
const costLimit = 1_000_000

// facts lists the facts that a condition can use. proposed_at, and a fact with a dot, may be
// missing.
func facts() []expr.Fact {
	object := cel.MapType(cel.StringType, cel.DynType)
	return []expr.Fact{
		{Name: "action.type", Type: cel.StringType},
		{Name: "action.connector", Type: cel.StringType},
		{Name: "action.operation", Type: cel.StringType},
		{Name: "action.idempotency_key", Type: cel.StringType},
		{Name: "action.risk_claimed", Type: cel.IntType},
		{Name: "action.proposed_type", Type: cel.StringType},
		{Name: "action.reversal", Type: cel.BoolType},
		{Name: "proposed_at", Type: cel.TimestampType},
		{Name: "target.type", Type: cel.StringType},
		{Name: "target.ref", Type: cel.StringType},
		{Name: "target.refs", Type: cel.ListType(cel.StringType)},
		{Name: "target.version", Type: cel.StringType},
		{Name: "change", Type: object},
		{Name: "current", Type: object},
		{Name: "context", Type: object},
		{Name: "metadata", Type: object},
		{Name: "magnitude.amount", Type: expr.NumberType},
		{Name: "magnitude.currency", Type: cel.StringType},
		{Name: "magnitude.differs", Type: cel.BoolType},
		{Name: "money.amount", Type: expr.NumberType},
		{Name: "money.currency", Type: cel.StringType},
		{Name: "evaluations", Type: cel.ListType(object)},
		{Name: "proposer.id", Type: cel.StringType},
		{Name: "proposer.name", Type: cel.StringType},
		{Name: "proposer.kind", Type: cel.StringType},
		{Name: "proposer.roles", Type: cel.ListType(cel.StringType)},
		{Name: "proposer.sponsor", Type: cel.StringType},
		{Name: "on_behalf_of", Type: cel.StringType},
		{Name: "tenant", Type: cel.StringType},
		{Name: "risk", Type: cel.IntType},
	}
}

// compiler compiles expressions.
type compiler struct {
	*expr.Language
	// risk holds the types that the policy lists.
	risk     map[string]gatehouse.RiskLevel
	calendar *calendar
}

func newCompiler() (*compiler, error) {
	c := &calendar{zones: make(map[string]*time.Location), holidays: make(map[string]bool)}
	l, err := expr.New(expr.Config{Facts: facts(), Cost: costLimit, Functions: c.functions()})
	return &compiler{Language: l, calendar: c}, err
}

// expression is a compiled expression. It is safe for concurrent use.
type expression struct {
	*expr.Expression
	guards []guard
}

// The result types that the kinds of expression can have.
var (
	wantCondition = []*cel.Type{cel.BoolType, cel.DynType}
	wantCurrency  = []*cel.Type{cel.StringType, cel.DynType}
	wantAmount    = []*cel.Type{expr.NumberType, cel.IntType, cel.StringType, cel.DynType}
)

func (c *compiler) compile(source string, want []*cel.Type) (*expression, []expr.Error) {
	e, errs := c.Compile(source, want, c.check)
	if errs != nil {
		return nil, errs
	}
	return &expression{e, guardsOf(e.Tree())}, nil
}

// check refuses what the calendar and reachableTypes refuse.
func (c *compiler) check(root ast.Expr, fail func(at ast.Expr, format string, args ...any)) {
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) { c.calendar.check(e, fail) }))
	reachableTypes(c.risk, root, fail)
}

// reachableTypes refuses a comparison of action.type with a name that it never has: a
// rule that names ns_refund would never match, though it looks effective.
func reachableTypes(
	risk map[string]gatehouse.RiskLevel, root ast.Expr, fail func(at ast.Expr, format string, args ...any),
) {
	check := func(e ast.Expr) {
		if e.Kind() != ast.LiteralKind {
			return
		}
		name, ok := e.AsLiteral().(types.String)
		if base := known(risk, string(name)); ok && base != string(name) {
			fail(e, "action.type is %s here, since %s is not listed under risk; list it, or write action.proposed_type",
				gatehouse.Quote(base), gatehouse.Quote(string(name)))
		}
	}
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals, operators.In, operators.OldIn:
		default:
			return
		}
		args := e.AsCall().Args()
		if !slices.ContainsFunc(args, func(e ast.Expr) bool { return isFact(e, "action.type") }) {
			return
		}
		for _, arg := range args {
			check(arg)
			if arg.Kind() == ast.ListKind {
				for _, e := range arg.AsList().Elements() {
					check(e)
				}
			}
		}
	}))
}

package policy

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/gatehouse-dev/gatehouse"
)

// The bounds of one expression. The cost is CEL's: about one per value looked
// at, ten per list made. The limit lets an expression work through the 10,000
// keys of the largest bulk operation, and ends within a fraction of a second.
const (
	costLimit       = 1_000_000
	maxExpression   = 8192 // characters
	maxNodes        = 4000
	maxRegexProgram = 2000
)

// facts names what a condition may look at. A name with a dot is one variable.
var facts = []struct {
	name string
	kind *cel.Type
	// optional facts are missing when the proposal does not give them.
	optional bool
}{
	{"action.type", cel.StringType, false},
	{"action.connector", cel.StringType, false},
	{"action.operation", cel.StringType, false},
	{"action.idempotency_key", cel.StringType, true},
	{"action.risk_claimed", cel.IntType, true},
	{"action.proposed_type", cel.StringType, false},
	{"target.type", cel.StringType, false},
	{"target.ref", cel.StringType, true},
	{"target.refs", cel.ListType(cel.StringType), false},
	{"target.version", cel.StringType, true},
	{"change", cel.MapType(cel.StringType, cel.DynType), false},
	{"current", cel.MapType(cel.StringType, cel.DynType), false},
	{"context", cel.MapType(cel.StringType, cel.DynType), false},
	{"metadata", cel.MapType(cel.StringType, cel.DynType), false},
	{"magnitude.amount", numberType, true},
	{"magnitude.currency", cel.StringType, true},
	{"evaluations", cel.ListType(cel.MapType(cel.StringType, cel.DynType)), false},
	{"proposer.id", cel.StringType, false},
	{"proposer.name", cel.StringType, false},
	{"proposer.kind", cel.StringType, false},
	{"proposer.roles", cel.ListType(cel.StringType), false},
	{"proposer.sponsor", cel.StringType, true},
	{"on_behalf_of", cel.StringType, false},
	{"tenant", cel.StringType, false},
	{"risk", cel.IntType, false},
}

// givenPrefix makes the name of the variable that has(fact) becomes. No
// source can write it, since CEL's names never begin with @.
const givenPrefix = "@given."

// roots maps the part before the dot to the names below it; a fact without a
// dot has none.
func roots() map[string][]string {
	m := make(map[string][]string)
	for _, f := range facts {
		root, rest, _ := strings.Cut(f.name, ".")
		if rest == "" {
			m[root] = nil
		} else {
			m[root] = append(m[root], rest)
		}
	}
	return m
}

// compiler turns the text of expressions into programs. It holds two CEL
// environments. Sources are checked in the surface, which has CEL's own
// operators, extended to numbers; they run in the core, where rewriting has
// replaced what could absorb an error or compare by float.
type compiler struct {
	surface *cel.Env
	core    *cel.Env
	roots   map[string][]string
	options []cel.ProgramOption
	// risk has the types that the policy lists.
	risk map[string]gatehouse.RiskLevel
}

func newCompiler() (*compiler, error) {
	common := []cel.EnvOption{
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ParserRecursionLimit(64),
		cel.RegexProgramSizeLimit(maxRegexProgram),
		cel.Function("dec", cel.Overload("dec_dyn", []*cel.Type{cel.DynType}, numberType, cel.UnaryBinding(toDec))),
		cel.Function("abs", cel.Overload("abs_dyn", []*cel.Type{cel.DynType}, numberType, cel.UnaryBinding(absolute))),
		cel.Function("sum", cel.Overload("sum_list", []*cel.Type{cel.ListType(cel.DynType)}, numberType, cel.UnaryBinding(sum))),
	}
	for _, f := range facts {
		common = append(common, cel.Variable(f.name, f.kind))
	}
	surface := append(common[:len(common):len(common)], surfaceOperators()...)
	core := append(common[:len(common):len(common)], coreOperators()...)
	for _, f := range facts {
		if strings.Contains(f.name, ".") {
			v := cel.Variable(givenPrefix+f.name, cel.BoolType)
			surface, core = append(surface, v), append(core, v)
		}
	}
	c := &compiler{roots: roots(), options: append(costs(),
		cel.CostLimit(costLimit), cel.OptimizeRegex(interpreter.MatchesRegexOptimization))}
	var err error
	if c.surface, err = cel.NewCustomEnv(surface...); err != nil {
		return nil, fmt.Errorf("policy: surface environment: %w", err)
	}
	if c.core, err = cel.NewCustomEnv(core...); err != nil {
		return nil, fmt.Errorf("policy: core environment: %w", err)
	}
	return c, nil
}

// numeric lists the operators that numbers have, their names in the core, and
// what runs there.
var numeric = []struct {
	surface, core string
	logical       bool
	run           func(a, b ref.Val) ref.Val
}{
	{operators.Less, "@lt", true, ordered(func(s types.Int) bool { return s < 0 })},
	{operators.LessEquals, "@le", true, ordered(func(s types.Int) bool { return s <= 0 })},
	{operators.Greater, "@gt", true, ordered(func(s types.Int) bool { return s > 0 })},
	{operators.GreaterEquals, "@ge", true, ordered(func(s types.Int) bool { return s >= 0 })},
	{operators.Add, "@add", false, add},
	{operators.Subtract, "@sub", false, subtract},
	{operators.Multiply, "@mul", false, multiply},
}

// surfaceOperators declares the operators with numbers, for the type check
// only. CEL's own equality wants one type on both sides, and would refuse
// dec(x) == 1; what can be equal is checked by the rewriter instead.
func surfaceOperators() []cel.EnvOption {
	options := []cel.EnvOption{cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{
		ExcludeFunctions: []*env.Function{
			env.NewFunction(operators.Equals), env.NewFunction(operators.NotEquals), env.NewFunction(operators.In),
		},
	}))}
	for _, op := range numeric {
		result := numberType
		if op.logical {
			result = cel.BoolType
		}
		id := strings.TrimPrefix(op.core, "@") + "_decimal"
		options = append(options, cel.Function(op.surface,
			cel.Overload(id, []*cel.Type{numberType, numberType}, result),
			cel.Overload(id+"_int", []*cel.Type{numberType, cel.IntType}, result),
			cel.Overload("int_"+id, []*cel.Type{cel.IntType, numberType}, result),
		))
	}
	for _, name := range []string{operators.Equals, operators.NotEquals, operators.In} {
		options = append(options, cel.Function(name,
			cel.Overload(name+"_any", []*cel.Type{cel.DynType, cel.DynType}, cel.BoolType)))
	}
	return append(options,
		cel.Function(operators.Negate, cel.Overload("neg_decimal", []*cel.Type{numberType}, numberType)),
		cel.Function("string", cel.Overload("string_decimal", []*cel.Type{numberType}, cel.StringType)))
}

// coreOperators declares what rewriting puts in the place of CEL's operators.
func coreOperators() []cel.EnvOption {
	dyn2 := []*cel.Type{cel.DynType, cel.DynType}
	binary := func(name string, result *cel.Type, run func(a, b ref.Val) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.Overload(name, dyn2, result, cel.BinaryBinding(run)))
	}
	options := []cel.EnvOption{
		cel.StdLib(),
		binary("@eq", cel.BoolType, equal),
		binary("@ne", cel.BoolType, notEqual),
		binary("@contains", cel.BoolType, contains),
		binary("@has", cel.BoolType, has),
		cel.Function("@size", cel.Overload("@size", []*cel.Type{cel.DynType}, cel.IntType, cel.UnaryBinding(size))),
		cel.Function("@string", cel.Overload("@string", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(toText))),
		cel.Function("@neg", cel.Overload("@neg", []*cel.Type{cel.DynType}, cel.DynType, cel.UnaryBinding(negate))),
	}
	for _, op := range numeric {
		result := cel.DynType
		if op.logical {
			result = cel.BoolType
		}
		options = append(options, binary(op.core, result, op.run))
	}
	return options
}

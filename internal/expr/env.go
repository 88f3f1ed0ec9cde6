package expr

import (
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// The bounds of one expression, whatever its language.
const (
	maxExpression   = 8192 // characters
	maxNodes        = 4000
	maxRegexProgram = 2000
)

// Fact is something that expressions may look at. A name with a dot is one
// variable, which has(…) can ask for; it is missing where the activation does
// not resolve it.
type Fact struct {
	Name string
	Type *cel.Type
}

// Config describes a language.
type Config struct {
	Facts []Fact
	// Cost is the limit of one evaluation, in CEL's unit: about one per value
	// looked at, ten per list made.
	Cost uint64
	// Functions are those that the language has beside dec, abs and sum; Costs
	// says what their overloads cost, one where it says nothing.
	Functions []cel.EnvOption
	Costs     map[string]cost.FunctionTracker
}

// GivenPrefix makes the name of the variable that has(fact) becomes, which the
// activation resolves to whether the fact is given. No source can write it,
// since CEL's names never begin with @.
const GivenPrefix = "@given."

// roots maps the part before the dot to the names below it; a fact without a
// dot has none.
func roots(facts []Fact) map[string][]string {
	m := make(map[string][]string)
	for _, f := range facts {
		root, rest, _ := strings.Cut(f.Name, ".")
		if rest == "" {
			m[root] = nil
		} else {
			m[root] = append(m[root], rest)
		}
	}
	return m
}

// Language turns the text of expressions into programs. It holds two CEL
// environments. Sources are checked in the surface, which has CEL's own
// operators, extended to numbers; they run in the core, where rewriting has
// replaced what could absorb an error or compare by float. It is safe for
// concurrent use.
type Language struct {
	surface *cel.Env
	core    *cel.Env
	// checking is held while types are checked: the checker of cel-go 0.33 makes its catalog of
	// names with the first error, and reads it elsewhere without waiting for that.
	checking sync.Mutex
	roots    map[string][]string
	options  []cel.ProgramOption
	// tracker counts what is evaluated within a budget, up to cost.
	tracker *cost.Tracker
	cost    uint64
}

// New makes a language. It takes about a millisecond: keep it.
func New(config Config) (*Language, error) {
	common := []cel.EnvOption{
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ParserRecursionLimit(64),
		cel.RegexProgramSizeLimit(maxRegexProgram),
		cel.Function("dec", cel.Overload("dec_dyn", []*cel.Type{cel.DynType}, NumberType, cel.UnaryBinding(toDec))),
		cel.Function("abs", cel.Overload("abs_dyn", []*cel.Type{cel.DynType}, NumberType, cel.UnaryBinding(absolute))),
		cel.Function("sum", cel.Overload("sum_list", []*cel.Type{cel.ListType(cel.DynType)}, NumberType, cel.UnaryBinding(sum))),
	}
	common = append(common, config.Functions...)
	for _, f := range config.Facts {
		common = append(common, cel.Variable(f.Name, f.Type))
	}
	surface := append(common[:len(common):len(common)], surfaceOperators()...)
	core := append(common[:len(common):len(common)], coreOperators()...)
	for _, f := range config.Facts {
		if strings.Contains(f.Name, ".") {
			v := cel.Variable(GivenPrefix+f.Name, cel.BoolType)
			surface, core = append(surface, v), append(core, v)
		}
	}
	trackers := costs(config.Costs)
	l := &Language{roots: roots(config.Facts), cost: config.Cost, options: []cel.ProgramOption{
		cel.CostTrackerOptions(trackers...), cel.CostLimit(config.Cost),
		cel.InterruptCheckFrequency(interruptEvery), cel.OptimizeRegex(interpreter.MatchesRegexOptimization),
	}}
	var err error
	if l.tracker, err = cost.NewTracker(nil, append(trackers, cost.TrackerLimit(config.Cost))...); err != nil {
		return nil, fmt.Errorf("expr: cost tracker: %w", err)
	}
	if l.surface, err = cel.NewCustomEnv(surface...); err != nil {
		return nil, fmt.Errorf("expr: surface environment: %w", err)
	}
	if l.core, err = cel.NewCustomEnv(core...); err != nil {
		return nil, fmt.Errorf("expr: core environment: %w", err)
	}
	return l, nil
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
		result := NumberType
		if op.logical {
			result = cel.BoolType
		}
		id := strings.TrimPrefix(op.core, "@") + "_decimal"
		options = append(options, cel.Function(op.surface,
			cel.Overload(id, []*cel.Type{NumberType, NumberType}, result),
			cel.Overload(id+"_int", []*cel.Type{NumberType, cel.IntType}, result),
			cel.Overload("int_"+id, []*cel.Type{cel.IntType, NumberType}, result),
		))
	}
	for _, name := range []string{operators.Equals, operators.NotEquals, operators.In} {
		options = append(options, cel.Function(name,
			cel.Overload(name+"_any", []*cel.Type{cel.DynType, cel.DynType}, cel.BoolType)))
	}
	return append(options,
		cel.Function(operators.Negate, cel.Overload("neg_decimal", []*cel.Type{NumberType}, NumberType)),
		cel.Function("string", cel.Overload("string_decimal", []*cel.Type{NumberType}, cel.StringType)))
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

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

// The bounds of one expression in any language.
const (
	maxExpression   = 8192 // characters
	maxNodes        = 4000
	maxRegexProgram = 2000
)

// Fact is something that expressions can read. A name with a dot is one
// variable, which has(…) can test; it is missing when the activation does not
// resolve it.
type Fact struct {
	Name string
	Type *cel.Type
}

// Config describes a language.
type Config struct {
	Facts []Fact
	// Cost is the limit of one evaluation, in CEL's unit: about one per value
	// read, ten per list built.
	Cost uint64
	// Functions are the language's functions besides dec, abs and sum. Costs
	// holds the costs of their overloads; the default is one.
	Functions []cel.EnvOption
	Costs     map[string]cost.FunctionTracker
}

// GivenPrefix prefixes the variable that replaces has(fact). The activation
// resolves that variable to true if the fact is present, else to false. No source
// can contain the prefix, because CEL names never begin with @.
const GivenPrefix = "@given."

// roots maps the part before the dot to the names after it; a fact without a
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

// Language compiles expressions to programs. It holds two CEL environments.
// Sources are checked in the surface, which has CEL's own operators, extended
// to numbers. They run in the core, where rewriting has replaced every operator
// that could absorb an error or compare by float. A Language is safe for
// concurrent use.
type Language struct {
	surface *cel.Env
	core    *cel.Env
	// checking is held during type checks: the checker of cel-go 0.33 builds
	// its catalog of names at the first error, and reads it elsewhere without a
	// lock.
	checking sync.Mutex
	roots    map[string][]string
	options  []cel.ProgramOption
	// whole and small are the limits of budgets.
	whole, small limit
}

// New builds a language. It takes about a millisecond, so keep the result.
func New(config Config) (*Language, error) {
	common := []cel.EnvOption{
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ParserRecursionLimit(64),
		cel.RegexProgramSizeLimit(maxRegexProgram),
		cel.Function("dec", cel.Overload("dec_dyn", []*cel.Type{cel.DynType}, NumberType, cel.UnaryBinding(toDec))),
		cel.Function("abs", cel.Overload("abs_dyn", []*cel.Type{cel.DynType}, NumberType, cel.UnaryBinding(absolute))),
		cel.Function("sum",
			cel.Overload("sum_list", []*cel.Type{cel.ListType(cel.DynType)}, NumberType, cel.UnaryBinding(sum))),
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
	l := &Language{roots: roots(config.Facts), options: []cel.ProgramOption{
		cel.CostTrackerOptions(trackers...), cel.CostLimit(config.Cost),
		cel.InterruptCheckFrequency(interruptEvery), cel.OptimizeRegex(interpreter.MatchesRegexOptimization),
	}}
	var err error
	if l.whole, err = newLimit(config.Cost, trackers); err != nil {
		return nil, err
	}
	if l.small, err = newLimit(config.Cost/smallPart, trackers); err != nil {
		return nil, err
	}
	if l.surface, err = cel.NewCustomEnv(surface...); err != nil {
		return nil, fmt.Errorf("expr: surface environment: %w", err)
	}
	if l.core, err = cel.NewCustomEnv(core...); err != nil {
		return nil, fmt.Errorf("expr: core environment: %w", err)
	}
	return l, nil
}

// numeric lists the operators on numbers, their names in the core, and their
// implementations.
var numeric = []struct {
	surface, core string
	comparison    bool
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

// surfaceOperators declares the operators on numbers, for the type check only.
// CEL's own equality requires the same type on both sides and would refuse
// dec(x) == 1, so the rewriter checks equality instead.
func surfaceOperators() []cel.EnvOption {
	options := []cel.EnvOption{cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{
		ExcludeFunctions: []*env.Function{
			env.NewFunction(operators.Equals), env.NewFunction(operators.NotEquals), env.NewFunction(operators.In),
		},
	}))}
	for _, op := range numeric {
		result := NumberType
		if op.comparison {
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

// coreOperators declares the functions that replace CEL's operators.
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
		if op.comparison {
			result = cel.BoolType
		}
		options = append(options, binary(op.core, result, op.run))
	}
	return options
}

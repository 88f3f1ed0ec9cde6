package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// The bounds of evaluation, in the unit of [expr.Config]: for one expression,
// and for all expressions of a template.
const (
	costLimit     = 500_000
	templateLimit = 1_000_000
	// maxText bounds, in bytes, the text that split takes, the text that join
	// returns, and the JSON that json returns or sha256 hashes.
	maxText = MaxOutput
)

// theLanguage returns the language of workflows. Building it takes
// milliseconds, and the result is always the same, so it is built once.
var theLanguage = sync.OnceValues(func() (*expr.Language, error) {
	text := func(name string) expr.Fact { return expr.Fact{Name: name, Type: cel.StringType} }
	return expr.New(expr.Config{
		Facts: []expr.Fact{
			{Name: "input", Type: cel.DynType},
			{Name: "steps", Type: cel.MapType(cel.StringType, cel.MapType(cel.StringType, cel.DynType))},
			{Name: "item", Type: cel.DynType},
			{Name: "index", Type: cel.IntType},
			{Name: "iteration", Type: cel.IntType},
			{Name: "now", Type: cel.TimestampType},
			text("run.id"), text("run.tenant"), text("run.workflow"), text("run.workspace"), text("run.trigger"),
			text("run.trigger_ref"), text("run.started_by"), text("run.retry_of"),
			{Name: "run.version", Type: cel.IntType},
			{Name: "run.created_at", Type: cel.TimestampType},
		},
		Cost:      costLimit,
		Functions: functions(),
		Costs:     functionCosts(),
	})
})

// functions are the template functions beyond CEL's own.
func functions() []cel.EnvOption {
	text1 := []*cel.Type{cel.StringType}
	unary := func(name string, run func(string) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.Overload(name+"_text", text1, cel.StringType, cel.UnaryBinding(func(v ref.Val) ref.Val {
			s, ok := v.(types.String)
			if !ok {
				return types.MaybeNoSuchOverloadErr(v)
			}
			return run(string(s))
		})))
	}
	return []cel.EnvOption{
		unary("lower", func(s string) ref.Val { return types.String(strings.ToLower(s)) }),
		unary("upper", func(s string) ref.Val { return types.String(strings.ToUpper(s)) }),
		unary("trim", func(s string) ref.Val { return types.String(strings.TrimSpace(s)) }),
		cel.Function("json",
			cel.Overload("json_any", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(toJSONText))),
		cel.Function("sha256",
			cel.Overload("sha256_any", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(hashed))),
		cel.Function("join",
			cel.Overload("join_list_text", []*cel.Type{cel.ListType(cel.DynType), cel.StringType}, cel.StringType,
				cel.BinaryBinding(join))),
		cel.Function("split",
			cel.Overload("split_text_text", []*cel.Type{cel.StringType, cel.StringType}, cel.ListType(cel.StringType),
				cel.BinaryBinding(split))),
		cel.Function("truncate", cel.Overload("truncate_text_int", []*cel.Type{cel.StringType, cel.IntType}, cel.StringType,
			cel.BinaryBinding(truncate))),
	}
}

func functionCosts() map[string]cost.FunctionTracker {
	of := func(args []ref.Val, _ ref.Val) *uint64 {
		n := 1 + expr.Weight(args[0])
		return &n
	}
	costs := make(map[string]cost.FunctionTracker)
	for _, name := range []string{
		"lower_text", "upper_text", "trim_text", "json_any", "sha256_any", "join_list_text", "split_text_text",
		"truncate_text_int",
	} {
		costs[name] = of
	}
	return costs
}

func toJSONText(v ref.Val) ref.Val {
	j, err := expr.ToJSON(v, maxText)
	if err != nil {
		return types.NewErr("json: %v", err)
	}
	return types.String(j)
}

// hashed is the SHA-256 of a string, or of any other value's canonical JSON.
func hashed(v ref.Val) ref.Val {
	s, ok := v.(types.String)
	if !ok {
		j, err := expr.ToJSON(v, maxText)
		if err != nil {
			return types.NewErr("sha256: %v", err)
		}
		s = types.String(j)
	}
	sum := sha256.Sum256([]byte(s))
	return types.String(hex.EncodeToString(sum[:]))
}

func join(list, separator ref.Val) ref.Val {
	l, ok := list.(traits.Lister)
	sep, ok2 := separator.(types.String)
	if !ok || !ok2 {
		return types.MaybeNoSuchOverloadErr(list)
	}
	var b strings.Builder
	first := true
	for it := l.Iterator(); it.HasNext() == types.True; first = false {
		s, err := expr.Text(it.Next())
		if err != nil {
			return types.NewErr("join: %v", err)
		}
		if !first {
			b.WriteString(string(sep))
		}
		if b.WriteString(s); b.Len() > maxText {
			return types.NewErr("join: the text is longer than %d bytes", maxText)
		}
	}
	return types.String(b.String())
}

func split(text, separator ref.Val) ref.Val {
	s, ok := text.(types.String)
	sep, ok2 := separator.(types.String)
	switch {
	case !ok || !ok2:
		return types.MaybeNoSuchOverloadErr(text)
	case sep == "":
		return types.NewErr("split: the separator is empty")
	case len(s) > maxText:
		return types.NewErr("split: the text is longer than %d bytes", maxText)
	}
	return types.NewStringList(types.DefaultTypeAdapter, strings.Split(string(s), string(sep)))
}

// truncate shortens a text of more than n characters to its first n-1 characters and "…".
func truncate(text, n ref.Val) ref.Val {
	s, ok := text.(types.String)
	limit, ok2 := n.(types.Int)
	switch {
	case !ok || !ok2:
		return types.MaybeNoSuchOverloadErr(text)
	case limit < 1:
		return types.NewErr("truncate: the length must be 1 or more")
	}
	if runes := []rune(string(s)); int64(len(runes)) > int64(limit) {
		return types.String(string(runes[:limit-1]) + "…")
	}
	return s
}

// reads lists the values that an expression may read besides input and run, and
// records those that it reads.
type reads struct {
	// steps are the upstream steps, whose output the expression may read.
	steps map[string]bool
	known map[string]bool
	// item says that the step has a for_each, so item and index exist.
	item bool
	// clock says that the expression may read the time.
	clock bool
	// inputOnly says that there is no run yet.
	inputOnly bool
	// refused are the steps whose rejection the expression may read.
	refused map[string]bool
	// repeated says that the expression's step may be repeated, so iteration exists.
	repeated bool

	// seen records the steps that the expression reads, seenItem whether it
	// reads item or index, seenIteration whether it reads iteration.
	seen          map[string]bool
	seenItem      bool
	seenIteration bool
}

// check refuses, before type checking, reads that can never succeed.
func (r *reads) check(root ast.Expr, fail func(at ast.Expr, format string, args ...any)) {
	var walk func(e ast.Expr)
	walk = func(e ast.Expr) {
		if id, ok := stepNamed(e); ok {
			fail(start(e), "write steps[%q].output", id)
			return
		}
		if operand, field, ok := fieldOf(e); ok {
			if id, ok := stepNamed(operand); ok {
				r.step(start(e), id, field, fail)
				return
			}
		}
		switch e.Kind() {
		case ast.IdentKind:
			r.ident(e, fail)
		case ast.SelectKind:
			walk(e.AsSelect().Operand())
		case ast.CallKind:
			if e.AsCall().IsMemberFunction() {
				walk(e.AsCall().Target())
			}
			for _, arg := range e.AsCall().Args() {
				walk(arg)
			}
		case ast.ListKind:
			for _, el := range e.AsList().Elements() {
				walk(el)
			}
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				walk(entry.AsMapEntry().Key())
				walk(entry.AsMapEntry().Value())
			}
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
				walk(part)
			}
		}
	}
	walk(root)
}

func (r *reads) step(e ast.Expr, id, field string, fail func(ast.Expr, string, ...any)) {
	switch {
	case r.inputOnly:
		fail(e, "there are no steps yet; only input can be read here")
	case !r.known[id]:
		fail(e, "there is no step %s", gatehouse.Quote(id))
	case field == "rejection" && r.refused[id]:
		r.seen[id] = true
	case field == "rejection":
		fail(e, "the rejection of step %s cannot be read here: only the steps that its on_rejected or on_expired repeats, "+
			"and the steps that need it, can read it", id)
	case !r.steps[id]:
		fail(e, "step %s may still be running here; add it to needs", gatehouse.Quote(id))
	case field != "output":
		fail(e, "a step has an output and a rejection, and no %s", gatehouse.Quote(field))
	default:
		r.seen[id] = true
	}
}

func (r *reads) ident(e ast.Expr, fail func(ast.Expr, string, ...any)) {
	switch name := e.AsIdent(); {
	case name == "steps":
		fail(e, "steps must be followed by the id of a step: steps.<id>.output")
	case r.inputOnly && (name == "run" || name == "now"):
		fail(e, "there is no run yet; only input can be read here")
	case name == "item" || name == "index":
		if r.seenItem = true; !r.item {
			fail(e, "%s exists only in a step with for_each; name a variable of a macro differently", name)
		}
	case name == "iteration":
		if r.seenIteration = true; !r.repeated {
			fail(e, "iteration exists only in a step that on_rejected or on_expired repeats")
		}
	case name == "now" && !r.clock:
		fail(e, "the time cannot be part of an idempotency key, which must be the same at each attempt")
	}
}

// stepNamed matches steps.name and steps["name"].
func stepNamed(e ast.Expr) (id string, ok bool) {
	operand, field, ok := fieldOf(e)
	if !ok || operand.Kind() != ast.IdentKind || operand.AsIdent() != "steps" {
		return "", false
	}
	return field, true
}

// fieldOf matches x.name and x["name"].
func fieldOf(e ast.Expr) (operand ast.Expr, field string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || len(call.Args()) != 2 || call.Args()[1].Kind() != ast.LiteralKind {
			return nil, "", false
		}
		name, ok := call.Args()[1].AsLiteral().(types.String)
		return call.Args()[0], string(name), ok
	}
	return nil, "", false
}

// start returns the expression at which a path begins.
func start(e ast.Expr) ast.Expr {
	for {
		operand, _, ok := fieldOf(e)
		if !ok {
			return e
		}
		e = operand
	}
}

package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/gatehouse-dev/gatehouse"
)

// rewriter changes a tree in place. Nodes keep their ids, so that the check's
// results still apply to them.
type rewriter struct {
	*Language
	source  []rune
	tree    *ast.AST
	checked *ast.AST
	factory ast.ExprFactory
	nextID  int64
	errs    []Error
}

func (r *rewriter) id() int64 {
	r.nextID++
	return r.nextID
}

func (r *rewriter) fail(e ast.Expr, format string, args ...any) {
	offset := 0
	if at, ok := r.tree.SourceInfo().GetOffsetRange(e.ID()); ok {
		offset = int(at.Start)
	}
	r.errs = append(r.errs, Error{offset, fmt.Sprintf(format, args...)})
}

var literal = regexp.MustCompile(`^-?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?`)

// facts is the first pass, before the check: 10.50 becomes dec("10.50"), and
// has(target.ref) becomes a test whether that fact is present.
func (r *rewriter) facts(e ast.Expr) {
	switch e.Kind() {
	case ast.LiteralKind:
		if f, ok := e.AsLiteral().(types.Double); ok {
			r.decimal(e, float64(f))
		}
	case ast.SelectKind:
		sel := e.AsSelect()
		if !sel.IsTestOnly() || sel.Operand().Kind() != ast.IdentKind {
			return
		}
		root := sel.Operand().AsIdent()
		if slices.Contains(r.roots[root], sel.FieldName()) {
			e.SetKindCase(r.factory.NewIdent(e.ID(), GivenPrefix+root+"."+sel.FieldName()))
		}
	case ast.ComprehensionKind:
		for _, name := range []string{e.AsComprehension().IterVar(), e.AsComprehension().IterVar2()} {
			if _, ok := r.roots[name]; ok {
				r.fail(e, "%s is the name of a fact; give the variable another name", name)
			}
		}
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case "double":
			r.fail(e, "double makes a float, which is not exact; use dec(…)")
		case "dec":
			if len(call.Args()) != 1 || call.Args()[0].Kind() != ast.LiteralKind {
				return
			}
			if _, err := ToNumber(call.Args()[0].AsLiteral()); err != nil {
				r.fail(call.Args()[0], "%v", err)
			}
		}
	}
}

// decimal replaces a float literal with the number in its source text.
func (r *rewriter) decimal(e ast.Expr, value float64) {
	at, ok := r.tree.SourceInfo().GetOffsetRange(e.ID())
	if ok && int(at.Start) < len(r.source) {
		text := literal.FindString(string(r.source[at.Start:min(len(r.source), int(at.Start)+gatehouse.MaxNumberChars)]))
		same, ferr := strconv.ParseFloat(text, 64)
		padded := text
		if i := strings.IndexByte(text, '.'); i == 0 || i == 1 && text[0] == '-' {
			padded = text[:i] + "0" + text[i:]
		}
		d, derr := gatehouse.ParseDecimal(padded)
		if ferr == nil && derr == nil && same == value {
			e.SetKindCase(r.factory.NewCall(e.ID(), "dec", r.factory.NewLiteral(r.id(), types.String(d))))
			return
		}
	}
	r.fail(e, `this number cannot be read exactly; write it as dec("…")`)
}

// operators is the second pass, between the two checks.
//
// In CEL, && and || absorb an error on either side if the other side decides.
// Here they evaluate from left to right. An error to the left of the deciding
// term is an error of the whole. Terms to the right of it are not evaluated, so
// that has(x) && x > 1 is a guard. The macros all and exists expand to && and
// || and follow the same rule.
//
// Comparisons and arithmetic that may involve a number use the core's own
// operators.
func (r *rewriter) operators(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		sel := e.AsSelect()
		if sel.IsTestOnly() {
			field := r.factory.NewLiteral(r.id(), types.String(sel.FieldName()))
			e.SetKindCase(r.factory.NewCall(e.ID(), "@has", sel.Operand(), field))
		}
	case ast.CallKind:
		call := e.AsCall()
		switch name := call.FunctionName(); name {
		case operators.LogicalAnd:
			r.chain(e, call.Args(), func(id int64, first, rest ast.Expr) ast.Expr {
				return r.factory.NewCall(id, operators.Conditional, first, rest, r.factory.NewLiteral(r.id(), types.False))
			})
		case operators.LogicalOr:
			r.chain(e, call.Args(), func(id int64, first, rest ast.Expr) ast.Expr {
				return r.factory.NewCall(id, operators.Conditional, first, r.factory.NewLiteral(r.id(), types.True), rest)
			})
		case operators.Equals:
			r.comparable(e, "==", r.typeOf(call.Args()[0]), r.typeOf(call.Args()[1]))
			r.replace(e, "@eq", !r.plainArgs(call))
		case operators.NotEquals:
			r.comparable(e, "!=", r.typeOf(call.Args()[0]), r.typeOf(call.Args()[1]))
			r.replace(e, "@ne", !r.plainArgs(call))
		case operators.In:
			switch elem, in := r.typeOf(call.Args()[0]), r.typeOf(call.Args()[1]); in.Kind() {
			case types.DynKind:
			case types.ListKind, types.MapKind:
				r.comparable(e, "in", elem, in.Parameters()[0])
			default:
				r.fail(e, "in needs a list or a map on its right, not %s", cel.FormatCELType(in))
			}
			r.replace(e, "@contains", !r.plainArgs(call))
		case "size":
			arg := call.Target()
			if !call.IsMemberFunction() {
				arg = call.Args()[0]
			}
			e.SetKindCase(r.factory.NewCall(e.ID(), "@size", arg))
		case "string":
			r.replace(e, "@string", !r.plainArgs(call))
		case operators.Negate:
			r.replace(e, "@neg", !r.plainArgs(call))
		case operators.Add:
			// CEL's own + appends to lists in place in the macros map and
			// filter.
			lists := r.typeOf(call.Args()[0]).Kind() == types.ListKind && r.typeOf(call.Args()[1]).Kind() == types.ListKind
			r.replace(e, "@add", !lists && !r.plainArgs(call))
		default:
			for _, op := range numeric {
				if op.surface == name {
					r.replace(e, op.core, !r.plainArgs(call))
				}
			}
		}
	}
}

// chain folds the terms of a logical operator from the right.
func (r *rewriter) chain(e ast.Expr, terms []ast.Expr, join func(id int64, first, rest ast.Expr) ast.Expr) {
	rest := terms[len(terms)-1]
	for i := len(terms) - 2; i > 0; i-- {
		rest = join(r.id(), terms[i], rest)
	}
	e.SetKindCase(join(e.ID(), terms[0], rest))
}

func (r *rewriter) replace(e ast.Expr, function string, needed bool) {
	if needed {
		e.SetKindCase(r.factory.NewCall(e.ID(), function, e.AsCall().Args()...))
	}
}

// plainArgs reports whether all arguments have types that CEL compares exactly,
// so that its own operator can stay.
func (r *rewriter) plainArgs(call ast.CallExpr) bool {
	for _, arg := range call.Args() {
		if !plain(r.typeOf(arg)) {
			return false
		}
	}
	return true
}

func (r *rewriter) typeOf(e ast.Expr) *cel.Type { return r.checked.GetType(e.ID()) }

// comparable fails if values of the two types can never be equal.
func (r *rewriter) comparable(e ast.Expr, op string, a, b *cel.Type) {
	if !canEqual(a, b) {
		r.fail(e, "%s between %s and %s never holds", op, cel.FormatCELType(a), cel.FormatCELType(b))
	}
}

func canEqual(a, b *cel.Type) bool {
	loose := func(t *cel.Type) bool {
		return t.Kind() == types.DynKind || t.Kind() == types.NullTypeKind || t.Kind() == types.TypeParamKind
	}
	numeric := func(t *cel.Type) bool {
		return t.Kind() == types.IntKind || t.Kind() == types.UintKind || t.IsExactType(NumberType)
	}
	switch {
	case loose(a) || loose(b) || numeric(a) && numeric(b):
		return true
	case a.Kind() == types.ListKind && b.Kind() == types.ListKind, a.Kind() == types.MapKind && b.Kind() == types.MapKind:
		for i, p := range a.Parameters() {
			if !canEqual(p, b.Parameters()[i]) {
				return false
			}
		}
		return true
	}
	return a.IsExactType(b)
}

func plain(t *cel.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.StringKind:
		return true
	case types.ListKind:
		return len(t.Parameters()) == 1 && plain(t.Parameters()[0])
	}
	return false
}

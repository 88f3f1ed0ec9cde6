package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/gatehouse-dev/gatehouse"
)

// Error is a problem at a rune offset of an expression.
type Error struct {
	Offset int
	Detail string
}

// Expression is a compiled expression. It is safe for concurrent use.
type Expression struct {
	Source  string
	program cel.Program
	tree    *ast.AST
}

// Tree returns the type-checked tree, for linters. It must not be changed.
func (e *Expression) Tree() ast.Expr { return e.tree.Expr() }

// Type returns the type that the check found.
func (e *Expression) Type() *cel.Type { return e.tree.GetType(e.tree.Expr().ID()) }

// Eval evaluates the expression. A CEL error or unknown value is returned as an
// error.
func (e *Expression) Eval(a cel.Activation) (ref.Val, error) {
	v, _, err := e.EvalCost(a)
	return v, err
}

// EvalCost evaluates the expression and returns its cost.
func (e *Expression) EvalCost(a cel.Activation) (ref.Val, uint64, error) {
	v, details, err := e.program.Eval(a)
	spent := uint64(0)
	if details != nil && details.ActualCost() != nil {
		spent = *details.ActualCost()
	}
	if err != nil {
		return nil, spent, err
	}
	if types.IsUnknownOrError(v) {
		return nil, spent, fmt.Errorf("%v", v)
	}
	return v, spent, nil
}

// Check inspects the tree of an expression as written, before type checking. It
// calls fail for whatever the language refuses in addition to type errors.
type Check func(root ast.Expr, fail func(at ast.Expr, format string, args ...any))

// Compile parses and checks an expression, whose value must have one of the
// wanted types (nil means any), and plans its program. Beyond CEL's own errors,
// it reports double(), fractions that cannot be read exactly, dec() of text that
// is not a number, comparisons that can never hold, iteration variables with the
// name of a fact, and the problems that check reports. check may be nil.
func (l *Language) Compile(source string, want []*cel.Type, check Check) (*Expression, []Error) {
	lines := lineStarts(source)
	parsed, issues := l.surface.Parse(source)
	if errs := l.issues(issues, lines); errs != nil {
		return nil, errs
	}
	tree := parsed.NativeRep()
	r := &rewriter{
		Language: l, source: []rune(source), tree: tree,
		nextID: ast.MaxID(tree) + 1, factory: ast.NewExprFactory(),
	}
	if check != nil {
		check(tree.Expr(), r.fail)
	}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(r.facts))
	if r.errs != nil {
		return nil, r.errs
	}
	checked, issues := l.check(l.surface, parsed)
	if errs := l.issues(issues, lines); errs != nil {
		return nil, errs
	}
	if got := checked.OutputType(); want != nil && !slices.ContainsFunc(want, got.IsExactType) {
		return nil, []Error{
			{0, fmt.Sprintf("gives %s, but must give %s", cel.FormatCELType(got), cel.FormatCELType(want[0]))}}
	}
	surface := ast.Copy(checked.NativeRep())
	r.checked, r.tree = surface, checked.NativeRep()
	ast.PostOrderVisit(r.tree.Expr(), ast.NewExprVisitor(r.operators))
	if r.errs != nil {
		return nil, r.errs
	}
	core, issues := l.check(l.core, checked)
	if errs := l.issues(issues, lines); errs != nil {
		return nil, errs
	}
	program, err := l.core.Program(core, l.options...)
	if err != nil {
		return nil, []Error{{0, err.Error()}}
	}
	return &Expression{Source: source, program: program, tree: surface}, nil
}

func (l *Language) check(env *cel.Env, tree *cel.Ast) (*cel.Ast, *cel.Issues) {
	l.checking.Lock()
	defer l.checking.Unlock()
	return env.Check(tree)
}

var undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)

func (l *Language) issues(issues *cel.Issues, lines []int) []Error {
	if issues.Err() == nil {
		return nil
	}
	var errs []Error
	for _, e := range issues.Errors() {
		detail := e.Message
		if m := undeclared.FindStringSubmatch(detail); m != nil {
			detail = l.unknownFact(m[1])
		}
		detail, _, _ = strings.Cut(detail, " expecting {")
		if detail == "invalid int literal" {
			detail = `this number is too large for an integer; write it as dec("…")`
		}
		offset := 0
		if line := e.Location.Line(); line >= 1 && line <= len(lines) {
			offset = lines[line-1] + max(0, e.Location.Column())
		}
		errs = append(errs, Error{offset, detail})
	}
	return errs
}

func (l *Language) unknownFact(name string) string {
	root, _, _ := strings.Cut(name, ".")
	if below := l.roots[root]; below != nil {
		return fmt.Sprintf("%s has only %s", root, strings.Join(below, ", "))
	}
	return fmt.Sprintf("there is no fact or function named %s", gatehouse.Quote(name))
}

// lineStarts returns the rune offset of the start of each line.
func lineStarts(s string) []int {
	starts := []int{0}
	for i, r := range []rune(s) {
		if r == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// Brief shortens a text to one line of at most limit characters.
func Brief(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return s
}

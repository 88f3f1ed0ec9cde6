package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"

	"github.com/gatehouse-dev/gatehouse"
)

// exprError is what is wrong with an expression, at a rune of its text.
type exprError struct {
	offset int
	detail string
}

// expression is a compiled expression; program is safe for concurrent use.
type expression struct {
	source  string
	program cel.Program
	// tree is the checked tree of the surface, for the linter.
	tree *ast.AST
}

// The kinds of result that an expression can be asked for.
var (
	wantCondition = []*cel.Type{cel.BoolType, cel.DynType}
	wantAmount    = []*cel.Type{numberType, cel.IntType, cel.StringType, cel.DynType}
)

// compile parses and checks an expression and plans its program. What it
// refuses beyond CEL's own checks: floats, dec() of a text that is no number,
// and iteration variables that hide a fact.
func (c *compiler) compile(source string, want []*cel.Type) (*expression, []exprError) {
	lines := lineStarts(source)
	parsed, issues := c.surface.Parse(source)
	if errs := c.issues(issues, lines); errs != nil {
		return nil, errs
	}
	tree := parsed.NativeRep()
	r := &rewriter{
		compiler: c, source: []rune(source), tree: tree,
		nextID: ast.MaxID(tree) + 1, factory: ast.NewExprFactory(),
	}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(r.facts))
	if r.errs != nil {
		return nil, r.errs
	}
	checked, issues := c.surface.Check(parsed)
	if errs := c.issues(issues, lines); errs != nil {
		return nil, errs
	}
	if got := checked.OutputType(); !slices.ContainsFunc(want, got.IsExactType) {
		return nil, []exprError{{0, fmt.Sprintf("gives %s, but must give %s", cel.FormatCELType(got), cel.FormatCELType(want[0]))}}
	}
	surface := ast.Copy(checked.NativeRep())
	r.checked, r.tree = surface, checked.NativeRep()
	ast.PostOrderVisit(r.tree.Expr(), ast.NewExprVisitor(r.operators))
	if r.errs != nil {
		return nil, r.errs
	}
	core, issues := c.core.Check(checked)
	if errs := c.issues(issues, lines); errs != nil {
		return nil, errs
	}
	program, err := c.core.Program(core, c.options...)
	if err != nil {
		return nil, []exprError{{0, err.Error()}}
	}
	return &expression{source: source, program: program, tree: surface}, nil
}

var undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)

func (c *compiler) issues(issues *cel.Issues, lines []int) []exprError {
	if issues.Err() == nil {
		return nil
	}
	var errs []exprError
	for _, e := range issues.Errors() {
		detail := e.Message
		if m := undeclared.FindStringSubmatch(detail); m != nil {
			detail = c.unknownFact(m[1])
		}
		detail, _, _ = strings.Cut(detail, " expecting {")
		if detail == "invalid int literal" {
			detail = `this number is too large for an integer; write it as dec("…")`
		}
		offset := 0
		if line := e.Location.Line(); line >= 1 && line <= len(lines) {
			offset = lines[line-1] + max(0, e.Location.Column())
		}
		errs = append(errs, exprError{offset, detail})
	}
	return errs
}

func (c *compiler) unknownFact(name string) string {
	root, _, _ := strings.Cut(name, ".")
	if below := c.roots[root]; below != nil {
		return fmt.Sprintf("%s has only %s", root, strings.Join(below, ", "))
	}
	return fmt.Sprintf("there is no fact or function named %s", gatehouse.Quote(name))
}

// lineStarts returns the rune offset at which each line begins.
func lineStarts(s string) []int {
	starts := []int{0}
	for i, r := range []rune(s) {
		if r == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

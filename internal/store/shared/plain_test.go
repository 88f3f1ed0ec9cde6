package shared

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayAssemble lists the files that may assemble SQL from parts: the filters of lists, and statements whose table
// or index is a parameter.
var mayAssemble = []string{
	"postgres/list.go", "postgres/lockqueue.go", "postgres/moving.go",
	"postgres/ready.go", "postgres/rows.go", "postgres/runs_input.go", "postgres/search.go", "postgres/searchindex.go",
	"postgres/tenantscope.go",

	"shared/listfilter.go", "shared/pages.go",

	"sqlite/list.go", "sqlite/pages.go", "sqlite/pushfacts.go", "sqlite/runs.go", "sqlite/search.go",
	"sqlite/urgency.go",
}

var sqlText = regexp.MustCompile(`\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|WITH|JOIN|ORDER BY|RETURNING|LIMIT)\b`)

// TestPlainStatements: outside the files of mayAssemble, each SQL statement is one literal. Only the conditions
// of a list, or a constant whose name ends with Columns, may be added to it.
func TestPlainStatements(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) < 150 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	set := token.NewFileSet()
	parsed := make(map[string]*ast.File)           // by the file's name
	statements := make(map[string]map[string]bool) // the names of constants with SQL, by package
	for _, path := range files {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../")
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "storetest/") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed[name] = file
		if statements[file.Name.Name] == nil {
			statements[file.Name.Name] = make(map[string]bool)
		}
		addStatements(statements[file.Name.Name], file)
	}
	assembles := make(map[string]bool)
	for name, file := range parsed {
		known := statements[file.Name.Name]
		found := func(format string, e ast.Expr) {
			if assembles[name] = true; !slices.Contains(mayAssemble, name) {
				t.Errorf(format, set.Position(e.Pos()))
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.CallExpr:
				if n := len(x.Args); n > 0 && isStatement(x) && name != "postgres/statement.go" {
					if _, literal := x.Args[n-1].(*ast.BasicLit); !literal {
						t.Errorf("%s: the text of a statement is not a literal", set.Position(x.Args[n-1].Pos()))
					}
				}
				if f, ok := x.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" && mentionsSQL(x) {
					found("%s: SQL is built with Sprintf", x)
				}
			case *ast.BinaryExpr:
				if x.Op == token.ADD && (mentionsSQL(x) || addsTo(known, x)) {
					if !plain(x) {
						found("%s: SQL is built with +", x)
					}
					return false
				}
			}
			return true
		})
	}
	for _, name := range mayAssemble {
		if !assembles[name] {
			t.Errorf("%s assembles no SQL, and needs no exception", name)
		}
	}
}

// isStatement reports whether a call makes a statement whose parameters are arrays.
func isStatement(c *ast.CallExpr) bool {
	generic, ok := c.Fun.(*ast.IndexExpr)
	if !ok {
		return false
	}
	f, ok := generic.X.(*ast.Ident)
	return ok && (f.Name == "reads" || f.Name == "writes" || f.Name == "locks" || f.Name == "single")
}

// addStatements adds the names of a file's constants with SQL, except lists of columns.
func addStatements(to map[string]bool, file *ast.File) {
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			for i, v := range spec.(*ast.ValueSpec).Values {
				if name := spec.(*ast.ValueSpec).Names[i].Name; mentionsSQL(v) && !strings.HasSuffix(name, "Columns") {
					to[name] = true
				}
			}
		}
	}
}

// addsTo reports whether a sum adds something to a named statement, or a named statement to something.
func addsTo(statements map[string]bool, sum *ast.BinaryExpr) bool {
	for _, e := range []ast.Expr{sum.X, sum.Y} {
		if x, ok := e.(*ast.Ident); ok && statements[x.Name] {
			return true
		}
	}
	return false
}

func mentionsSQL(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok {
			found = found || l.Kind == token.STRING && sqlText.MatchString(l.Value)
		}
		return !found
	})
	return found
}

// plain reports whether a sum adds only literals, lists of columns, and the conditions of a list.
func plain(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return strings.HasSuffix(x.Name, "Columns") || x.Name == "last"
	case *ast.SelectorExpr:
		return strings.HasSuffix(x.Sel.Name, "Columns")
	case *ast.BinaryExpr:
		return plain(x.X) && plain(x.Y)
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		return ok && (f.Sel.Name == "sql" || f.Sel.Name == "number")
	}
	return false
}

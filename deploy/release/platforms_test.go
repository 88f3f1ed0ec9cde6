package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestOtherPlatforms type-checks the program and its dependencies for each system of a release,
// from source: a system call that a system lacks is an error. Compiling would take minutes; of
// other modules, only the declarations of functions are checked.
func TestOtherPlatforms(t *testing.T) {
	home, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, platform := range []string{"darwin/arm64", "linux/arm64", "windows/amd64"} {
		system, arch, _ := strings.Cut(platform, "/")
		env := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+arch)
		if checked := check(t, home, platform, env); checked < 20 {
			t.Errorf("%s: only %d packages", platform, checked)
		}
	}
}

// check reports type errors in the program's own packages.
func check(t *testing.T, home, platform string, env []string) int {
	t.Helper()
	mode := packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax
	loaded, err := packages.Load(&packages.Config{
		Mode: mode, Dir: home, Env: env,
		ParseFile: func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
			file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, home+string(filepath.Separator)) {
				withoutBodies(file)
			}
			return file, err
		},
	}, "./cmd/gatehouse")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	packages.Visit(loaded, nil, func(p *packages.Package) {
		if !strings.HasPrefix(p.PkgPath, modulePath) && len(p.GoFiles) > 0 {
			return
		}
		checked++
		for _, e := range p.Errors {
			t.Errorf("%s: %v", platform, e)
		}
	})
	return checked
}

// withoutBodies replaces the bodies of functions by endless loops.
func withoutBodies(file *ast.File) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		f.Body.List = []ast.Stmt{&ast.ForStmt{For: f.Body.Lbrace, Body: &ast.BlockStmt{}}}
	}
}

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestOtherPlatforms type-checks the program and its dependencies for each system of a release,
// from source: a system call that a system lacks is an error. Compiling would take minutes; of
// other modules, only the declarations of functions are checked.
func TestOtherPlatforms(t *testing.T) {
	home, err := filepath.Abs(root)
	must(t, err)
	p := &sources{home: home, fset: token.NewFileSet(), files: map[string]*parsed{}}
	for _, platform := range []string{"darwin/arm64", "linux/arm64", "windows/amd64"} {
		system, arch, _ := strings.Cut(platform, "/")
		env := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+arch)
		if checked := p.check(t, platform, env); checked < 20 {
			t.Errorf("%s: only %d packages", platform, checked)
		}
	}
}

// sources are the files of the program and its dependencies. What the platforms have in common is parsed once.
type sources struct {
	home  string
	fset  *token.FileSet
	mu    sync.Mutex
	files map[string]*parsed // by name
}

type parsed struct {
	once sync.Once
	file *ast.File
	err  error
}

// parse returns a file. Of other modules, it has only the declarations.
func (s *sources) parse(_ *token.FileSet, name string, src []byte) (*ast.File, error) {
	s.mu.Lock()
	p := s.files[name]
	if p == nil {
		p = new(parsed)
		s.files[name] = p
	}
	s.mu.Unlock()
	p.once.Do(func() {
		p.file, p.err = parser.ParseFile(s.fset, name, src, parser.SkipObjectResolution)
		if p.file != nil && !strings.HasPrefix(name, s.home+string(filepath.Separator)) {
			withoutBodies(p.file)
		}
	})
	return p.file, p.err
}

// check reports type errors in the program's own packages.
func (s *sources) check(t *testing.T, platform string, env []string) int {
	t.Helper()
	mode := packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
		packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax
	loaded, err := packages.Load(&packages.Config{
		Mode: mode, Dir: s.home, Env: env, Fset: s.fset, ParseFile: s.parse,
	}, "./cmd/gatehouse")
	must(t, err)
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

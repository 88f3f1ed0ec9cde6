package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// listed is a package as "go list" describes it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Standard                bool
}

// checker type-checks planted packages with the export data of everything that
// they import, which is much faster than building them.
type checker struct {
	fset    *token.FileSet
	export  map[string]string // by import path
	folders map[string]*listed
	parsed  map[string]*ast.File // unchanged files, by path
	imports types.Importer
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Standard", "./...")
	cmd.Dir = top
	// As a release is built: scripts/test has compiled those packages by then.
	if flags := os.Getenv("GATEHOUSE_TEST_GOFLAGS"); flags != "" {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+flags)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	c := &checker{
		fset: token.NewFileSet(), export: map[string]string{}, folders: map[string]*listed{}, parsed: map[string]*ast.File{},
	}
	c.imports = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(c.export[path])
	})
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return c
		} else if err != nil {
			t.Fatal(err)
		}
		c.export[p.ImportPath] = p.Export
		if !p.Standard {
			c.folders[p.Dir] = p
		}
	}
}

// file parses one file, from text if it was planted.
func (c *checker) file(path string, text string) (*ast.File, error) {
	if text != "" {
		return parser.ParseFile(c.fset, path, text, parser.SkipObjectResolution)
	}
	if f := c.parsed[path]; f != nil {
		return f, nil
	}
	f, err := parser.ParseFile(c.fset, path, nil, parser.SkipObjectResolution)
	c.parsed[path] = f
	return f, err
}

// check type-checks the packages of the planted Go files.
func (c *checker) check(planted map[string]string) error {
	top, err := filepath.Abs(top)
	if err != nil {
		return err
	}
	folders := map[string]map[string]string{}
	for file, text := range planted {
		path := filepath.Join(top, filepath.FromSlash(file))
		if filepath.Ext(path) != ".go" {
			continue
		}
		dir := filepath.Dir(path)
		if folders[dir] == nil {
			folders[dir] = map[string]string{}
		}
		folders[dir][path] = text
	}
	for dir, texts := range folders {
		p := c.folders[dir]
		if p == nil {
			return errors.New(dir + " has no package")
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := c.file(filepath.Join(dir, name), texts[filepath.Join(dir, name)])
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		config := types.Config{Importer: c.imports}
		if _, err := config.Check(p.ImportPath, c.fset, files, nil); err != nil {
			return err
		}
	}
	return nil
}

// TestPlantedTreesCompile: a bug that does not compile would be caught by no test.
func TestPlantedTreesCompile(t *testing.T) {
	t.Parallel()
	c := newChecker(t)
	if err := c.check(map[string]string{"internal/link/nonce.go": "package link\n\nvar x int = y\n"}); err == nil {
		t.Fatal("code that does not compile is accepted")
	}
	for _, together := range apart(t, bugs()) {
		all := map[string]string{}
		for _, planted := range together {
			maps.Copy(all, planted)
		}
		err := c.check(all)
		if err == nil {
			continue
		}
		for name, planted := range together {
			if err := c.check(planted); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !t.Failed() {
			t.Errorf("bugs that compile one by one do not compile together: %v", err)
		}
	}
}

// apart applies the bugs, and groups them so that no two bugs of a group touch one file. The trees of a group are
// checked at once: type-checking a package takes as long for one bug as for one in each of its files.
func apart(t *testing.T, all []bug) (groups []map[string]map[string]string) {
	t.Helper()
	var taken []map[string]bool // the files of each group
	for _, b := range all {
		planted, err := b.apply(top)
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
			continue
		}
		free := slices.IndexFunc(taken, func(files map[string]bool) bool {
			for file := range planted {
				if files[file] {
					return false
				}
			}
			return true
		})
		if free < 0 {
			free = len(groups)
			groups, taken = append(groups, map[string]map[string]string{}), append(taken, map[string]bool{})
		}
		groups[free][b.name] = planted
		for file := range planted {
			taken[free][file] = true
		}
	}
	return groups
}

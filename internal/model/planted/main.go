package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	only := flag.String("run", "", "plant only the bugs whose name, file or test matches")
	report := flag.String("report", "", "write the table of results, as Markdown, to this `file`")
	resume := flag.String("resume", "",
		"record the caught bugs in this `file`, and skip the bugs that it lists")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *report, *resume); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

// result is what became of one bug.
type result struct {
	bug
	caught bool
	took   time.Duration
	detail string
}

func run(ctx context.Context, only, report, resume string) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "gatehouse-planted-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := copyTree(root, scratch); err != nil {
		return err
	}
	known, err := openNotes(resume)
	if err != nil {
		return err
	}
	if err := sound(ctx, scratch, slices.DeleteFunc(slices.Clone(chosen), known.caught)); err != nil {
		return err
	}
	var results []result
	missed := 0
	for i, b := range chosen {
		if known.caught(b) {
			results = append(results, result{bug: b, caught: true, took: known.took[b.id()]})
			continue
		}
		r, err := try(ctx, scratch, b)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.caught, r.detail = false, err.Error()
		}
		word := "caught"
		if !r.caught {
			word = "MISSED"
			missed++
		}
		fmt.Printf("%3d/%d %s %5.1fs  %s  [%s %s]\n", i+1, len(chosen), word, r.took.Seconds(), b.name, b.pkg, b.run)
		if !r.caught {
			fmt.Println(r.detail)
		}
		results = append(results, r)
		if err := known.add(r); err != nil {
			return err
		}
	}
	fmt.Printf("%d bugs planted, %d caught, %d missed\n", len(results), len(results)-missed, missed)
	if report != "" {
		if err := os.WriteFile(report, []byte(reportText(results, time.Now())), 0o644); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d bugs were missed", missed)
	}
	return nil
}

func choose(only string) ([]bug, error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	var chosen []bug
	for _, b := range bugs() {
		if match.MatchString(b.name) || match.MatchString(b.edits[0].file) || match.MatchString(b.pkg+" "+b.run) {
			chosen = append(chosen, b)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no bug matches %q", only)
	}
	return chosen, nil
}

// sound checks that the tests are green before anything is planted: a test that
// is red anyway would detect nothing.
func sound(ctx context.Context, dir string, chosen []bug) error {
	done := map[string]bool{}
	for _, b := range chosen {
		id := b.pkg + " " + b.run
		if done[id] {
			continue
		}
		done[id] = true
		if out, err := b.test(ctx, dir); err != nil {
			return fmt.Errorf("%s is red without any bug: %w\n%s", id, err, tail(out))
		} else if bytes.Contains(out, []byte("no tests to run")) {
			return fmt.Errorf("%s: there is no such test", id)
		}
	}
	fmt.Printf("%d tests are green without a bug\n", len(done))
	return nil
}

// try plants one bug, runs its test, and takes the bug out again.
func try(ctx context.Context, dir string, b bug) (r result, err error) {
	r.bug = b
	planted, err := b.apply(dir)
	if err != nil {
		return r, err
	}
	for name, text := range planted {
		path := filepath.Join(dir, filepath.FromSlash(name))
		clean, failed := os.ReadFile(path)
		if failed != nil {
			return r, failed
		}
		defer func() { err = errors.Join(err, os.WriteFile(path, clean, 0o644)) }()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return r, err
		}
	}
	start := time.Now()
	out, failure := b.test(ctx, dir)
	r.took, r.detail = time.Since(start), tail(out)
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case failure == nil:
		return r, nil
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return r, fmt.Errorf("%s: the planted tree does not build\n%s", b.name, r.detail)
	}
	r.caught = true
	return r, nil
}

// test runs one test.
func (b bug) test(ctx context.Context, dir string) ([]byte, error) {
	if b.pkg == browser {
		return browserTest(ctx, dir, b)
	}
	return goTest(ctx, dir, b)
}

// browser is the folder of the tests that need a browser. They use the packages that "npm ci" installs there.
const browser = "browser"

// browserTest runs one browser test.
func browserTest(ctx context.Context, dir string, b bug) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	program := filepath.Join(dir, ".planted") // go ignores such files
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/gatehouse")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return append(out, "[build failed]"...), err
	}
	file, name, _ := strings.Cut(b.run, "/")
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-reporter=tap",
		"--test-name-pattern=^"+regexp.QuoteMeta(name)+"$",
		filepath.Join("test", file+".test.mjs"))
	cmd.Dir = filepath.Join(dir, browser)
	cmd.Env = append(os.Environ(), "GATEHOUSE_BINARY="+program)
	cmd.WaitDelay = time.Second // its own children may have outlived it
	out, err := cmd.CombinedOutput()
	if err == nil && bytes.Contains(out, []byte("\n# pass 0\n")) {
		out = append(out, "no tests to run"...)
	}
	return out, err
}

// goTest runs one test. Random sequences are drawn from one seed, so that a caught bug is caught
// again.
func goTest(ctx context.Context, dir string, b bug) ([]byte, error) {
	levels := strings.Split(b.run, "/")
	for i, l := range levels {
		levels[i] = "^" + regexp.QuoteMeta(l) + "$"
	}
	args := []string{"test", "-count=1", "-vet=off", "-timeout=3m", "-run=" + strings.Join(levels, "/"), "./" + b.pkg}
	if b.pkg == "internal/model" && (b.run == "TestModel" || b.run == "TestRuns") {
		args = append(args, "-rapid.seed=1", "-rapid.checks=300", "-rapid.shrinktime=1ms", "-rapid.nofailfile")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	name := "sqlite"
	if strings.HasSuffix(b.run, "/postgres") {
		name = "postgres"
	}
	cmd.Env = append(os.Environ(), "GATEHOUSE_MODEL_ENGINE="+name)
	return cmd.CombinedOutput()
}

func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// copyTree copies the regular files, without those in bin and in folders whose
// names begin with a dot.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || rel == "bin"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, raw, info.Mode().Perm())
	})
}

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// workflowCmd groups the commands about workflows. lint, test, schema and the graph
// of a file need no server.
type workflowCmd struct {
	Lint   workflowLintCmd   `cmd:"" help:"Parse and check workflow files."`
	Test   workflowTestCmd   `cmd:"" help:"Run workflows against recorded answers."`
	Graph  workflowGraphCmd  `cmd:"" help:"Draw the graph of a workflow's steps."`
	Schema workflowSchemaCmd `cmd:"" help:"Print the JSON Schema of workflow files, for editors."`
	Apply  workflowApplyCmd  `cmd:"" help:"Store a workflow as its next version."`
	List   workflowListCmd   `cmd:"" help:"List the stored workflows."`
	Show   workflowShowCmd   `cmd:"" help:"Show a stored workflow, or print its source."`
}

// parseWorkflow reads a workflow. Errors in its text are returned as findings.
func parseWorkflow(g *globals, name string) (*workflow.Definition, []byte, []finding, error) {
	src, err := term.ReadInput(&g.IO, name)
	if err != nil {
		return nil, nil, nil, err
	}
	def, err := workflow.Parse(src)
	findings, err := workflowProblems(name, err)
	return def, src, findings, err
}

// workflowProblems turns the problems of a source into findings of a file.
func workflowProblems(name string, err error) ([]finding, error) {
	var problems workflow.Problems
	if !errors.As(err, &problems) {
		return nil, err
	}
	findings := make([]finding, len(problems))
	for i, p := range problems {
		findings[i] = finding{File: name, Line: p.Line, Column: p.Column, Detail: p.Detail}
	}
	return findings, nil
}

// onlyOneStdin refuses to read stdin twice.
func onlyOneStdin(files ...string) error {
	n := 0
	for _, f := range files {
		if f == "-" {
			n++
		}
	}
	if n > 1 {
		return term.Usagef("only one file can be stdin")
	}
	return nil
}

// workflowLintCmd checks workflow files.
type workflowLintCmd struct {
	File []string `arg:"" help:"Workflows, - for stdin."`
}

func (*workflowLintCmd) Help() string {
	return `
Prints a line FILE:LINE:COLUMN: DETAIL for each problem, and exits 1 when there is
one. Lines with "remark:" are advice and do not change the exit code. Works
without a server.

Examples:

    gatehouse workflow lint incident.yaml
    gatehouse workflow lint workflows/a.yaml workflows/b.yaml --json
`
}

func (c *workflowLintCmd) Run(g *globals) error {
	if err := onlyOneStdin(c.File...); err != nil {
		return err
	}
	var all []finding
	for _, file := range c.File {
		def, _, findings, err := parseWorkflow(g, file)
		if err != nil {
			return err
		}
		all = append(all, findings...)
		if def == nil {
			continue
		}
		for _, r := range workflow.Lint(def) {
			all = append(all, finding{File: file, Line: r.Line, Column: r.Column, Detail: r.Detail, Remark: true})
		}
	}
	return g.printCheck(checkResult{Findings: all})
}

// workflowTestCmd runs the tests of workflow files.
type workflowTestCmd struct {
	File  []string `arg:"" help:"Workflows, - for stdin."`
	Tests string   `placeholder:"FILE" help:"The test file, if there is only one workflow; - for stdin."`
}

func (*workflowTestCmd) Help() string {
	return `
A test file holds inputs, recorded answers of models, people and connectors, and
the expected result of the run. The test file of incident.yaml is
incident.test.yaml beside it, unless --tests names another. Each test has a
simulated clock, and nothing is called. Works without a server.

Prints a line FILE:LINE:COLUMN: DETAIL for each difference, and exits 1 when there
is one.

Examples:

    gatehouse workflow test incident.yaml
    gatehouse workflow test incident.yaml --tests recorded.yaml --json
`
}

// workflowTests is what test prints with --json.
type workflowTests struct {
	OK       bool                  `json:"ok"`
	Findings []finding             `json:"findings"`
	Tests    []workflow.TestResult `json:"tests"`
}

func (c *workflowTestCmd) Run(g *globals) error {
	if c.Tests != "" && len(c.File) > 1 {
		return term.Usagef("--tests is for one workflow; with several, each needs its test file beside it")
	}
	if err := onlyOneStdin(append([]string{c.Tests}, c.File...)...); err != nil {
		return err
	}
	out := workflowTests{Findings: []finding{}, Tests: []workflow.TestResult{}}
	for _, file := range c.File {
		if err := c.one(g, file, &out); err != nil {
			return err
		}
	}
	failed := 0
	for _, r := range out.Tests {
		if !r.Passed() {
			failed++
		}
	}
	g.Say("%s, %d failed", term.Count(len(out.Tests), "test"), failed)
	out.OK = len(out.Findings) == 0
	return g.printFindings(out, out.Findings, out.OK)
}

// one runs the tests of one workflow.
func (c *workflowTestCmd) one(g *globals, file string, out *workflowTests) error {
	def, _, findings, err := parseWorkflow(g, file)
	out.Findings = append(out.Findings, findings...)
	if err != nil || def == nil {
		return err
	}
	tests := c.Tests
	if tests == "" {
		if file == "-" {
			return term.Usagef("a workflow from stdin needs --tests")
		}
		ext := filepath.Ext(file)
		tests = strings.TrimSuffix(file, ext) + ".test" + ext
	}
	src, err := term.ReadInput(&g.IO, tests)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s has no tests: there is neither a file %s nor --tests", file, tests)
	}
	if err != nil {
		return err
	}
	list, err := workflow.ParseTests(def, src)
	findings, err = workflowProblems(tests, err)
	out.Findings = append(out.Findings, findings...)
	if err != nil {
		return err
	}
	results := workflow.RunTests(def, list)
	out.Tests = append(out.Tests, results...)
	for _, r := range results {
		for _, d := range r.Differences {
			out.Findings = append(out.Findings,
				finding{File: tests, Line: r.Line, Column: 1, Detail: fmt.Sprintf("test %q: %s", r.Name, d)})
		}
	}
	return nil
}

// workflowSchemaCmd prints the schema.
type workflowSchemaCmd struct{}

func (*workflowSchemaCmd) Help() string {
	return `
Prints the JSON Schema (2020-12) of the YAML form. An editor with a YAML language server
takes it from the first line of a workflow:

    # yaml-language-server: $schema=workflow.schema.json

Examples:

    gatehouse workflow schema > workflow.schema.json
`
}

func (*workflowSchemaCmd) Run(g *globals) error {
	_, err := g.Stdout.Write(workflow.Schema())
	return err
}

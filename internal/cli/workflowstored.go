package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// workflowApplyCmd stores a workflow.
type workflowApplyCmd struct {
	File string `arg:"" help:"The workflow, - for stdin."`
}

func (*workflowApplyCmd) Help() string {
	return `
The file is checked first; nothing is sent if it has an error. The name in the file
selects the workflow. A version never changes, and running runs keep theirs; a file
that equals the newest version makes no new one.

Piped, the columns are: name, version, changed or unchanged, digest.

Examples:

    gatehouse workflow apply incident.yaml
`
}

// appliedWorkflow is the answer of apply: the stored version, and whether apply made that version.
type appliedWorkflow struct {
	*gatehouse.Workflow
	Changed bool `json:"changed"`
}

func (c *workflowApplyCmd) Run(g *globals, api service) error {
	def, src, findings, err := parseWorkflow(g, c.File)
	if err != nil {
		return err
	}
	if def == nil {
		for _, f := range findings {
			f.print(g.Stderr)
		}
		return term.Exit(term.ExitError)
	}
	w, changed, err := api.ApplyWorkflow(g.Ctx, def.Name, string(src))
	if err != nil {
		return err
	}
	return show(g, appliedWorkflow{w, changed}, nil, func() *term.Table {
		word := "unchanged"
		if changed {
			word = "changed"
		}
		return term.Row([]string{"NAME", "VERSION", "RESULT", "DIGEST"},
			w.Name, strconv.Itoa(w.Version), word, string(w.Digest))
	})
}

// workflowListCmd lists workflows.
type workflowListCmd struct {
	paging `embed:""`
}

func (*workflowListCmd) Help() string {
	return `
Lists the newest version of each workflow, and the results of its runs of the
last 30 days. Piped, the columns are: name, version, workspace, runs, failed runs,
the failed share of the runs that ended, applied by, applied at, description.

Examples:

    gatehouse workflow list
    gatehouse workflow list --all --json
`
}

func (c *workflowListCmd) Run(g *globals, api service) error {
	page, err := collect(g.Ctx, &c.paging,
		func(ctx context.Context, cursor string, limit int) (gatehouse.Page[*gatehouse.WorkflowSummary], error) {
			return api.ListWorkflows(ctx, cursor, limit)
		})
	return showPage(g, page, err, "No workflows: gatehouse workflow apply FILE stores one.", func() *term.Table {
		t := &term.Table{
			Header: []string{"NAME", "VERSION", "WORKSPACE", "RUNS", "FAILED", "RATE", "BY", "APPLIED", "DESCRIPTION"},
			Wide:   8, Drop: []int{6, 2, 7},
		}
		for _, w := range page.Items {
			runs := 0
			for _, n := range w.Runs {
				runs += n
			}
			rate := ""
			if share, ok := w.FailureRate(); ok {
				rate = fmt.Sprintf("%.1f%%", 100*share)
			}
			t.Add(w.Name, strconv.Itoa(w.Version), w.Workspace, strconv.Itoa(runs),
				strconv.Itoa(w.Runs[gatehouse.RunFailed]), rate,
				w.CreatedBy, g.At(w.CreatedAt), w.Description)
		}
		return t
	})
}

// workflowShowCmd shows a workflow.
type workflowShowCmd struct {
	Name    string `arg:"" help:"The workflow's name."`
	Version int    `arg:"" optional:"" help:"The version; the newest by default."`
	Source  bool   `help:"Print the source as it was applied."`
}

func (*workflowShowCmd) Help() string {
	return `
Shows a version, the graph of its steps, and the list of versions; for the newest
also the results of its runs of the last 30 days.

Examples:

    gatehouse workflow show incident-triage
    gatehouse workflow show incident-triage 3 --source > incident.yaml
`
}

func (c *workflowShowCmd) Run(g *globals, api service) error {
	if c.Version < 0 {
		return term.Usagef("a version is at least 1")
	}
	summary, err := c.find(g, api)
	if err != nil {
		return err
	}
	w := summary.Workflow
	switch {
	case g.JSON && c.Version == 0:
		return g.PrintJSON(summary)
	case g.JSON:
		return g.PrintJSON(w)
	case c.Source:
		return g.printSource(w.Source)
	}
	versions, err := api.ListWorkflowVersions(g.Ctx, c.Name)
	if err != nil {
		return err
	}
	printWorkflow(sheet.New(&g.IO), summary, versions)
	return nil
}

// find returns the newest version with the counts of its runs, or only the requested version.
func (c *workflowShowCmd) find(g *globals, api service) (*gatehouse.WorkflowSummary, error) {
	if c.Version == 0 {
		return api.WorkflowSummary(g.Ctx, c.Name)
	}
	w, err := api.FindWorkflow(g.Ctx, c.Name, c.Version)
	return &gatehouse.WorkflowSummary{Workflow: w}, err
}

// printSource prints a source: unchanged to a file or a program; on a terminal, with invisible
// characters made visible.
func (g *globals) printSource(source string) error {
	if !g.TTY {
		_, err := io.WriteString(g.Stdout, source)
		return err
	}
	for _, line := range term.SafeLines(source, 0) {
		fmt.Fprintln(g.Stdout, line)
	}
	return nil
}

func printWorkflow(s *sheet.Sheet, w *gatehouse.WorkflowSummary, versions []*gatehouse.Workflow) {
	s.Line("name", w.Name)
	s.Line("version", strconv.Itoa(w.Version))
	s.Line("workspace", w.Workspace)
	s.Line("description", w.Description)
	s.Line("applied", s.When(w.CreatedAt)+" by "+w.CreatedBy)
	s.Raw("digest", term.Safe(string(w.Digest)))
	if w.Runs != nil {
		s.Line("runs in 30 days", runCounts(w))
	}
	if def, err := workflow.Parse([]byte(w.Source)); err == nil {
		s.Head("Steps")
		_, drawn, _ := strings.Cut(def.Text(nil), "\n")
		for _, line := range term.SafeLines(drawn, 0) {
			fmt.Fprintln(s.W, line)
		}
	}
	s.Head("Versions")
	for _, v := range versions {
		s.Item(fmt.Sprintf("%d %s by %s %s", v.Version, s.When(v.CreatedAt), v.CreatedBy, v.Digest))
	}
}

// runCounts counts the runs of a workflow by their results.
func runCounts(w *gatehouse.WorkflowSummary) string {
	var parts []string
	for _, status := range gatehouse.RunStatuses() {
		if n := w.Runs[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	text := strings.Join(parts, ", ")
	if share, ok := w.FailureRate(); ok {
		text += fmt.Sprintf("; %.0f %% of the ended runs failed", 100*share)
	}
	return text
}

// workflowGraphCmd draws a workflow.
type workflowGraphCmd struct {
	File   string `arg:"" help:"A workflow's file, - for stdin, or the name of a stored one."`
	SVG    bool   `name:"svg" help:"Draw an SVG image."`
	Output string `short:"o" placeholder:"FILE" help:"Write to a file, which is replaced."`
}

func (*workflowGraphCmd) Help() string {
	return `
An argument with a dot or a slash, or the name of an existing file, is a file; other
arguments name a workflow of the server. With --json: its steps, each with uses and
needs.

Examples:

    gatehouse workflow graph incident.yaml
    gatehouse workflow graph incident-triage --svg -o incident.svg
`
}

// graphStep is a node of the graph.
type graphStep struct {
	ID    string   `json:"id"`
	Uses  string   `json:"uses"`
	Needs []string `json:"needs"`
}

func (c *workflowGraphCmd) Run(g *globals) error {
	if c.SVG && g.JSON {
		return term.Usagef("--svg and --json exclude each other")
	}
	def, err := c.definition(g)
	if err != nil {
		return err
	}
	if c.Output == "" {
		return c.write(g, g.Stdout, def)
	}
	f, err := os.Create(c.Output)
	if err != nil {
		return err
	}
	return closing(f, c.write(g, f, def))
}

func (c *workflowGraphCmd) write(g *globals, w io.Writer, def *workflow.Definition) error {
	switch {
	case g.JSON:
		graph := struct {
			Name  string      `json:"name"`
			Steps []graphStep `json:"steps"`
		}{Name: def.Name}
		for _, s := range def.Steps {
			graph.Steps = append(graph.Steps, graphStep{s.ID, s.Uses, append([]string{}, s.Needs...)})
		}
		return term.WriteJSON(w, graph)
	case c.SVG:
		_, err := io.WriteString(w, def.SVG(nil))
		return err
	}
	_, err := io.WriteString(w, strings.Join(term.SafeLines(def.Text(nil), 0), "\n")+"\n")
	return err
}

// definition reads the file, or the newest version of a stored workflow.
func (c *workflowGraphCmd) definition(g *globals) (*workflow.Definition, error) {
	if isFile(c.File) {
		def, _, findings, err := parseWorkflow(g, c.File)
		if err == nil && def == nil {
			for _, f := range findings {
				f.print(g.Stderr)
			}
			err = term.Exit(term.ExitError)
		}
		return def, err
	}
	api, err := g.connect()
	if err != nil {
		return nil, err
	}
	w, err := api.FindWorkflow(g.Ctx, c.File, 0)
	if err != nil {
		return nil, err
	}
	def, err := workflow.Parse([]byte(w.Source))
	if err != nil {
		return nil, fmt.Errorf("version %d of %s uses a newer format than this command supports: %w", w.Version, c.File, err)
	}
	return def, nil
}

// isFile reports whether an argument is - for stdin or names a file. Other arguments are the name or id of a
// stored object.
func isFile(arg string) bool {
	if arg == "-" || strings.ContainsAny(arg, `./\`) {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// policyCmd groups the commands about policies. lint and test, and explain with
// --policy, need no server.
type policyCmd struct {
	Lint     policyLintCmd     `cmd:"" help:"Parse and type-check a policy file."`
	Test     policyTestCmd     `cmd:"" help:"Run the tests of a policy file."`
	Explain  policyExplainCmd  `cmd:"" help:"Print how a proposal would be judged, and why."`
	Apply    policyApplyCmd    `cmd:"" help:"Store a policy and make it the active one."`
	Show     policyShowCmd     `cmd:"" help:"Print a policy's source."`
	List     policyListCmd     `cmd:"" help:"List the stored versions."`
	Usage    policyUsageCmd    `cmd:"" help:"Print how much of each ceiling is used."`
	Activate policyActivateCmd `cmd:"" help:"Make a stored version the active one."`
}

// finding is a place in a policy file and what is wrong there.
type finding struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Detail string `json:"detail"`
	// Remark marks a finding for a person to look at; the check does not fail because of it.
	Remark bool `json:"remark,omitempty"`
}

// print writes file:line:col: detail, as compilers do.
func (f finding) print(w io.Writer) {
	detail := term.Safe(f.Detail)
	if f.Remark {
		detail = "remark: " + detail
	}
	fmt.Fprintf(w, "%s:%d:%d: %s\n", term.Safe(f.File), f.Line, f.Column, detail)
}

// parsePolicy reads a policy. Errors in its text are returned as findings.
func parsePolicy(g *globals, name string) (*policy.Policy, []byte, []finding, error) {
	src, err := term.ReadInput(&g.IO, name)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := policy.Parse(src)
	var problems *policy.Problems
	switch {
	case errors.As(err, &problems):
		findings := make([]finding, len(problems.List))
		for i, one := range problems.List {
			findings[i] = finding{File: name, Line: one.Line, Column: one.Column, Detail: one.Detail}
		}
		return nil, src, findings, nil
	case err != nil:
		return nil, nil, nil, err
	}
	return p, src, nil, nil
}

// printFindings prints a check's findings, one per line, and exits 1 unless ok.
func (g *globals) printFindings(answer any, findings []finding, ok bool) error {
	err := printOutcome(g, answer, nil, func() error {
		for _, f := range findings {
			f.print(g.Stdout)
		}
		return nil
	})
	if err == nil && !ok {
		err = term.Exit(term.ExitError)
	}
	return err
}

// checkResult is what lint and test print with --json.
type checkResult struct {
	OK       bool                `json:"ok"`
	Findings []finding           `json:"findings"`
	Tests    []policy.TestResult `json:"tests,omitempty"`
}

func (g *globals) printCheck(r checkResult) error {
	r.OK = !slices.ContainsFunc(r.Findings, func(f finding) bool { return !f.Remark })
	if r.Findings == nil {
		r.Findings = []finding{}
	}
	return g.printFindings(r, r.Findings, r.OK)
}

// policyLintCmd checks a policy file.
type policyLintCmd struct {
	File string `arg:"" help:"The policy, - for stdin."`
}

func (*policyLintCmd) Help() string {
	return `
Prints a line FILE:LINE:COLUMN: DETAIL for each problem, and exits 1 when there is
one. Lines with "remark:" are advice and do not change the exit code. Works
without a server.

Examples:

    gatehouse policy lint policy.yaml
`
}

func (c *policyLintCmd) Run(g *globals) error {
	p, _, findings, err := parsePolicy(g, c.File)
	if err != nil {
		return err
	}
	if p != nil {
		for _, r := range p.Lint() {
			findings = append(findings,
				finding{File: c.File, Line: r.Line, Column: r.Column, Detail: r.Detail, Remark: !r.Error})
		}
	}
	return g.printCheck(checkResult{Findings: findings})
}

// differences are the findings of the tests that failed.
func differences(file string, results []policy.TestResult) []finding {
	var out []finding
	for _, r := range results {
		for _, d := range r.Differences {
			out = append(out, finding{File: file, Line: r.Line, Column: 1, Detail: "test " + strconv.Quote(r.Name) + ": " + d})
		}
	}
	return out
}

// policyTestCmd runs the tests of a policy file.
type policyTestCmd struct {
	File string `arg:"" help:"The policy, - for stdin."`
}

func (*policyTestCmd) Help() string {
	return `
Prints a line FILE:LINE:COLUMN: DETAIL for each difference, and exits 1 when there
is one. A policy without tests fails, too. Works without a server.

Examples:

    gatehouse policy test policy.yaml
`
}

func (c *policyTestCmd) Run(g *globals) error {
	p, _, findings, err := parsePolicy(g, c.File)
	if err != nil || findings != nil {
		if err == nil {
			err = g.printCheck(checkResult{Findings: findings})
		}
		return err
	}
	results, failed := p.Test(), 0
	for _, r := range results {
		if !r.Passed() {
			failed++
		}
	}
	findings = differences(c.File, results)
	if len(results) == 0 {
		findings = append(findings, finding{File: c.File, Line: 1, Column: 1, Detail: "the policy has no tests"})
	}
	g.Say("%s, %d failed", term.Count(len(results), "test"), failed)
	return g.printCheck(checkResult{Findings: findings, Tests: results})
}

// policyExplainCmd tells how a proposal would be judged.
type policyExplainCmd struct {
	File     string `short:"f" required:"" placeholder:"FILE" help:"The proposal's JSON, - for stdin."`
	Policy   string `placeholder:"FILE" help:"Ask this policy, without a server, instead of the active one."`
	Proposer string `default:"agent" placeholder:"NAME" help:"With --policy: the name of an agent that proposes."`
	Sponsor  string `placeholder:"ID" help:"With --policy: its sponsor."`
	At       string `placeholder:"TIME" help:"With --policy: the time of the proposal, such as 2026-12-24T18:00:00Z; now by default."`
	Floor    int    `enum:"0,1,2,3,4,5" default:"0" placeholder:"1..5" help:"With --policy: the floor that the connector's configuration declares; by default 3, 4 for a delete, 5 for a bulk operation."`
}

func (*policyExplainCmd) Help() string {
	return `
Nothing is stored. The trace shows for each rule whether it matched. Ceilings are
computed, but without the amounts that other actions have used. Without --policy the
output also shows whether enough people may answer, if the caller proposed it.

Examples:

    gatehouse policy explain -f change.json
    gatehouse policy explain -f change.json --policy policy.yaml
    gatehouse policy explain -f change.json --policy policy.yaml --at 2026-12-24T18:00:00Z
`
}

func (c *policyExplainCmd) Run(g *globals) error {
	if c.File == "-" && c.Policy == "-" {
		return term.Usagef("only one of --file and --policy can be stdin")
	}
	at := g.Now()
	if c.At != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, c.At); err != nil {
			return term.Usagef("--at %s is not a time such as 2026-12-24T18:00:00Z", gatehouse.Quote(c.At))
		}
		if c.Policy == "" {
			return term.Usagef("--at needs --policy: the server judges at its own time")
		}
	}
	src, err := term.ReadInput(&g.IO, c.File)
	if err != nil {
		return err
	}
	p, err := term.DecodeProposal(src)
	if err != nil {
		return err
	}
	var e *gatehouse.Explanation
	if c.Policy == "" {
		api, err := g.connect()
		if err != nil {
			return err
		}
		if e, err = api.ExplainPolicy(g.Ctx, p); err != nil {
			return err
		}
	} else if e, err = c.offline(g, p, at); err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(e)
	}
	printExplanation(sheet.New(&g.IO), e)
	return nil
}

func (c *policyExplainCmd) offline(g *globals, p *gatehouse.Proposal, at time.Time) (*gatehouse.Explanation, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := spelling.CheckKeys(p); err != nil {
		return nil, err
	}
	parsed, _, findings, err := parsePolicy(g, c.Policy)
	if err != nil {
		return nil, err
	}
	if findings != nil {
		for _, f := range findings {
			f.print(g.Stderr)
		}
		return nil, term.Exit(term.ExitError)
	}
	floor := gatehouse.RiskLevel(c.Floor)
	if floor == 0 {
		floor = connector.UndeclaredFloor(p.Operation, false, len(p.Target.EntityRefs) > 0)
	}
	if c.Floor == 0 && !g.JSON {
		g.Say("Judged with the default floor %s. If the configuration declares another floor, give it with --floor.",
			floor)
	}
	who := &gatehouse.Principal{
		ID: "prn_" + c.Proposer, Tenant: gatehouse.DefaultTenant, Name: c.Proposer, Kind: gatehouse.KindAgent,
		Roles: []gatehouse.Role{gatehouse.RoleProposer}, Sponsor: c.Sponsor,
	}
	verdict, trace := parsed.Explain(context.Background(),
		policy.Facts{Tenant: gatehouse.DefaultTenant, Proposal: p, Proposer: who, Floor: floor, ProposedAt: at})
	e := &gatehouse.Explanation{
		PolicyOutcome: gatehouse.PolicyOutcome{Outcome: verdict.Outcome, Rules: verdict.Rules, Reasons: verdict.Reasons},
		RiskLevel:     verdict.RiskLevel, RiskName: parsed.LevelName(verdict.RiskLevel), Required: verdict.Required,
		Roles: verdict.Roles, People: verdict.People, Groups: verdict.Groups,
		Expiry: gatehouse.Duration(verdict.Expiry), Timing: verdict.Timing, Ceilings: verdict.Ceilings, Trace: trace,
		EditUpTo: int(verdict.EditUpTo),
	}
	if verdict.Hold != nil {
		e.Hold = gatehouse.Duration(*verdict.Hold)
	}
	return e, nil
}

// editorText says whether a person who edits the change may approve it.
func editorText(e *gatehouse.Explanation) string {
	switch upTo := gatehouse.RiskLevel(e.EditUpTo); {
	case !gatehouse.EditorMayApprove(upTo, e.RiskLevel, e.Required):
		return "a person who edits the change may not approve it"
	case e.Required > 1:
		return fmt.Sprintf("a person who edits the change may be one of the %d", e.Required)
	}
	return "a person who edits the change may approve it"
}

// printExplanation writes a verdict and the reasons for it.
func printExplanation(s *sheet.Sheet, e *gatehouse.Explanation) {
	s.Line("outcome", string(e.Outcome))
	s.Line("risk", sheet.RiskText(e.RiskLevel, e.RiskName))
	s.Line("rules", strings.Join(e.Rules, ", "))
	for _, r := range e.Reasons {
		s.Line("reason", r)
	}
	if e.Outcome != gatehouse.OutcomeDeny {
		s.Line("asks", fmt.Sprintf("%d of %s", e.Required, strings.Join(gatehouse.Whom(e.Roles, e.Groups, e.People),
			",")))
		s.Line("expires", "after "+e.Expiry.String())
		s.Timing(&e.Timing, 0, false)
		s.Line("edits", editorText(e))
	}
	if e.Hold > 0 {
		s.Line("hold", e.Hold.String())
	}
	if e.CoveredBy != "" {
		s.Line("covered by", e.CoveredBy)
	}
	for _, c := range e.Ceilings {
		s.Line("ceiling", fmt.Sprintf("%s for %s: takes %s of %s per %s", c.Ceiling, c.Scope, c.Amount, c.Limit,
			c.Window))
	}
	for _, t := range e.Trace {
		word := "no match"
		if t.Matched {
			word = "match"
		}
		text := fmt.Sprintf("%s: %s (%s)", t.Rule, word, t.Outcome)
		if t.Detail != "" {
			text += ", " + t.Detail
		}
		s.Line("rule", text)
	}
}

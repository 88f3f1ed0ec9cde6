package cli

import (
	"cmp"
	"errors"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// policyApplyCmd stores a policy.
type policyApplyCmd struct {
	serve.StoreFlags
	File       string `arg:"" help:"The policy, - for stdin."`
	Rationale  string `help:"Why, for those who approve a gated change." placeholder:"TEXT"`
	BreakGlass bool   `help:"Bypass the gate, with direct access to the data folder or database, when nobody can approve any more. It is logged, and all administrators are notified."`
	Tenant     string `help:"With --break-glass, the tenant; default by default." placeholder:"TENANT"`
}

// Validate is called by the parser.
func (c *policyApplyCmd) Validate() error {
	if c.Tenant != "" && !c.BreakGlass {
		return errors.New("--tenant needs --break-glass: the server takes the tenant from the key")
	}
	return c.StoreFlags.Validate()
}

func (*policyApplyCmd) Help() string {
	return `
The file is checked and its tests are run first; nothing is sent when one fails.
Actions keep the version that judged them: the active one can only veto. Applying the
active policy again changes nothing.

Where the active policy says "policy_changes: gated", the change is proposed as an
action of L4 that another person must approve, and that applies it: the command prints
the action and exits 8. --break-glass works on the store itself, without a server
or a key; on a data folder, stop the server first.

Examples:

    gatehouse policy apply policy.yaml
    gatehouse policy apply policy.yaml --rationale "finance asks for it"
    gatehouse policy apply policy.yaml --break-glass --data ./gatehouse-data
`
}

func (c *policyApplyCmd) Run(g *globals) error {
	p, src, findings, err := parsePolicy(g, c.File)
	if err != nil {
		return err
	}
	if findings == nil {
		findings = differences(c.File, p.Test())
	}
	if findings != nil {
		for _, f := range findings {
			f.print(g.Stderr)
		}
		return term.Exit(term.ExitError)
	}
	if c.BreakGlass {
		return c.breakGlass(g, string(src))
	}
	api, err := g.connect()
	if err != nil {
		return err
	}
	v, err := api.ApplyPolicy(g.Ctx, string(src))
	if gatehouse.CodeOf(err) == gatehouse.CodePolicyGated {
		return c.propose(g, api, string(src))
	}
	if err != nil {
		return err
	}
	for _, w := range v.Warnings {
		finding{File: c.File, Line: w.Line, Column: w.Column, Detail: w.Detail, Remark: w.Remark}.print(g.Stderr)
	}
	if v.Unchanged {
		g.Say("Nothing changed: version %d is this policy, and is active.", v.Version)
	}
	return g.printVersion(v, nil)
}

// propose proposes the policy as an action.
func (c *policyApplyCmd) propose(g *globals, api service, src string) error {
	a, err := api.ProposePolicy(g.Ctx, gatehouse.PolicyProposal{Source: src, Rationale: c.Rationale})
	if err != nil {
		return err
	}
	g.Say("The policy is changed through the gate: somebody else has to approve %s.", term.Safe(a.ID))
	if err := g.printAction(a); err != nil {
		return err
	}
	return exitOfStatus(a.Status, gatehouse.UntilDecided)
}

// breakGlass applies the policy without the gate.
func (c *policyApplyCmd) breakGlass(g *globals, src string) error {
	gate, store, err := c.OpenGate(&g.IO)
	if err != nil {
		return err
	}
	v, err := gate.BreakGlass(g.Ctx, cmp.Or(c.Tenant, gatehouse.DefaultTenant), src)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	g.Say("Applied without the gate. The log records it, and every administrator is notified.")
	return g.printVersion(v, nil)
}

func (g *globals) policyTable(versions ...*gatehouse.PolicyVersion) *term.Table {
	t := &term.Table{Header: []string{"VERSION", "ACTIVE", "SHA256", "APPLIED BY", "APPLIED"}}
	for _, v := range versions {
		active := ""
		if v.Active {
			active = "active"
		}
		t.Add(strconv.Itoa(v.Version), active, v.SHA256, v.AppliedBy, g.At(v.AppliedAt))
	}
	return t
}

func (g *globals) printVersion(v *gatehouse.PolicyVersion, err error) error {
	return show(g, v, err, func() *term.Table { return g.policyTable(v) })
}

// policyShowCmd prints a policy.
type policyShowCmd struct {
	Version int `arg:"" optional:"" help:"The version; the active one by default."`
}

func (*policyShowCmd) Help() string {
	return `
Prints the source unchanged.

Examples:

    gatehouse policy show > policy.yaml
    gatehouse policy show 3
`
}

func (c *policyShowCmd) Run(g *globals, api service) error {
	var v *gatehouse.PolicyVersion
	var err error
	if c.Version == 0 {
		v, err = api.ActivePolicy(g.Ctx)
	} else {
		v, err = api.FindPolicy(g.Ctx, c.Version)
	}
	return printOutcome(g, v, err, func() error { return g.printSource(v.Source) })
}

// policyListCmd lists policies.
type policyListCmd struct{}

func (*policyListCmd) Help() string {
	return `
Piped, the columns are: version, active, SHA-256, applied by, applied at.

Examples:

    gatehouse policy list
`
}

func (c *policyListCmd) Run(g *globals, api service) error {
	versions, err := api.ListPolicies(g.Ctx)
	return showPage(g, pageOf(versions), err, "No policy is stored.",
		func() *term.Table { return g.policyTable(versions...) })
}

// policyActivateCmd makes a version the active one.
type policyActivateCmd struct {
	Version int `arg:"" help:"The version."`
}

func (*policyActivateCmd) Help() string {
	return `
Examples:

    gatehouse policy activate 3
`
}

func (c *policyActivateCmd) Run(g *globals, api service) error {
	return g.printVersion(api.ActivatePolicy(g.Ctx, c.Version))
}

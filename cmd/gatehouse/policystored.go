package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// policyApplyCmd stores a policy.
type policyApplyCmd struct {
	File string `arg:"" help:"The policy, - for stdin."`
}

func (*policyApplyCmd) Help() string {
	return `
The file is checked and its tests are run first; nothing is sent when one fails.
Actions keep the version that judged them: the active one can only veto.

Examples:

    gatehouse policy apply policy.yaml
`
}

// Run stores.
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
			f.print(g.stderr)
		}
		return exitWith(exitError)
	}
	api, err := g.connect()
	if err != nil {
		return err
	}
	v, err := api.ApplyPolicy(g.ctx, string(src))
	if err != nil {
		return err
	}
	for _, w := range v.Warnings {
		finding{File: c.File, Line: w.Line, Column: w.Column, Detail: w.Detail, Remark: w.Remark}.print(g.stderr)
	}
	return g.printVersion(v)
}

func (g *globals) policyTable(versions ...*gatehouse.PolicyVersion) *table {
	t := &table{header: []string{"VERSION", "ACTIVE", "SHA256", "APPLIED BY", "APPLIED"}}
	for _, v := range versions {
		active := ""
		if v.Active {
			active = "active"
		}
		t.add(strconv.Itoa(v.Version), active, v.SHA256, v.AppliedBy, g.at(v.AppliedAt))
	}
	return t
}

func (g *globals) printVersion(v *gatehouse.PolicyVersion) error {
	if g.JSON {
		return g.printJSON(v)
	}
	return g.print(g.policyTable(v), "")
}

// policyShowCmd prints a policy.
type policyShowCmd struct {
	Version int `arg:"" optional:"" help:"The version; the active one, if absent."`
}

func (*policyShowCmd) Help() string {
	return `
Prints the source as it was applied.

Examples:

    gatehouse policy show > policy.yaml
    gatehouse policy show 3
`
}

// Run prints.
func (c *policyShowCmd) Run(g *globals) error {
	api, err := g.connect()
	if err != nil {
		return err
	}
	var v *gatehouse.PolicyVersion
	if c.Version == 0 {
		v, err = api.ActivePolicy(g.ctx)
	} else {
		v, err = api.FindPolicy(g.ctx, c.Version)
	}
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printJSON(v)
	}
	if !g.tty {
		// A file or a program gets the bytes that were applied.
		_, err := io.WriteString(g.stdout, v.Source)
		return err
	}
	for _, line := range safeLines(v.Source, 0) {
		fmt.Fprintln(g.stdout, line)
	}
	return nil
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

// Run lists.
func (c *policyListCmd) Run(g *globals) error {
	api, err := g.connect()
	if err != nil {
		return err
	}
	versions, err := api.ListPolicies(g.ctx)
	if err != nil {
		return err
	}
	return printPage(g, pageOf(versions), "No policy is stored.", func() *table { return g.policyTable(versions...) })
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

// Run activates.
func (c *policyActivateCmd) Run(g *globals) error {
	api, err := g.connect()
	if err != nil {
		return err
	}
	v, err := api.ActivatePolicy(g.ctx, c.Version)
	if err != nil {
		return err
	}
	return g.printVersion(v)
}

package cli

import (
	"errors"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// connectorVersions is the hint for a version that is not stored.
const connectorVersions = "`gatehouse connector versions` lists them"

type connectorApplyCmd struct {
	File      string `arg:"" optional:"" help:"The connectors as YAML, - for stdin."`
	Restore   int    `help:"Propose this earlier version again, instead of a file." placeholder:"N"`
	Base      *int   `help:"The version you edited, 0 for none. Refused if another is stored." placeholder:"N"`
	Rationale string `help:"Why, for those who approve it." placeholder:"TEXT"`
}

func (*connectorApplyCmd) Help() string {
	return `
Proposes to replace the connectors in the store: an action of L4 that another person
must approve. Prints the action and exits 8. The file has a section connectors, as in
gatehouse.yaml; it replaces the whole stored version. Each secret is {secret: NAME}, a
secret of the store. Needs the role admin of the tenant default.

Examples:

    gatehouse connector show > connectors.yaml
    gatehouse connector apply connectors.yaml --base 3 --rationale "add the shop"
    gatehouse connector apply --restore 2 --rationale "back to the former shop"
`
}

// Validate is called by the parser.
func (c *connectorApplyCmd) Validate() error {
	if (c.File == "") == (c.Restore == 0) {
		return errors.New("name a file or --restore")
	}
	if c.Restore < 0 {
		return errors.New("--restore must be a version, such as 2")
	}
	return nil
}

func (c *connectorApplyCmd) Run(g *globals, api service) error {
	source, err := c.source(g, api)
	if err != nil {
		return err
	}
	a, err := api.ProposeConnectors(g.Ctx, gatehouse.ConnectorProposal{
		Source: source, Rationale: c.Rationale, Base: c.Base,
	})
	if err != nil {
		return err
	}
	g.Say("Connectors are changed through the gate: somebody else has to approve %s.", term.Safe(a.ID))
	if err := g.printAction(a); err != nil {
		return err
	}
	return exitOfStatus(a.Status, gatehouse.UntilDecided)
}

func (c *connectorApplyCmd) source(g *globals, api service) (string, error) {
	if c.Restore > 0 {
		g.missing = connectorVersions
		v, err := api.FindConnectors(g.Ctx, c.Restore)
		if err != nil {
			return "", err
		}
		return v.Source, nil
	}
	src, err := term.ReadInput(&g.IO, c.File)
	return string(src), err
}

type connectorShowCmd struct {
	Version int `arg:"" optional:"" help:"The version; the newest by default."`
}

func (*connectorShowCmd) Help() string {
	return `
Prints the source of the connectors in the store, unchanged.

Examples:

    gatehouse connector show > connectors.yaml
    gatehouse connector show 3
`
}

func (c *connectorShowCmd) Run(g *globals, api service) error {
	g.missing = connectorVersions
	if c.Version == 0 {
		g.missing = "`gatehouse connector apply` proposes the first ones; " +
			"`gatehouse connector list` also lists those of the file"
	}
	v, err := api.FindConnectors(g.Ctx, c.Version)
	return printOutcome(g, v, err, func() error { return g.printSource(v.Source) })
}

type connectorVersionsCmd struct{}

func (*connectorVersionsCmd) Help() string {
	return `
Lists the versions of the connectors in the store, newest first. Piped, the columns are:
version, SHA-256, applied by, applied at, action.

Examples:

    gatehouse connector versions
`
}

func (c *connectorVersionsCmd) Run(g *globals, api service) error {
	versions, err := api.ListConnectorVersions(g.Ctx)
	return showPage(g, pageOf(versions), err, "No connectors are stored.", func() *term.Table {
		t := &term.Table{Header: []string{"VERSION", "SHA256", "APPLIED BY", "APPLIED", "ACTION"}}
		for _, v := range versions {
			t.Add(strconv.Itoa(v.Version), v.SHA256, v.AppliedBy, g.At(v.AppliedAt), v.ActionID)
		}
		return t
	})
}

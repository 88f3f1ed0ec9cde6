package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// appliedCmd lists the applied changes.
type appliedCmd struct {
	paging `embed:""`
}

func (*appliedCmd) Help() string {
	return `
Piped, the columns are: action, type, change, external id, applied at.

Examples:

    gatehouse applied
    gatehouse applied --all --json
`
}

func (c *appliedCmd) Run(g *globals, api service) error {
	page, err := collect(g.Ctx, &c.paging, api.ListMirror)
	return showPage(g, page, err, "Nothing has been applied yet.", func() *term.Table {
		t := &term.Table{Header: []string{"ACTION", "TYPE", "CHANGE", "EXTERNAL ID", "APPLIED"}, Wide: 2,
			Drop: []int{3, 1}}
		for _, m := range page.Items {
			t.Add(m.ActionID, m.ActionType, changeText(m.Connector, m.Operation, m.Target, m.Before, m.After),
				m.ExternalID, g.At(m.AppliedAt))
		}
		return t
	})
}

// corpusCmd lists the corpus: one entry for each past decision.
type corpusCmd struct {
	paging `embed:""`
}

func (*corpusCmd) Help() string {
	return `
Lists one entry for each decision: the features of the action, the outcome, who
decided, and the reason. Piped, the columns are: id, action, type, outcome, decided
by, at, notes, features.

Examples:

    gatehouse corpus --all --json
`
}

func (c *corpusCmd) Run(g *globals, api service) error {
	page, err := collect(g.Ctx, &c.paging, api.ListCorpus)
	return showPage(g, page, err, "No decision has been made yet.", func() *term.Table {
		t := &term.Table{Header: []string{"ID", "ACTION", "TYPE", "OUTCOME", "BY", "AT", "NOTES", "FEATURES"},
			Wide: 6, Drop: []int{7, 0, 5}}
		for _, e := range page.Items {
			t.Add(e.ID, e.ActionID, e.ActionType, string(e.Outcome), e.DecidedBy, g.At(e.At), e.Notes,
				string(e.Features))
		}
		return t
	})
}

// evidenceActionCmd prints all evidence of one action.
type evidenceActionCmd struct {
	ID     string `arg:"" help:"The action."`
	Output string `short:"o" placeholder:"FILE" help:"Write to a file, which must not exist."`
}

func (*evidenceActionCmd) Help() string {
	return `
Prints a JSON document: the action, its receipts, its entries in the audit log, and
the canonical text whose SHA-256 is the digest. The command computes the digest
again and exits 1 if it differs.

Examples:

    gatehouse evidence act_01993b7e -o evidence.json
    gatehouse evidence action act_01993b7e
`
}

func (c *evidenceActionCmd) Run(g *globals, api service) error {
	e, err := api.Evidence(g.Ctx, c.ID)
	if err != nil {
		return err
	}
	if err := c.write(g, e); err != nil {
		return err
	}
	if got := gatehouse.NewDigest(gatehouse.JSON(e.Canonical)); got != e.Action.Digest {
		return fmt.Errorf("the canonical text has the digest %s, but the action says %s", got, e.Action.Digest)
	}
	if got := e.Action.ComputeDigest(); got != e.Action.Digest {
		return fmt.Errorf("the action's fields have the digest %s, but the action says %s", got, e.Action.Digest)
	}
	g.Say("Verified: the canonical text and the action's fields have the digest %s", e.Action.Digest)
	return nil
}

func (c *evidenceActionCmd) write(g *globals, e *gatehouse.Evidence) error {
	if c.Output == "" {
		return g.PrintJSON(e)
	}
	return createFile(c.Output, func(w io.Writer) error { return term.WriteJSON(w, e) })
}

// createFile writes a new file. If that fails, no part of the file stays.
func createFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := closing(f, write(f)); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// closing closes c, and returns the first error.
func closing(c io.Closer, err error) error {
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return err
}

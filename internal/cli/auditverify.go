package cli

import (
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// auditVerifyCmd verifies the log.
type auditVerifyCmd struct {
	Held []string `placeholder:"FILE" help:"Heads that were kept elsewhere, as \"audit head --json\" or \"backup --json\" printed them. Repeatable."`
}

func (*auditVerifyCmd) Help() string {
	return `
Reads every entry, recomputes every hash from the entries' bytes, and compares
the root and the number of entries with the head. The hashes that the server
sends are not trusted. Exits 1 when a check fails.

Examples:

    gatehouse audit verify
    gatehouse audit verify --held head.json
`
}

func (c *auditVerifyCmd) Run(g *globals, api service) error {
	head, err := api.Head(g.Ctx)
	if err != nil {
		return err
	}
	held, err := c.held(g, head.Tenant)
	if err != nil {
		return err
	}
	report, err := audit.VerifyEntries(g.entriesUpTo(api, head.Size), *head, held...)
	err = printOutcome(g, report, err, func() error {
		s := sheet.New(&g.IO)
		s.Line("tenant", report.Tenant)
		s.Line("expected", strconv.FormatInt(report.Expected, 10))
		s.Line("found", strconv.FormatInt(report.Found, 10))
		s.Line("root", term.HashText(report.Root))
		s.Line("computed", term.HashText(report.Computed))
		s.Line("held heads", strconv.Itoa(report.HeldHeads))
		return nil
	})
	if err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return err
	}
	g.Say("%s verified.", term.EntryCount(report.Found))
	return nil
}

// entriesUpTo reads the log up to the size of a head, and shows the progress.
func (g *globals) entriesUpTo(api service, size int64) iter.Seq2[*gatehouse.Entry, error] {
	return audit.EntriesUpTo(g.Ctx, api, size, func(done int64) { g.Progress("verify", done, size) })
}

// held reads the heads of a tenant from the named files.
func (c *auditVerifyCmd) held(g *globals, tenant string) (held []gatehouse.LogHead, err error) {
	for _, name := range c.Held {
		heads, err := heldHeads(g, []string{name})
		if err != nil {
			return nil, err
		}
		heads = slices.DeleteFunc(heads, func(h gatehouse.LogHead) bool { return h.Tenant != "" && h.Tenant != tenant })
		if len(heads) == 0 {
			return nil, fmt.Errorf("%s has no head of tenant %s", term.Safe(name), term.Safe(tenant))
		}
		held = append(held, heads...)
	}
	return held, nil
}

package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

func hashText(h gatehouse.Hash) string {
	b, _ := h.MarshalText()
	return string(b)
}

// auditVerifyCmd verifies the log.
type auditVerifyCmd struct {
	Held []string `placeholder:"FILE" help:"A head that was kept elsewhere, as \"audit head --json\" printed it. Repeatable."`
}

func (*auditVerifyCmd) Help() string {
	return `
Reads every entry, recomputes every hash from the entries' bytes, and compares
root and number of entries with the head. What the server says of its own
entries is not believed. Exits 1 when anything does not hold.

Examples:

    gatehouse audit verify
    gatehouse audit verify --held head.json
`
}

// Run verifies.
func (c *auditVerifyCmd) Run(g *globals) error {
	held, err := readHeads(g, c.Held)
	if err != nil {
		return err
	}
	api, err := g.connect()
	if err != nil {
		return err
	}
	head, err := api.Head(g.ctx)
	if err != nil {
		return err
	}
	for i, h := range held {
		if h.Tenant != "" && h.Tenant != head.Tenant {
			return fmt.Errorf("%s is a head of tenant %s, not of %s", c.Held[i], safe(h.Tenant), safe(head.Tenant))
		}
	}
	report, err := audit.VerifyEntries(g.entriesUpTo(api, head.Size), *head, held...)
	if err != nil {
		return err
	}
	if g.JSON {
		err = g.printJSON(report)
	} else {
		s := g.newSheet()
		s.line("tenant", report.Tenant)
		s.line("expected", strconv.FormatInt(report.Expected, 10))
		s.line("found", strconv.FormatInt(report.Found, 10))
		s.line("root", hashText(report.Root))
		s.line("computed", hashText(report.Computed))
		s.line("held heads", strconv.Itoa(report.HeldHeads))
	}
	if err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return err
	}
	g.say("%s verified.", entryCount(report.Found))
	return nil
}

// entriesUpTo walks the log from its beginning to the size of a head; entries
// that are added meanwhile belong to a later head.
func (g *globals) entriesUpTo(api service, size int64) iter.Seq2[*gatehouse.Entry, error] {
	return func(yield func(*gatehouse.Entry, error) bool) {
		for from := int64(0); from < size; {
			entries, err := api.ListEntries(g.ctx, from, gatehouse.MaxLimit)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(entries) == 0 {
				return // the verifier counts what is missing
			}
			for _, e := range entries {
				if e.Index >= size {
					return
				}
				if e.Index < from {
					yield(nil, fmt.Errorf("the server answers entry %d when asked for those from %d on", e.Index, from))
					return
				}
				if !yield(e, nil) {
					return
				}
				from = e.Index + 1
			}
			g.progress("verify", from, size)
		}
	}
}

// progress shows how far long work is, on a terminal only.
func (g *globals) progress(word string, done, total int64) {
	if !g.ttyErr || g.JSON {
		return
	}
	end := "\r"
	if done >= total {
		end = "\n"
	}
	fmt.Fprintf(g.stderr, "%s %d of %d (%d %%)%s", word, done, total, done*100/max(total, 1), end)
}

func readHeads(g *globals, files []string) ([]gatehouse.LogHead, error) {
	heads := make([]gatehouse.LogHead, 0, len(files))
	for _, name := range files {
		b, err := readInput(g, name)
		if err != nil {
			return nil, err
		}
		var h gatehouse.LogHead
		if err := json.Unmarshal(b, &h); err != nil || h.Root == (gatehouse.Hash{}) {
			return nil, fmt.Errorf("%s is not a head, as `gatehouse audit head --json` prints it", name)
		}
		heads = append(heads, h)
	}
	return heads, nil
}

func entryCount(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

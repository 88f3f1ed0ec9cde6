package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// auditCmd groups the commands about the audit log.
type auditCmd struct {
	Tail   auditTailCmd   `cmd:"" help:"Print the newest entries."`
	Verify auditVerifyCmd `cmd:"" help:"Read the whole log and recompute its tree."`
	Head   auditHeadCmd   `cmd:"" help:"Print size and root hash of the log."`
}

// auditTailCmd prints entries.
type auditTailCmd struct {
	Lines  int    `short:"n" default:"20" help:"How many of the newest entries."`
	After  *int64 `placeholder:"INDEX" xor:"from" help:"Everything after this entry instead."`
	All    bool   `xor:"from" help:"Everything."`
	Follow bool   `short:"f" help:"Go on as entries are added, until interrupted."`
}

func (*auditTailCmd) Help() string {
	return `
No entry is ever skipped: they are read by their number. Piped, the columns are:
index, time, type, subject, actor, from, to. With --json each entry is a line of
its own.

Examples:

    gatehouse audit tail
    gatehouse audit tail -f
    gatehouse audit tail --all --json
`
}

// followEvery is the time between two looks at the log.
const followEvery = time.Second

// Run prints, and with --follow goes on.
func (c *auditTailCmd) Run(g *globals) error {
	if c.Lines < 0 || c.After != nil && *c.After < 0 {
		return usagef("--lines and --after must not be negative")
	}
	api, err := g.connect()
	if err != nil {
		return err
	}
	from := int64(0)
	switch {
	case c.All:
	case c.After != nil:
		from = *c.After + 1
	default:
		head, err := api.Head(g.ctx)
		if err != nil {
			return err
		}
		from = max(head.Size-int64(c.Lines), 0)
	}
	return c.tail(g, api, from)
}

// tail prints the entries from one on, and with --follow waits for more.
func (c *auditTailCmd) tail(g *globals, api service, from int64) error {
	for {
		entries, err := api.ListEntries(g.ctx, from, gatehouse.MaxLimit)
		switch {
		case err == nil:
		case c.Follow && g.ctx.Err() != nil:
			return nil
		case c.Follow && (gatehouse.CodeOf(err).Retryable() || isUnreachable(err)):
			entries = nil
		default:
			return err
		}
		if err := g.printEntries(entries); err != nil {
			return err
		}
		if n := len(entries); n > 0 {
			from = entries[n-1].Index + 1
			continue
		}
		if !c.Follow {
			return nil
		}
		if g.pause(max(followEvery, retryIn(err))) != nil {
			return nil // interrupted: that is how one leaves
		}
	}
}

// printEntries prints each entry as a line, since more may come.
func (g *globals) printEntries(entries []*gatehouse.Entry) error {
	for _, e := range entries {
		var line []byte
		if g.JSON {
			b, err := json.Marshal(e)
			if err != nil {
				return err
			}
			line = safeJSON(append(b, '\n'))
		} else {
			var l gatehouse.Leaf
			if err := json.Unmarshal([]byte(e.Body), &l); err != nil {
				return fmt.Errorf("entry %d cannot be read: %w", e.Index, err)
			}
			format := "%s\t%s\t%s\t%s\t%s\t%s\t%s\n"
			if g.tty {
				format = "%6s  %s  %-18s %s  by %s  %s → %s\n"
			}
			line = fmt.Appendf(nil, format, strconv.FormatInt(e.Index, 10), l.At.UTC().Format(time.RFC3339),
				safe(l.Type), safe(l.Subject), safe(l.Actor), safe(l.From), safe(l.To))
		}
		if _, err := g.stdout.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// auditHeadCmd prints the head.
type auditHeadCmd struct{}

func (*auditHeadCmd) Help() string {
	return `
The tree head of RFC 6962. Keep one elsewhere, and "gatehouse audit verify
--held" will tell whether the log still begins with what it was then. Piped, the
columns are: tenant, size, root.

Examples:

    gatehouse audit head --json > head.json
`
}

// Run prints.
func (c *auditHeadCmd) Run(g *globals) error {
	api, err := g.connect()
	if err != nil {
		return err
	}
	head, err := api.Head(g.ctx)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printJSON(head)
	}
	t := &table{header: []string{"TENANT", "SIZE", "ROOT"}}
	t.add(head.Tenant, strconv.FormatInt(head.Size, 10), hashText(head.Root))
	return g.print(t, "")
}

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
	if !g.colorErr || g.JSON {
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

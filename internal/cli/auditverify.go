package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// auditVerifyCmd verifies the log.
type auditVerifyCmd struct {
	Log    string   `arg:"" optional:"" placeholder:"LOG" help:"The log: a file that \"audit tail --all --json\" wrote, - for standard input, or the URL of a server; the server of the context by default."`
	Held   []string `placeholder:"FILE" help:"Heads that were kept elsewhere: what \"audit checkpoint\", \"audit head --json\" or \"backup --json\" printed. Repeatable."`
	LogKey []string `placeholder:"KEY" help:"A public key of the log, which \"audit keys\" printed when you trusted the server. Repeatable."`
}

func (*auditVerifyCmd) Help() string {
	return `
Reads every entry, recomputes every hash from the entries' bytes, and compares
the root and the number of entries with the head. The hashes that the server
sends are not trusted. With --log-key, the head must be signed. A log in a file
has no head of its own: it is compared with the largest head of --held. Exits 1
when a check fails.

Examples:

    gatehouse audit verify
    gatehouse audit verify --held head.json
    gatehouse audit verify log.jsonl --held checkpoint --log-key "$(head -n 1 log.key)"
`
}

// Run verifies the log of a server, or in a file.
func (c *auditVerifyCmd) Run(g *globals) error {
	verify := c.file
	if url := strings.HasPrefix(c.Log, "http://") || strings.HasPrefix(c.Log, "https://"); url || c.Log == "" {
		g.URL = cmp.Or(c.Log, g.URL)
		verify = c.server
	}
	report, err := verify(g)
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

// server verifies the log of a server against the present head: with --log-key against the signed
// checkpoint.
func (c *auditVerifyCmd) server(g *globals) (report audit.Report, err error) {
	api, err := g.connect()
	if err != nil {
		return report, err
	}
	head := new(gatehouse.LogHead)
	if len(c.LogKey) == 0 {
		head, err = api.Head(g.Ctx)
	} else {
		var note []byte
		if note, err = api.Checkpoint(g.Ctx); err == nil {
			*head, err = audit.VerifyCheckpoint(note, c.LogKey...)
		}
	}
	if err != nil {
		return report, err
	}
	var held []gatehouse.LogHead
	for _, name := range c.Held {
		heads, _, err := heldHeads(g, []string{name}, c.LogKey)
		if err != nil {
			return report, err
		}
		heads = slices.DeleteFunc(heads, func(h gatehouse.LogHead) bool { return h.Tenant != "" && h.Tenant != head.Tenant })
		if len(heads) == 0 {
			return report, fmt.Errorf("%s has no head of tenant %s", term.Safe(name), term.Safe(head.Tenant))
		}
		held = append(held, heads...)
	}
	return audit.VerifyEntries(g.entriesUpTo(api, head.Size), *head, held...)
}

// entriesUpTo reads the log up to the size of a head, and shows the progress.
func (g *globals) entriesUpTo(api service, size int64) iter.Seq2[*gatehouse.Entry, error] {
	return audit.EntriesUpTo(g.Ctx, api, size, func(done int64) { g.Progress("verify", done, size) })
}

// file verifies a log in a file against the largest of the held heads.
func (c *auditVerifyCmd) file(g *globals) (report audit.Report, err error) {
	in := g.Stdin
	if c.Log != "-" {
		f, err := os.Open(c.Log)
		if err != nil {
			return report, err
		}
		defer f.Close()
		in = f
	}
	held, signed, err := heldHeads(g, c.Held, c.LogKey)
	if err != nil {
		return report, err
	}
	if len(held) == 0 {
		return report, term.Usagef("a log in a file has no head of its own: name a head with --held")
	}
	head := slices.MaxFunc(held, func(a, b gatehouse.LogHead) int { return cmp.Compare(a.Size, b.Size) })
	isHead := func(h gatehouse.LogHead) bool { return h.Size == head.Size && h.Root == head.Root }
	if len(c.LogKey) > 0 && !slices.ContainsFunc(signed, isHead) {
		return report, term.Usagef("with --log-key, the largest head of --held must be a signed checkpoint")
	}
	for _, h := range held {
		if h.Tenant != head.Tenant {
			return report, fmt.Errorf("--held names heads of the tenants %s and %s, but a log belongs to one tenant",
				term.Safe(h.Tenant), term.Safe(head.Tenant))
		}
	}
	return audit.VerifyEntries(entriesIn(in, c.Log, head.Size), head, held...)
}

// entriesIn reads the entries below size from lines, as "audit tail --json" prints them.
func entriesIn(in io.Reader, name string, size int64) iter.Seq2[*gatehouse.Entry, error] {
	return func(yield func(*gatehouse.Entry, error) bool) {
		lines := json.NewDecoder(in)
		for line := 1; ; line++ {
			e := new(exactEntry)
			err := lines.Decode(e)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil || e.Body == "":
				yield(nil, fmt.Errorf("line %d of %s is not an entry, as `gatehouse audit tail --all --json` prints it", line,
					term.Safe(name)))
				return
			case e.Index < size && !yield(&e.Entry, nil):
				return
			}
		}
	}
}

// exactEntry is an entry of a file that may be forged.
type exactEntry struct{ gatehouse.Entry }

// UnmarshalJSON refuses a text that another reader could read as another entry.
func (e *exactEntry) UnmarshalJSON(raw []byte) error {
	if err := exactMembers(raw, "index", "leaf", "leaf_hash"); err != nil {
		return err
	}
	return json.Unmarshal(raw, &e.Entry)
}

// exactMembers refuses an object with a repeated member, or with a member not in names. [json.Unmarshal] accepts both:
// it ignores the case of names, and takes the last member of a name.
func exactMembers(raw []byte, names ...string) error {
	if err := gatehouse.CheckJSONWithin(raw, gatehouse.MaxDepth+4); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for name := range members {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s is an unknown member", gatehouse.Quote(name))
		}
	}
	return nil
}

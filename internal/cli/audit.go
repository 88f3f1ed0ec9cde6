package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// auditCmd groups the commands about the audit log.
type auditCmd struct {
	Tail   auditTailCmd   `cmd:"" help:"Print the newest entries."`
	Verify auditVerifyCmd `cmd:"" help:"Read the whole log and recompute its tree."`
	Head   auditHeadCmd   `cmd:"" help:"Print size and root hash of the log."`

	Checkpoint auditCheckpointCmd `cmd:"" help:"Print the signed head of the log."`
	Keys       auditKeysCmd       `cmd:"" help:"Print the public keys that verify checkpoints."`
}

// auditTailCmd prints entries.
type auditTailCmd struct {
	Lines  int    `short:"n" default:"20" help:"How many of the newest entries."`
	After  *int64 `placeholder:"INDEX" xor:"from" help:"Print everything after this entry instead."`
	All    bool   `xor:"from" help:"Print everything."`
	Follow bool   `short:"f" help:"Continue as entries are added, until interrupted."`
}

func (*auditTailCmd) Help() string {
	return `
Lists every entry by its number, without gaps. Piped, the columns are:
index, time, type, subject, actor, from, to. An actor is shown by name where
your key may list principals, else by id. With --json each entry is a line of
its own, as it is in the log.

Examples:

    gatehouse audit tail
    gatehouse audit tail -f
    gatehouse audit tail --all --json
`
}

// followEvery is the time between two reads of the log.
const followEvery = time.Second

// Run prints entries, and with --follow waits for more.
func (c *auditTailCmd) Run(g *globals, api service) error {
	if c.Lines < 0 || c.After != nil && *c.After < 0 {
		return term.Usagef("--lines and --after must not be negative")
	}
	from := int64(0)
	switch {
	case c.All:
	case c.After != nil:
		from = *c.After + 1
	default:
		head, err := api.Head(g.Ctx)
		if err != nil {
			return err
		}
		from = max(head.Size-int64(c.Lines), 0)
	}
	return c.tail(g, api, from)
}

// actors maps the principals in the log to their names. The names are read once, and again when an
// unknown principal appears.
type actors struct {
	api   service
	names map[string]string
	// failed is true after the names could not be read, until the next page of entries.
	failed bool
}

// name returns the name of a principal. It returns other actors, such as policy, and principals
// whose names cannot be read, unchanged.
func (a *actors) name(g *globals, id string) string {
	if !strings.HasPrefix(id, "prn_") {
		return id
	}
	if name, ok := a.names[id]; ok {
		return name
	}
	if a.failed {
		return id
	}
	page, err := collect(g.Ctx, &paging{Limit: 1, All: true}, a.api.ListPrincipals)
	if err != nil {
		a.failed = true
		return id
	}
	if a.names == nil {
		a.names = map[string]string{}
	}
	a.names[id] = id // the default for an id that is not listed
	for _, p := range page.Items {
		a.names[p.ID] = p.Name
	}
	return a.names[id]
}

// tail prints the entries from an index on, and with --follow waits for more.
func (c *auditTailCmd) tail(g *globals, api service, from int64) error {
	who := &actors{api: api}
	for {
		entries, err := api.ListEntries(g.Ctx, from, gatehouse.MaxLimit)
		switch {
		case err == nil:
		case c.Follow && g.Ctx.Err() != nil:
			return nil //nolint:nilerr // an interrupt is the usual end of --follow
		case c.Follow && term.Passing(err):
			entries = nil
		default:
			return err
		}
		who.failed = false
		if err := g.printEntries(who, entries); err != nil {
			return err
		}
		if n := len(entries); n > 0 {
			from = entries[n-1].Index + 1
			continue
		}
		if !c.Follow {
			return nil
		}
		if g.Pause(max(followEvery, term.RetryIn(err))) != nil {
			return nil //nolint:nilerr // as above
		}
	}
}

// printEntries prints one line per entry, also with --json, because --follow has no last entry
// at which a JSON array could end.
func (g *globals) printEntries(who *actors, entries []*gatehouse.Entry) error {
	for _, e := range entries {
		var line []byte
		if g.JSON {
			b, err := json.Marshal(e)
			if err != nil {
				return err
			}
			line = term.SafeJSON(append(b, '\n'))
		} else {
			var l gatehouse.Leaf
			if err := json.Unmarshal([]byte(e.Body), &l); err != nil {
				return fmt.Errorf("entry %d cannot be read: %w", e.Index, err)
			}
			l.Actor = who.name(g, l.Actor)
			if g.TTY {
				l.Subject = who.name(g, l.Subject)
			}
			line = g.entryLine(e.Index, &l)
		}
		if _, err := g.Stdout.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func (g *globals) entryLine(index int64, l *gatehouse.Leaf) []byte {
	at := l.At.UTC().Format(time.RFC3339)
	if !g.TTY {
		return fmt.Appendf(nil, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			index, at, term.Safe(l.Type), term.Safe(l.Subject), term.Safe(l.Actor), term.Safe(l.From), term.Safe(l.To))
	}
	move := ""
	if l.To != "" {
		move = "  " + strings.TrimSpace(term.Safe(l.From)+" → "+term.Safe(l.To))
	}
	return fmt.Appendf(nil, "%6d  %s  %-18s %s%s  by %s\n", index, at, term.Safe(l.Type), term.Safe(l.Subject), move,
		term.Safe(l.Actor))
}

// auditHeadCmd prints the head.
type auditHeadCmd struct{}

func (*auditHeadCmd) Help() string {
	return `
The tree head of RFC 6962. Keep a head elsewhere: with it "gatehouse
audit verify --held" can later show whether the log still begins with the same
entries. Piped, the columns are: tenant, size, root.

Examples:

    gatehouse audit head --json > head.json
`
}

func (c *auditHeadCmd) Run(g *globals, api service) error {
	head, err := api.Head(g.Ctx)
	return show(g, head, err, func() *term.Table {
		return term.Row([]string{"TENANT", "SIZE", "ROOT"},
			head.Tenant, strconv.FormatInt(head.Size, 10), term.HashText(head.Root))
	})
}

// auditCheckpointCmd prints the signed head.
type auditCheckpointCmd struct{}

func (*auditCheckpointCmd) Help() string {
	return `
Prints size and root hash as a signed note (C2SP tlog-checkpoint). Keep it
elsewhere: "gatehouse audit verify --held" can later show whether the log still
begins with the same entries, and --log-key that the note is genuine.

Examples:

    gatehouse audit checkpoint > checkpoint
`
}

func (c *auditCheckpointCmd) Run(g *globals, api service) error {
	note, err := api.Checkpoint(g.Ctx)
	return printOutcome(g, map[string]string{"checkpoint": string(note)}, err, func() error {
		for line := range strings.Lines(string(note)) {
			fmt.Fprintln(g.Stdout, term.Safe(strings.TrimSuffix(line, "\n")))
		}
		return nil
	})
}

// auditKeysCmd prints the public keys.
type auditKeysCmd struct{}

func (*auditKeysCmd) Help() string {
	return `
Prints the public keys that verify checkpoints, one per line. The first one
signs; the others are of earlier master keys. Get them once, while you trust the
server, and keep them elsewhere.

Examples:

    gatehouse audit keys > log.key
`
}

func (c *auditKeysCmd) Run(g *globals, api service) error {
	keys, err := api.LogKeys(g.Ctx)
	return printOutcome(g, keys, err, func() error {
		for _, key := range keys.Keys {
			fmt.Fprintln(g.Stdout, term.Safe(key))
		}
		return nil
	})
}

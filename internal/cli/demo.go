package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/demo"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
)

// demoFolder is where a demo is kept, to be looked at afterwards.
const demoFolder = "gatehouse-demo"

// demoCmd plays the demo.
type demoCmd struct {
	Data        string `help:"The folder to play in. One of an earlier demo is made anew; any other is left alone." default:"gatehouse-demo" placeholder:"DIR"`
	Remove      bool   `help:"Remove the folder of an earlier demo, and do nothing else."`
	Interactive *bool  `help:"Ask the person who watches for a few of the decisions. By default when stdin and stdout are terminals." negatable:""`
}

func (*demoCmd) Help() string {
	return `
An agent works on the ledger of a small shop: an SQLite database with some
thousand rows. A policy and three reviewers stand between. One question that
nobody answers escalates to another reviewer, who decides by the link of a mail;
no mail leaves the machine. At the end the ledger is compared, row by row, with a
copy from before and the reviewers' own journal: it must hold exactly what was
approved. If not, the exit code is 1.

Piped, the columns are: situation, proposed, decided, applied, refused, outcome.

Examples:

    gatehouse demo
    gatehouse demo --no-interactive
    gatehouse demo --remove
`
}

// Run plays, or removes.
func (c *demoCmd) Run(g *globals) error {
	if err := demo.Check(c.Data); err != nil {
		return notADemo(err)
	}
	if err := checkUnused(g.ctx, c.Data); err != nil {
		return err
	}
	if c.Remove {
		if _, err := os.Stat(c.Data); errors.Is(err, fs.ErrNotExist) {
			g.say("There is no %s: nothing was removed.", safe(shownPath(c.Data)))
			return nil
		}
		if err := demo.Remove(c.Data); err != nil {
			return notADemo(err)
		}
		g.say("%s is removed.", safe(shownPath(c.Data)))
		return nil
	}
	stage := &terminalStage{g: g}
	asks := g.terminal != nil && g.tty && !g.json
	if c.Interactive != nil {
		asks = *c.Interactive
	}
	if asks {
		if g.terminal == nil {
			return usagef("there is no terminal to ask on; leave out --interactive")
		}
		tty, err := g.terminal()
		if err != nil {
			return usagef("there is no terminal to ask on (%v); leave out --interactive", err)
		}
		defer tty.Close()
		stage.ask(tty)
	}
	result, err := playDemo(g, c.Data, stage)
	if err != nil {
		return notADemo(err)
	}
	return result.print(g, c.Data)
}

func notADemo(err error) error {
	if errors.Is(err, demo.ErrNotDemo) {
		return fmt.Errorf("%w, and is left alone; take another --data", err)
	}
	return err
}

// checkUnused makes sure that no server works on an earlier demo, which will be
// removed.
func checkUnused(ctx context.Context, dir string) error {
	path := filepath.Join(dir, databaseFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path, LockWait: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("%s is not removed: %w", shownPath(dir), err)
	}
	return s.Close()
}

// demoResult is what came of a demo.
type demoResult struct {
	*demo.Report
	OK    bool         `json:"ok"`
	Audit audit.Report `json:"audit"`
	Data  string       `json:"data"`
}

// playDemo serves the folder on a free port, as gatehouse serve would, and
// plays against it.
func playDemo(g *globals, dir string, stage demo.Stage) (*demoResult, error) {
	warehouse, err := demo.Prepare(g.ctx, dir)
	if err != nil {
		return nil, err
	}
	defer warehouse.Close()
	cfg, err := config.Load(filepath.Join(dir, demo.ConfigFile))
	if err != nil {
		return nil, err
	}
	log, file, err := logFile(dir)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := makeMasterKey(cfg, dir); err != nil {
		return nil, err
	}
	listen, err := freeAddress(g.ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mails := &mailCatcher{}
	n, err := openNodeWith(g.ctx, dir, cfg, &backplane{caught: mails, linkURL: "http://" + listen}, log)
	if err != nil {
		return nil, err
	}
	admin, err := n.gate.Bootstrap(g.ctx)
	if err == nil {
		err = (&devCredentials{Admin: *admin}).write(dir)
	}
	if err == nil {
		err = n.gate.EnsurePolicies(g.ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	s, err := startServer(n, listen)
	if err != nil {
		return nil, err
	}
	out := &demoResult{Data: dir}
	out.Report, err = demo.Run(g.ctx, demo.Options{
		Dir: dir, Warehouse: warehouse, URL: s.URL, Admin: *admin, Stage: stage, Mails: mails.demo,
	})
	if err == nil {
		out.Audit, err = verifyDemo(g, s.URL, admin)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	out.OK = out.Report.OK() && out.Audit.Err() == nil
	return out, nil
}

// demo is what the play reads of the mails.
func (c *mailCatcher) demo() []demo.Mail {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]demo.Mail, len(c.mails))
	for i, m := range c.mails {
		list[i] = demo.Mail{To: m.To, Text: m.Text}
	}
	return list
}

// verifyDemo reads the whole log over the API and computes its root anew, as
// gatehouse audit verify does.
func verifyDemo(g *globals, url string, admin *gatehouse.Credentials) (audit.Report, error) {
	as := *g
	as.URL, as.Key, as.EditToken, as.colorErr = url, admin.Key, admin.EditToken, false
	api, err := as.connect()
	if err != nil {
		return audit.Report{}, err
	}
	// The last leaves get their numbers within a second.
	head, err := api.Head(g.ctx)
	for quiet := 0; err == nil && quiet < 5; quiet++ {
		if err = as.pause(100 * time.Millisecond); err != nil {
			return audit.Report{}, err
		}
		last := head.Size
		if head, err = api.Head(g.ctx); err == nil && head.Size != last {
			quiet = 0
		}
	}
	if err != nil {
		return audit.Report{}, err
	}
	return audit.VerifyEntries(as.entriesUpTo(api, head.Size), *head)
}

// print prints the table and the checks.
func (r *demoResult) print(g *globals, dir string) error {
	if g.json {
		if err := g.printJSON(r); err != nil {
			return err
		}
		return r.verdict()
	}
	if g.tty {
		fmt.Fprintln(g.stdout)
	}
	if err := g.print(r.table(g), ""); err != nil {
		return err
	}
	if g.tty {
		fmt.Fprintln(g.stdout)
	}
	s := newSheet(&g.termIO)
	mark := func(ok bool) string {
		if ok {
			return paint(g.color, green, "✓ ")
		}
		return paint(g.color, red, "✗ ")
	}
	changes := fmt.Sprintf("exactly the %d changes that were approved or allowed, and the %d of a clerk", r.Changes-r.Outside, r.Outside)
	if len(r.Differences) > 0 {
		changes = "not what was approved: " + count(len(r.Differences), "difference")
	}
	room := 0
	if g.tty {
		room = max(g.columns-labelWidth-3, 20)
	}
	put := func(label string, mark, text string) {
		for _, line := range wrap(text, room) {
			s.raw(label, mark+line)
			label, mark = "", strings.Repeat(" ", min(len(mark), 2))
		}
	}
	put("ledger", mark(len(r.Differences) == 0), changes)
	put("compared", "", fmt.Sprintf("%d rows of %d tables, with a copy from before and the reviewers' journal", r.Rows, r.Tables))
	if err := r.Audit.Err(); err != nil {
		put("audit log", mark(false), err.Error())
	} else {
		put("audit log", mark(true), entryCount(r.Audit.Found)+" verified")
	}
	s.line("root", hashText(r.Audit.Root))
	folder := shellWord(safe(shownPath(dir)))
	flag := ""
	if filepath.Clean(dir) != demoFolder {
		flag = " --data " + folder
	}
	program := g.program()
	s.raw("look further", program+" dev --data "+folder)
	s.raw("list them", `eval "$(`+program+` dev env --data `+folder+`)"; `+program+` list   # in another terminal`)
	s.raw("remove", program+" demo --remove"+flag)
	for i, d := range r.Differences {
		if i == 20 {
			g.say("… and %d more", len(r.Differences)-i)
			break
		}
		g.say("%s %s", paint(g.colorErr, red, "differs:"), safe(d.String()))
	}
	return r.verdict()
}

func (r *demoResult) verdict() error {
	if r.OK {
		return nil
	}
	return exitWith(exitError)
}

func (r *demoResult) table(g *globals) *table {
	t := &table{header: []string{"SITUATION", "PROPOSED", "DECIDED", "APPLIED", "REFUSED", "OUTCOME"}, wide: 5}
	// The story has told the outcomes already, where people read it.
	brief := g.tty && g.columns < 120
	add := func(l *demo.Line, outcome string) {
		cells := []string{l.Name}
		for i, n := range []int{l.Proposed, l.Decided, l.Applied, l.Refused} {
			cell := strconv.Itoa(n)
			if g.tty {
				cell = fmt.Sprintf("%*d", len(t.header[i+1]), n)
			}
			cells = append(cells, cell)
		}
		if !brief {
			cells = append(cells, outcome)
		}
		t.add(cells...)
	}
	if brief {
		t.header, t.wide = t.header[:5], 0
	}
	bad := 0
	for _, l := range r.Lines {
		outcome := l.Outcome
		if l.Err != "" {
			outcome = "WRONG: " + l.Err
			bad++
		}
		add(l, outcome)
	}
	all := "as it should be"
	switch {
	case bad > 0:
		all = count(bad, "situation") + " went wrong"
	case !r.OK:
		all = "not as it should be; see below"
	}
	add(&r.Total, all)
	return t
}

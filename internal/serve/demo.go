package serve

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
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/demo"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// demoFolder is the default folder of a demo. It is kept after the demo.
const demoFolder = "gatehouse-demo"

// DemoCommand plays the demo.
type DemoCommand struct {
	Data        string `help:"An empty folder, or an old demo's to replace." default:"gatehouse-demo" placeholder:"DIR"`
	Remove      bool   `help:"Only remove the folder of an earlier demo."`
	Interactive *bool  `help:"Ask you for a few of the decisions. By default if stdin and stdout are terminals." negatable:""`
}

// Help is shown by demo --help.
func (*DemoCommand) Help() string {
	return `
An agent works on the ledger of a small shop: an SQLite database with a few
thousand rows. A policy and three reviewers control its changes. One question that
nobody answers escalates to another reviewer, who decides by the link in a mail;
no mail leaves the machine. At the end the ledger is compared, row by row, with a
copy from before and the reviewers' own journal: it must contain exactly the
approved changes. If not, the exit code is 1.

Piped, the columns are: situation, proposed, decided, applied, refused, outcome.

Examples:

    gatehouse demo
    gatehouse demo --no-interactive
    gatehouse demo --remove
`
}

// Run plays the demo, or removes an earlier one.
func (c *DemoCommand) Run(g *term.IO) error {
	if err := demo.Check(c.Data); err != nil {
		return notADemo(err)
	}
	if err := checkUnused(g.Ctx, c.Data); err != nil {
		return err
	}
	if c.Remove {
		if _, err := os.Stat(c.Data); errors.Is(err, fs.ErrNotExist) {
			g.Say("There is no %s: nothing was removed.", term.Safe(term.ShownPath(c.Data)))
			return nil
		}
		if err := demo.Remove(c.Data); err != nil {
			return notADemo(err)
		}
		g.Say("%s is removed.", term.Safe(term.ShownPath(c.Data)))
		return nil
	}
	stage := &terminalStage{g: g}
	asks := g.Terminal != nil && g.TTY && !g.JSON
	if c.Interactive != nil {
		asks = *c.Interactive
	}
	if asks {
		if g.Terminal == nil {
			return term.Usagef("there is no terminal to ask on; leave out --interactive")
		}
		tty, err := g.Terminal()
		if err != nil {
			return term.Usagef("there is no terminal to ask on (%v); leave out --interactive", err)
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
		return fmt.Errorf("%w, and was not changed; use another --data", err)
	}
	return err
}

// checkUnused fails if a server uses the folder of an earlier demo, which is about
// to be removed.
func checkUnused(ctx context.Context, dir string) error {
	path := filepath.Join(dir, DatabaseFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path, LockWait: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("%s is not removed: %w", term.ShownPath(dir), err)
	}
	return s.Close()
}

// demoResult is the result of a demo.
type demoResult struct {
	*demo.Report
	OK    bool         `json:"ok"`
	Audit audit.Report `json:"audit"`
	Data  string       `json:"data"`
}

// playDemo serves the folder on a free port, as gatehouse serve would, and
// plays against it.
func playDemo(g *term.IO, dir string, stage demo.Stage) (*demoResult, error) {
	warehouse, err := demo.Prepare(g.Ctx, dir)
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
	listener, listen, err := bind(g.Ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	mails := &mailCatcher{}
	plane := &Backplane{caught: mails, linkURL: "http://" + listen, listener: listener}
	n, err := openNodeWith(g.Ctx, dir, cfg, plane, log)
	if err != nil {
		return nil, err
	}
	admin, err := n.Gate.Bootstrap(g.Ctx)
	if err == nil {
		err = (&devCredentials{Admin: *admin}).write(dir)
	}
	if err == nil {
		err = n.Gate.EnsurePolicies(g.Ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	s, err := Start(n, listen)
	if err != nil {
		return nil, err
	}
	out := &demoResult{Data: dir}
	out.Report, err = demo.Run(g.Ctx, demo.Options{
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

// demo returns the caught mails in the form that package demo reads.
func (c *mailCatcher) demo() []demo.Mail {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]demo.Mail, len(c.mails))
	for i, m := range c.mails {
		list[i] = demo.Mail{To: m.To, Text: m.Text}
	}
	return list
}

// verifyDemo reads the whole log over the API and recomputes its root, as
// gatehouse audit verify does.
func verifyDemo(g *term.IO, url string, admin *gatehouse.Credentials) (audit.Report, error) {
	api, err := client.New(url, admin.Key, client.WithEditToken(admin.EditToken), client.WithChannel(gatehouse.ViaCLI))
	if err != nil {
		return audit.Report{}, err
	}
	// The sequencer numbers the last leaves within a second: wait until the size of the log stays the same.
	head, err := api.Head(g.Ctx)
	for quiet := 0; err == nil && quiet < 5; quiet++ {
		if err = g.Pause(100 * time.Millisecond); err != nil {
			return audit.Report{}, err
		}
		last := head.Size
		if head, err = api.Head(g.Ctx); err == nil && head.Size != last {
			quiet = 0
		}
	}
	if err != nil {
		return audit.Report{}, err
	}
	return audit.VerifyEntries(audit.EntriesUpTo(g.Ctx, api, head.Size, func(done int64) {
		g.Progress("verify", done, head.Size)
	}), *head)
}

// print prints the table and the checks.
func (r *demoResult) print(g *term.IO, dir string) error {
	if g.JSON {
		if err := g.PrintJSON(r); err != nil {
			return err
		}
		return r.verdict()
	}
	if g.TTY {
		fmt.Fprintln(g.Stdout)
	}
	if err := g.Print(r.table(g), ""); err != nil {
		return err
	}
	if g.TTY {
		fmt.Fprintln(g.Stdout)
	}
	s := sheet.New(g)
	mark := func(ok bool) string {
		if ok {
			return term.Paint(g.Color, term.Green, "✓ ")
		}
		return term.Paint(g.Color, term.Red, "✗ ")
	}
	changes := fmt.Sprintf("exactly the %d changes that were approved or allowed, and the %d of a clerk",
		r.Changes-r.Outside, r.Outside)
	if len(r.Differences) > 0 {
		changes = "not what was approved: " + term.Count(len(r.Differences), "difference")
	}
	room := 0
	if g.TTY {
		room = max(g.Columns-sheet.LabelWidth-3, 20)
	}
	put := func(label string, mark, text string) {
		for _, line := range term.Fill(text, room) {
			s.Raw(label, mark+line)
			label, mark = "", strings.Repeat(" ", min(len(mark), 2))
		}
	}
	put("ledger", mark(len(r.Differences) == 0), changes)
	put("compared", "",
		fmt.Sprintf("%d rows of %d tables, with a copy from before and the reviewers' journal", r.Rows, r.Tables))
	if err := r.Audit.Err(); err != nil {
		put("audit log", mark(false), err.Error())
	} else {
		put("audit log", mark(true), term.EntryCount(r.Audit.Found)+" verified")
	}
	s.Line("root", term.HashText(r.Audit.Root))
	folder := term.ShellWord(term.Safe(term.ShownPath(dir)))
	flag := ""
	if filepath.Clean(dir) != demoFolder {
		flag = " --data " + folder
	}
	program := g.Program()
	s.Raw("look further", program+" dev --data "+folder)
	s.Raw("list them", `eval "$(`+program+` dev env --data `+folder+`)"; `+program+` list   # in another terminal`)
	s.Raw("remove", program+" demo --remove"+flag)
	for i, d := range r.Differences {
		if i == 20 {
			g.Say("… and %d more", len(r.Differences)-i)
			break
		}
		g.Say("%s %s", term.Paint(g.ColorErr, term.Red, "differs:"), term.Safe(d.String()))
	}
	return r.verdict()
}

func (r *demoResult) verdict() error {
	if r.OK {
		return nil
	}
	return term.Exit(term.ExitError)
}

func (r *demoResult) table(g *term.IO) *term.Table {
	t := &term.Table{Header: []string{"SITUATION", "PROPOSED", "DECIDED", "APPLIED", "REFUSED", "OUTCOME"}, Wide: 5}
	// On a terminal, the story has already shown the outcomes.
	brief := g.TTY && g.Columns < 120
	add := func(l *demo.Line, outcome string) {
		cells := []string{l.Name}
		for i, n := range []int{l.Proposed, l.Decided, l.Applied, l.Refused} {
			cell := strconv.Itoa(n)
			if g.TTY {
				cell = fmt.Sprintf("%*d", len(t.Header[i+1]), n)
			}
			cells = append(cells, cell)
		}
		if !brief {
			cells = append(cells, outcome)
		}
		t.Add(cells...)
	}
	if brief {
		t.Header, t.Wide = t.Header[:5], 0
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
		all = term.Count(bad, "situation") + " went wrong"
	case !r.OK:
		all = "not as it should be; see below"
	}
	add(&r.Total, all)
	return t
}

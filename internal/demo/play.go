package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// Choice is the decision of the person who watches.
type Choice int

// The choices. With Undecided, the demo decides.
const (
	Undecided Choice = iota
	Approved
	Rejected
)

// Stage displays the run.
type Stage interface {
	// Chapter begins a situation.
	Chapter(number, of int, title string)
	// Say shows what somebody did.
	Say(line string)
	// Settled ends a situation.
	Settled(l *Line)
	// Ask shows a pending action to the user. The user decides in the role of the reviewer whose name
	// is who.
	Ask(ctx context.Context, who string, a *gatehouse.Action) (Choice, error)
}

// Options configure a run.
type Options struct {
	// Dir was made by [Prepare], which also returned Warehouse.
	Dir       string
	Warehouse *Warehouse
	// URL is the address of the gate that runs with the configuration in Dir. Admin has the secrets of
	// its administrator.
	URL   string
	Admin gatehouse.Credentials
	Stage Stage
	// Mails returns the mails that the gate has sent so far.
	Mails func() []Mail
}

// Line is the result of one situation. Refused counts the proposals that the policy denied or people
// rejected, the decisions that the gate refused, and the changes that the ledger refused.
type Line struct {
	Name     string `json:"name"`
	Proposed int    `json:"proposed"`
	Decided  int    `json:"decided"`
	Applied  int    `json:"applied"`
	Refused  int    `json:"refused"`
	// Outcome summarizes the result. Err explains what went wrong, if anything.
	Outcome string `json:"outcome"`
	Err     string `json:"error,omitempty"`
}

// Report is the result of the run.
type Report struct {
	Lines []*Line `json:"situations"`
	Total Line    `json:"total"`
	// Changes counts the changes that the ledger must hold according to the journal. Outside
	// counts those of them that a clerk made.
	Changes     int          `json:"changes"`
	Outside     int          `json:"outside"`
	Tables      int          `json:"tables"`
	Rows        int          `json:"rows"`
	Differences []Difference `json:"differences"`
}

// OK reports whether every situation succeeded and the ledger holds exactly the approved
// changes.
func (r *Report) OK() bool {
	for _, l := range r.Lines {
		if l.Err != "" {
			return false
		}
	}
	return len(r.Differences) == 0 && r.Rows > 0
}

// Run runs all situations in sequence and checks the ledger. An error means that the demo could
// not continue. Failures of situations are in the report.
func Run(ctx context.Context, o Options) (r *Report, err error) {
	p := &play{Options: o}
	if p.journal, err = newJournal(filepath.Join(o.Dir, JournalFile)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.journal.Close()) }()
	if p.ledger, err = Open(filepath.Join(o.Dir, LedgerFile)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.ledger.Close()) }()
	if err := p.cast(ctx); err != nil {
		return nil, fmt.Errorf("make the agent and the reviewers: %w", err)
	}
	r = &Report{Total: Line{Name: "total"}}
	all := situations()
	for i, s := range all {
		l := &Line{Name: s.name}
		o.Stage.Chapter(i+1, len(all), s.name)
		if err := s.play(ctx, p, l); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			l.Err = err.Error()
		}
		o.Stage.Settled(l)
		r.Lines = append(r.Lines, l)
		r.Total.Proposed += l.Proposed
		r.Total.Decided += l.Decided
		r.Total.Applied += l.Applied
		r.Total.Refused += l.Refused
	}
	return r, p.check(ctx, r)
}

// check applies the journal to the copy and compares it with the ledger.
func (p *play) check(ctx context.Context, r *Report) (err error) {
	entries, err := readJournal(filepath.Join(p.Dir, JournalFile))
	if err != nil {
		return err
	}
	before, err := Open(filepath.Join(p.Dir, BeforeFile))
	if err != nil {
		return err
	}
	path := filepath.Join(p.Dir, ExpectedFile)
	if err := errors.Join(copyLedger(ctx, before, path), before.Close()); err != nil {
		return fmt.Errorf("copy the ledger as it was before the run: %w", err)
	}
	expected, err := Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, expected.Close()) }()
	if r.Changes, err = applyJournal(ctx, expected, entries); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Kind == kindOutside {
			r.Outside++
		}
	}
	r.Rows, r.Tables, r.Differences, err = compare(ctx, expected, p.ledger)
	return err
}

// play is the state of one run.
type play struct {
	Options
	journal *journal
	ledger  *sql.DB
	agent   *client.Client
	admin   *client.Client
	// Reviewers. sam is the agent's sponsor; olga is an operator.
	ana, ben, sam *reviewer
	olga          *client.Client
	// applied is an applied price change, to be reversed later.
	applied *gatehouse.Action
	// order is an order that the ledger refused and that is a dead letter.
	order *gatehouse.Action
}

// cast creates the agent and the people.
func (p *play) cast(ctx context.Context) (err error) {
	if p.admin, err = client.New(p.URL, p.Admin.Key, client.WithEditToken(p.Admin.EditToken)); err != nil {
		return err
	}
	member := func(r gatehouse.NewPrincipal) *client.Client {
		if err != nil {
			return nil
		}
		var c *gatehouse.Credentials
		if c, err = p.admin.CreatePrincipal(ctx, r); err != nil {
			return nil
		}
		var out *client.Client
		out, err = client.New(p.URL, c.Key, client.WithEditToken(c.EditToken))
		return out
	}
	person := func(name string, roles ...gatehouse.Role) *client.Client {
		return member(gatehouse.NewPrincipal{Name: name, Kind: gatehouse.KindPerson, Roles: roles})
	}
	p.ana = &reviewer{"ana", person("ana", gatehouse.RoleApprover), p.journal}
	p.ben = &reviewer{"ben", person("ben", gatehouse.RoleApprover), p.journal}
	p.sam = &reviewer{"sam", person("sam", gatehouse.RoleApprover), p.journal}
	p.olga = person("olga", gatehouse.RoleOperator)
	p.agent = member(gatehouse.NewPrincipal{
		Name: agentName, Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer}, Sponsor: "sam",
	})
	return err
}

const agentName = "shop-bot"

// propose sends a proposal of the agent, with the demo's metadata. If the policy allows the
// change, the agent writes the journal entry.
func (p *play) propose(ctx context.Context, l *Line, q *gatehouse.Proposal) (*gatehouse.Action, error) {
	q.Metadata = `{"demo":true}`
	a, _, err := p.agent.Propose(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("propose: %w", err)
	}
	l.Proposed++
	switch a.Status {
	case gatehouse.StatusDenied:
		l.Refused++
	case gatehouse.StatusPending:
	default:
		return a, p.journal.write(entry{
			By: agentName, Kind: kindAllowed, ActionID: a.ID, Connector: q.Connector,
			Operation: q.Operation, Target: q.Target, Before: q.CurrentState, Change: q.ProposedChange,
		})
	}
	return a, nil
}

// finishWithin limits the wait for one action. With the demo's backoff an action takes at most a
// second.
const finishWithin = 30 * time.Second

// finish waits for the end of an action, which must end with the status want.
func (p *play) finish(ctx context.Context, l *Line, id string, want gatehouse.Status) (*gatehouse.Action, error) {
	a, err := p.agent.WaitAction(ctx, id, finishWithin, gatehouse.UntilFinished)
	if err != nil {
		return nil, err
	}
	if a.Status != want {
		why := ""
		if a.Failure != nil {
			why = ": " + a.Failure.Detail
		}
		return nil, fmt.Errorf("%s is %s instead of %s%s", subject(a), a.Status, want, why)
	}
	if a.Status == gatehouse.StatusApplied {
		l.Applied++
	}
	return a, nil
}

// outside writes to the ledger directly, in the role of a clerk.
func (p *play) outside(ctx context.Context, e entry) error {
	conn, err := p.ledger.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	e.By, e.Kind = "a clerk", kindOutside
	if err := e.apply(ctx, conn); err != nil {
		return err
	}
	return p.journal.write(e)
}

func subject(a *gatehouse.Action) string {
	if n := len(a.Target.EntityRefs); n > 0 {
		return fmt.Sprintf("%s of %d", a.ActionType, n)
	}
	return a.ActionType + " of " + a.Target.EntityRef
}

package bench

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// base is the database engine below both sides of a figure: SQLite or PostgreSQL.
type base interface {
	// databases creates the databases of one figure. Names are distinct within a run.
	databases(ctx context.Context, name string) (databases, error)
	// engine is the engine's name; about adds details for the head of the table.
	engine() string
	about() string
	// how describes, for the table, how the bare queue of pushes commits.
	how() string
	// singleBesideRows selects the baseline of the target for one client's decision: true for the endpoint that
	// writes all rows of a decision, false for the bare claim.
	singleBesideRows() bool
	// startTarget is the target for the time from start to ready with a filled store, in milliseconds.
	startTarget() float64
	close() error
}

// databases are the stores of one figure: the gate's and those of the bare sides, each a database of
// its own.
type databases interface {
	// place adds the location of the gate's store to a Setup.
	place(Setup) Setup
	claims(context.Context) (claimer, error)
	// proposals and decisions use the gate's own tables.
	proposals(context.Context, *gatehouse.Action) (proposer, error)
	decisions(context.Context, *gatehouse.Action) (decider, error)
	// steps uses the gate's own tables, and works in batches of the given size.
	steps(ctx context.Context, batch int) (stepper, error)
	// walk reads the gate's inbox with plain queries.
	walk(context.Context) (walker, error)
	// analyze updates the planner's statistics on both sides, as a server does by itself after a
	// minute.
	analyze(context.Context) error
	// parts are the bytes of each table of the gate's store, with its indexes.
	parts(context.Context) (map[string]int64, error)
	// remove deletes all of them.
	remove() error
}

// The writes of the bare sides are durable when their methods return. The write functions of ways, and
// the methods claim, lease, intent and complete may be called concurrently.

// The descriptions of the bare sides in the table; a description of their commits is appended to each.
const (
	claimIs    = "bare HTTP endpoint and one claim, "
	sameRowsIs = "bare HTTP endpoint and all rows of a decision, "
	proposalIs = "bare HTTP endpoint and the same rows, "
)

// way is one way in which a bare side writes; is describes it in the table.
type way[In any] struct {
	is    string
	write func(id string, in *In) error
}

// decider stores actions and decides them; the targets compare the gate with the first of its ways.
type decider interface {
	// pending stores n more pending actions and returns their ids.
	pending(n int) ([]string, error)
	ways() []way[bareDecision]
	close() error
}

// claimer is a decider that writes the minimum for a decision and its push, to tables that have nothing else.
type claimer interface {
	decider
	claim(id string) error
	// single claims as claim does, but commits alone, outside group commit; no other method may run
	// at the same time.
	single(id string) error
	// approved stores n actions that are already claimed.
	approved(n int) ([]string, error)
	lease(ids []string) error
	intent(id string) error
	complete(id string) error
}

// proposer writes the rows of a proposal.
type proposer interface {
	ways() []way[bareProposal]
	close() error
}

// walker reads one page after another.
type walker interface {
	next(context.Context) error
	close() error
}

type bareDecision struct {
	Decision string `json:"decision"`
	Digest   string `json:"digest"`
}

type bareAnswer struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// serveDecide serves the bare endpoint for decisions.
func serveDecide(ctx context.Context, w way[bareDecision]) (*bareServer, error) {
	return serveBare(ctx, "POST /decide/{id}", bareJSON(func(r *http.Request, in *bareDecision) (bareAnswer, error) {
		id := r.PathValue("id")
		return bareAnswer{id, in.Decision}, w.write(id, in)
	}))
}

package bench

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// base is the engine below both sides of a figure: SQLite or PostgreSQL.
type base interface {
	// room makes the place of one figure. Names are distinct in a run.
	room(ctx context.Context, name string) (room, error)
	// engine is its name; about says more, for the head of the table.
	engine() string
	about() string
	// how says how the bare sides commit.
	how() string
	// singleTarget is that of a decision of one client beside the bare claim,
	// startTarget that of a start, in milliseconds.
	singleTarget() float64
	startTarget() float64
	close() error
}

// room is where the stores of one figure are: a gate's, and beside it those of
// the bare sides, each in a database of its own.
type room interface {
	// place fills in where a gate has its store.
	place(Setup) Setup
	claims(context.Context) (claimer, error)
	// proposals and decisions have the gate's own tables.
	proposals(context.Context, *gatehouse.Action) (proposer, error)
	decisions(context.Context, *gatehouse.Action) (decider, error)
	numbers(context.Context) (numberer, error)
	// steps has the gate's own tables, and works in batches of a size.
	steps(ctx context.Context, batch int) (stepper, error)
	// walk reads the inbox of the gate in this room by plain queries.
	walk(context.Context) (walker, error)
	// known tells the planner what is stored by now, on both sides, as a server
	// finds out by itself after a minute.
	known(context.Context) error
	// remove removes all of it.
	remove() error
}

// What the bare sides do is stored durably when their methods return. But for
// pending, queue and fill, any number of goroutines may call them at a time.

// claimer is what a decision and its push cannot do without, over tables that
// have nothing but that.
type claimer interface {
	// pending stores n more pending actions and returns their ids.
	pending(n int) ([]string, error)
	claim(id string) error
	// single is the claim of one caller who is alone.
	single(id string) error
	// approved stores n actions that are claimed already.
	approved(n int) ([]string, error)
	lease(ids []string) error
	intent(id string) error
	complete(id string) error
	close() error
}

// proposer writes the rows of a proposal.
type proposer interface {
	insert(id string, p *bareProposal) error
	close() error
}

// decider writes the rows of a decision.
type decider interface {
	// pending stores n more pending actions and returns their ids.
	pending(n int) ([]string, error)
	decide(id string, d *bareDecision) error
	close() error
}

// numberer writes the rows of numbered leaves.
type numberer interface {
	fill(n int) error
	number(n int) error
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

// serveDecide serves the bare endpoint of a decision.
func serveDecide(ctx context.Context, decide func(id string, in *bareDecision) error) (*bareServer, error) {
	return serveBare(ctx, "POST /decide/{id}", bareJSON(func(r *http.Request, in *bareDecision) (bareAnswer, error) {
		id := r.PathValue("id")
		return bareAnswer{id, in.Decision}, decide(id, in)
	}))
}

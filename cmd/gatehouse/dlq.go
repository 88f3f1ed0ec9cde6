package main

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// dlqCmd groups the commands about dead letters.
type dlqCmd struct {
	List   dlqListCmd   `cmd:"" help:"List dead letters, with advice."`
	Replay dlqReplayCmd `cmd:"" help:"Put dead letters back into the queue."`
}

// dlqListCmd lists dead letters.
type dlqListCmd struct {
	paging `embed:""`
}

func (*dlqListCmd) Help() string {
	return `
A dead letter is a push that ran out of retries, or met an error that no retry
mends. Piped, the columns are: id, action, type, connector, attempts, last
attempt, code, error, advice.

Examples:

    gatehouse dlq list
    gatehouse dlq list --all | awk -F'\t' '$7 == "target_changed" {print $1}'
`
}

// Run lists.
func (c *dlqListCmd) Run(g *globals) error {
	api, err := g.connect()
	if err != nil {
		return err
	}
	page, err := collect(g.ctx, &c.paging, api.ListDeadLetters)
	if err != nil {
		return err
	}
	return printPage(g, page, "No dead letters.", func() *table {
		t := &table{
			header: []string{"ID", "ACTION", "TYPE", "CONNECTOR", "ATTEMPTS", "LAST", "CODE", "ERROR", "ADVICE"},
			wide:   8, drop: []int{5, 2, 1, 3, 4},
		}
		for _, d := range page.Items {
			t.add(d.ID, d.ActionID, d.ActionType, d.Connector, strconv.Itoa(d.Attempts), g.at(d.LastAt), d.ErrorCode, d.Error, d.Advice)
		}
		return t
	})
}

// dlqReplayCmd replays dead letters.
type dlqReplayCmd struct {
	IDs []string `arg:"" optional:"" name:"id" help:"The dead letters (ids of pushes)."`
	All bool     `help:"All of them."`
}

func (*dlqReplayCmd) Help() string {
	return `
Every check runs again, and the idempotency key stays the same: what was applied
already is skipped. Exits 1 when one was skipped for another reason.

Examples:

    gatehouse dlq replay psh_01993b7e
    gatehouse dlq replay --all
`
}

// Run replays.
func (c *dlqReplayCmd) Run(g *globals) error {
	if c.All == (len(c.IDs) > 0) {
		return usagef("name dead letters, or give --all")
	}
	api, err := g.connect()
	if err != nil {
		return err
	}
	answer, err := api.ReplayDeadLetters(g.ctx, gatehouse.ReplayRequest{IDs: c.IDs, All: c.All})
	if err != nil {
		return err
	}
	if g.JSON {
		err = g.printJSON(answer)
	} else {
		t := &table{header: []string{"ID", "RESULT", "DETAIL"}, wide: 2}
		for _, r := range answer.Results {
			result := r.Result
			if r.Skipped != "" {
				result = "skipped: " + r.Skipped
			}
			t.add(r.ID, result, r.Detail)
		}
		err = g.print(t, "No dead letters.")
	}
	if err != nil {
		return err
	}
	for _, r := range answer.Results {
		if r.Skipped != "" && r.Skipped != "already_applied" {
			return exitWith(exitError)
		}
	}
	return nil
}

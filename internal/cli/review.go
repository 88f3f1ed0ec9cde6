// Package tui is the review on a terminal: what waits for a person, one card a screen, decided by keys.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
)

// reviewService is what a review asks the server.
type reviewService interface {
	gatehouse.ActionService
	ListDelegations(ctx context.Context) ([]*gatehouse.Delegation, error)
}

// reviewConfig says who reviews what.
type reviewConfig struct {
	// Me is the person; API speaks to the server as them, with EditToken, which
	// may be empty.
	Me        *gatehouse.Principal
	API       reviewService
	EditToken string
	// Connect speaks to the server with a token that was typed.
	Connect func(token string) (reviewService, error)
	Filter  gatehouse.ActionFilter
	// Yes lets one key approve L3.
	Yes bool
}

// review shows the inbox on the person's terminal, and prints in the end what
// was decided.
func review(g *termIO, c reviewConfig) error {
	m := &reviewer{
		g: g, me: c.Me, yes: c.Yes, color: g.color || g.colorErr, given: c.EditToken, token: c.EditToken,
		width: 80, height: 24, now: time.Now, filter: c.Filter, connect: c.Connect, api: c.API,
	}
	first := m.load()
	if first.err != nil {
		return first.err
	}
	m.take(first)
	if len(m.items) > 0 {
		if err := m.show(); err != nil {
			return err
		}
		return m.summary()
	}
	if err := m.summary(); err != nil || g.json {
		return err
	}
	if m.others > 0 {
		g.say("Nothing waits for you; %s not yours to decide.", isOrAre(m.others, "action"))
		return nil
	}
	g.say("Nothing waits for a decision.")
	return nil
}

func isOrAre(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

// show runs the program on the person's terminal.
func (m *reviewer) show() error {
	tty, err := m.g.terminal()
	if err != nil {
		return usagef("there is no terminal to show cards on: %v", err)
	}
	defer tty.Close()
	options := []tea.ProgramOption{tea.WithContext(m.g.ctx)}
	if f, ok := tty.(*os.File); ok {
		options = append(options, tea.WithInput(f), tea.WithOutput(f))
	}
	_, err = tea.NewProgram(m, options...).Run()
	switch {
	case m.g.ctx.Err() != nil:
		return m.g.ctx.Err()
	case errors.Is(err, tea.ErrInterrupted):
		return nil // what was decided is decided
	}
	return err
}

// summary prints what was decided.
func (m *reviewer) summary() error {
	if m.g.json {
		return m.g.printJSON(struct {
			Items []verdict `json:"items"`
		}{append([]verdict{}, m.verdicts...)})
	}
	if len(m.verdicts) == 0 {
		return nil
	}
	t := &table{header: []string{"ID", "RESULT"}}
	for _, v := range m.verdicts {
		t.add(v.ActionID, v.Result)
	}
	return m.g.print(t, "")
}

// verdict is one thing that the person did.
type verdict struct {
	ActionID string `json:"action_id"`
	Result   string `json:"result"`
}

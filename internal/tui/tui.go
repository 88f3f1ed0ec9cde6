// Package tui is the review on a terminal: the actions that wait for a person, one card per
// screen, decided by keys.
package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// Service is the part of the API that a review uses.
type Service interface {
	gatehouse.ActionService
	ListDelegations(ctx context.Context) ([]*gatehouse.Delegation, error)
	ReadTarget(ctx context.Context, id string) (*gatehouse.TargetState, error)
	Preview(ctx context.Context, id string) (*gatehouse.Preview, error)
}

// Config configures a review.
type Config struct {
	// Me is the person. API acts for them, with EditToken, which may be empty.
	Me        *gatehouse.Principal
	API       Service
	EditToken string
	// Connect returns the service with an edit token that was typed.
	Connect func(token string) (Service, error)
	Filter  gatehouse.ActionFilter
	// With Yes, one key approves an action of risk level L3; without it, Enter must confirm the approval.
	Yes bool
}

// Review shows the inbox on the person's terminal, and finally prints the decisions.
func Review(g *term.IO, c Config) error {
	m := &reviewer{
		g: g, me: c.Me, yes: c.Yes, color: g.Color || g.ColorErr, given: c.EditToken, token: c.EditToken,
		width: 80, height: 24, now: time.Now, filter: c.Filter, connect: c.Connect, api: c.API,
	}
	if err := m.first(); err != nil {
		return err
	}
	if len(m.items) > 0 {
		if err := m.show(); err != nil {
			return err
		}
		return m.summary()
	}
	if err := m.summary(); err != nil || g.JSON {
		return err
	}
	if m.others > 0 {
		g.Say("Nothing waits for you; %s not yours to decide.", isOrAre(m.others, "action"))
		return nil
	}
	g.Say("Nothing waits for a decision.")
	return nil
}

// first reads pages of the inbox until one has an action for this person.
func (m *reviewer) first() error {
	for {
		page := m.load()
		if page.err != nil {
			return page.err
		}
		if m.take(page) > 0 || !m.more {
			return nil
		}
	}
}

func isOrAre(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

// show runs the program on the person's terminal.
func (m *reviewer) show() error {
	tty, err := m.g.Terminal()
	if err != nil {
		return term.Usagef("there is no terminal to show cards on: %v", err)
	}
	defer tty.Close()
	options := []tea.ProgramOption{tea.WithContext(m.g.Ctx)}
	if f, ok := tty.(*os.File); ok {
		options = append(options, tea.WithInput(f), tea.WithOutput(f))
	}
	_, err = tea.NewProgram(m, options...).Run()
	switch {
	case m.g.Ctx.Err() != nil:
		return m.g.Ctx.Err()
	case errors.Is(err, tea.ErrInterrupted):
		return nil // decisions that were sent remain
	}
	return err
}

// summary prints what was decided.
func (m *reviewer) summary() error {
	if m.g.JSON {
		return m.g.PrintJSON(struct {
			Items []outcome `json:"items"`
		}{append([]outcome{}, m.outcomes...)})
	}
	if len(m.outcomes) == 0 {
		return nil
	}
	t := &term.Table{Header: []string{"ID", "RESULT"}}
	for _, v := range m.outcomes {
		t.Add(v.ActionID, v.Result)
	}
	return m.g.Print(t, "")
}

// outcome is one decision or other act of the person.
type outcome struct {
	ActionID string `json:"action_id"`
	Result   string `json:"result"`
}

package cli

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// commentCmd writes a comment on a pending action.
type commentCmd struct {
	ID     string `arg:"" help:"The pending action."`
	Text   string `arg:"" help:"The text, at most 4 KB."`
	Ask    bool   `xor:"kind" help:"Ask the proposer, who gets the question while waiting for the decision."`
	Answer int    `xor:"kind" placeholder:"N" help:"Answer question N, as the proposer."`
}

func (*commentCmd) Help() string {
	return `
Adds to the conversation about a pending action: a comment, a question to its
proposer, or the proposer's answer. It decides nothing. Prints the number of the
comment. The conversation ends with the decision.

Examples:

    gatehouse comment act_01993b7e "the price list says 11.90"
    gatehouse comment act_01993b7e "why so much?" --ask
    gatehouse comment act_01993b7e "the supplier raised it" --answer 1
`
}

func (c *commentCmd) Run(g *globals, api service) error {
	r := gatehouse.CommentRequest{Text: c.Text, Answers: c.Answer}
	if c.Ask {
		r.Kind = gatehouse.CommentQuestion
	}
	a, err := api.Comment(g.Ctx, c.ID, r)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printAction(a)
	}
	_, err = fmt.Fprintln(g.Stdout, a.Comments[len(a.Comments)-1].Number)
	return err
}

// assignCmd assigns a pending action to a person.
type assignCmd struct {
	ID     string `arg:"" help:"The pending action."`
	Person string `arg:"" optional:"" help:"Name or id of somebody who may decide it; without it, the assignment is removed."`
}

func (*assignCmd) Help() string {
	return `
Assigns a pending action to a person, and notifies that person. An assignment
restricts nothing: the same people may decide.

Examples:

    gatehouse assign act_01993b7e ben
    gatehouse list --assignee me
`
}

func (c *assignCmd) Run(g *globals, api service) error {
	a, err := api.Assign(g.Ctx, c.ID, gatehouse.AssignRequest{Assignee: c.Person})
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printAction(a)
	}
	if a.Approval.Assignee == nil {
		g.Say("%s has no assignee.", a.ID)
		return nil
	}
	g.Say("%s is assigned to %s.", a.ID, term.Safe(a.Approval.Assignee.Name))
	return nil
}

// sayQuestions prints the open questions with a number above seen, and returns the highest number.
func (g *globals) sayQuestions(a *gatehouse.Action, seen int) int {
	for _, q := range a.OpenQuestions() {
		if q.Number > seen {
			g.Say("%s asks (question %d): %s\nAnswer with: gatehouse comment %s TEXT --answer %d",
				term.Safe(q.Author), q.Number, term.Safe(q.Text), a.ID, q.Number)
		}
	}
	return a.LastQuestion(seen)
}

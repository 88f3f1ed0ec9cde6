package sheet

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// Conversation writes the comments on an action.
func (s *Sheet) Conversation(a *gatehouse.Action) {
	if len(a.Comments) == 0 {
		return
	}
	s.Head("Conversation")
	for i := range a.Comments {
		c := &a.Comments[i]
		s.Item(fmt.Sprintf("%d. %s %s %s", c.Number, c.Author, saidAs(a, c), s.When(c.At)))
		s.quote(c.Text)
	}
}

func saidAs(a *gatehouse.Action, c *gatehouse.Comment) string {
	switch c.Kind {
	case gatehouse.CommentQuestion:
		if a.AnswerTo(c.Number) == nil {
			return "asks " + term.Safe(a.ProposedBy) + ", not answered"
		}
		return "asks " + term.Safe(a.ProposedBy)
	case gatehouse.CommentAnswer:
		return fmt.Sprintf("answers %d", c.Answers)
	}
	return "comments"
}

package card

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Timeout says what happens to a question that nobody answers in time.
func Timeout(t *gatehouse.Timing, extended bool) string {
	switch {
	case t.OnTimeout == gatehouse.TimeoutReject:
		return "After that the policy rejects it."
	case t.OnTimeout == gatehouse.TimeoutExtend && extended:
		return "The time was extended by " + t.ExtendBy.String() + "; after that it expires."
	case t.OnTimeout == gatehouse.TimeoutExtend:
		return "After that the time is extended once, by " + t.ExtendBy.String() + "."
	}
	return "After that it expires."
}

// StageLines says, stage by stage, who is asked and for how long. current is the
// number of the current stage, from 1; 0 for none.
func StageLines(t *gatehouse.Timing, current int) []string {
	var lines []string
	for i, s := range t.Stages {
		who := strings.Join(s.Who.Words(), ", ")
		if i > 0 {
			who = "also " + who
		}
		line := s.For.String() + ": " + who
		if len(s.Notify) > 0 {
			line += "; notified on " + strings.Join(s.Notify, ", ")
		}
		if i+1 == current {
			line += " (now)"
		}
		lines = append(lines, line)
	}
	return lines
}

// Reminders lists the times from the question to each reminder, such as "1h, 4h"; ""
// for no reminders.
func Reminders(t *gatehouse.Timing) string {
	list := make([]string, len(t.Reminders))
	for i, d := range t.Reminders {
		list[i] = d.String()
	}
	return strings.Join(list, ", ")
}

package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// mark is the sign and the word that show a state, so that no reader depends on
// colour.
type mark struct{ sign, word string }

func markOf(status gatehouse.StepStatus, skipped bool) mark {
	switch {
	case status == gatehouse.StepSucceeded && skipped:
		return mark{"–", "skipped"}
	case status == gatehouse.StepSucceeded:
		return mark{"✓", "succeeded"}
	}
	switch status {
	case gatehouse.StepBlocked:
		return mark{"·", "blocked"}
	case gatehouse.StepReady:
		return mark{"○", "ready"}
	case gatehouse.StepRunning:
		return mark{"▶", "running"}
	case gatehouse.StepWaitingApproval:
		return mark{"?", "waiting for approval"}
	case gatehouse.StepWaiting:
		return mark{"…", "waiting"}
	case gatehouse.StepRetrying:
		return mark{"↻", "to be retried"}
	case gatehouse.StepFailed:
		return mark{"✗", "failed"}
	case gatehouse.StepCanceled:
		return mark{"⊘", "canceled"}
	}
	return mark{}
}

// drawn is a step with its state in a run.
type drawn struct {
	*Step
	status gatehouse.StepStatus // "" without a run
	mark
	// items counts the items of a for_each, done those that have succeeded.
	items, done int
}

func (d *Definition) drawn(run *gatehouse.Run) map[string]drawn {
	out := make(map[string]drawn, len(d.Steps))
	for _, s := range d.Steps {
		one := drawn{Step: s}
		if run != nil {
			if state := run.Latest(s.ID); state != nil {
				one.status, one.mark = state.Status, markOf(state.Status, state.Skipped)
				for _, item := range run.Steps {
					if item.Parent == "" || item.Parent != state.ID {
						continue
					}
					one.items++
					if item.Status == gatehouse.StepSucceeded {
						one.done++
					}
				}
			}
		}
		out[s.ID] = one
	}
	return out
}

// state describes the step's state in words; "" without a run.
func (d drawn) state() string {
	if d.items > 0 {
		return fmt.Sprintf("%s, %d of %d items", d.word, d.done, d.items)
	}
	return d.word
}

// does describes in words what the step does.
func (d drawn) does() string {
	s := d.Uses
	if d.ForEach != nil {
		s += ", for each"
	}
	if d.If != nil {
		s += ", if"
	}
	return s
}

// direct returns the needs of each step, without those that other needs imply.
func (d *Definition) direct() map[string][]string {
	ids := make([]string, len(d.Steps))
	for i, s := range d.Steps {
		ids[i] = s.ID
	}
	up, _ := upstream(ids, d.Needs())
	out := make(map[string][]string, len(ids))
	for _, s := range d.Steps {
		for _, need := range s.Needs {
			implied := slices.ContainsFunc(s.Needs, func(other string) bool { return other != need && up[other][need] })
			if !implied {
				out[s.ID] = append(out[s.ID], need)
			}
		}
	}
	return out
}

// Text draws the graph for a terminal: one line per step, by layer, with the
// steps that it follows; with a run, also the steps' states.
func (d *Definition) Text(run *gatehouse.Run) string {
	steps, needs := d.drawn(run), d.direct()
	idWidth, usesWidth := 0, 0
	for _, s := range steps {
		idWidth, usesWidth = max(idWidth, len(s.ID)), max(usesWidth, len(s.does()))
	}
	var b strings.Builder
	b.WriteString(d.Name)
	if run != nil {
		fmt.Fprintf(&b, " v%d · %s · %s", run.Version, plainText(run.ID), plainText(string(run.Status)))
	}
	b.WriteString("\n")
	for i, layer := range d.Layers() {
		for j, s := range layer {
			number := "  "
			if j == 0 {
				number = fmt.Sprintf("%2d", i+1)
			}
			one := steps[s.ID]
			sign := "○"
			if one.sign != "" {
				sign = one.sign
			}
			line := fmt.Sprintf("%s  %s %-*s  %-*s", number, sign, idWidth, s.ID, usesWidth, one.does())
			if run != nil {
				line += fmt.Sprintf("  %-20s", one.state())
			}
			if after := needs[s.ID]; len(after) > 0 {
				line += "  ← " + strings.Join(after, ", ")
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}

// plainText removes characters that a terminal would interpret.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e ||
			r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}

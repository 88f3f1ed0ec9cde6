package console

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
)

// runStatuses are the states for the list's filter, in the order of a run's life.
func runStatuses() []gatehouse.RunStatus {
	return []gatehouse.RunStatus{
		gatehouse.RunQueued, gatehouse.RunRunning, gatehouse.RunWaitingApproval, gatehouse.RunWaiting, gatehouse.RunRetrying,
		gatehouse.RunSucceeded, gatehouse.RunFailed, gatehouse.RunCanceled,
	}
}

// lostAttempt is the state of an attempt whose worker let the lease expire.
const lostAttempt = "lease_expired"

func attemptState(a *gatehouse.StepAttempt) string {
	if runline.Lost(a) {
		return lostAttempt
	}
	return a.Outcome
}

// stateWord names the state of a run or a step in everyday words.
func stateWord(status string) string {
	switch status {
	case string(gatehouse.RunWaitingApproval):
		return "waiting for people"
	case string(gatehouse.RunRetrying):
		return "to be retried"
	case string(gatehouse.RunFailed):
		return "failed"
	case lostAttempt:
		return "lost by its worker"
	}
	return status
}

// stateMark is the shape that stands for a state, so that no meaning depends on colour alone.
func stateMark(status string) string {
	return cmp.Or(map[string]string{
		string(gatehouse.RunQueued):          "○",
		string(gatehouse.StepReady):          "○",
		string(gatehouse.StepBlocked):        "·",
		string(gatehouse.RunRunning):         "▶",
		string(gatehouse.RunWaitingApproval): "◆",
		string(gatehouse.RunWaiting):         "…",
		string(gatehouse.RunRetrying):        "↻",
		string(gatehouse.RunSucceeded):       "✓",
		string(gatehouse.RunFailed):          "✕",
		lostAttempt:                          "✕",
	}[status], "–")
}

func stateTone(status string) string {
	switch status {
	case string(gatehouse.RunQueued), string(gatehouse.StepReady), string(gatehouse.RunRunning),
		string(gatehouse.RunWaiting):
		return "open"
	case string(gatehouse.RunWaitingApproval), string(gatehouse.RunRetrying):
		return "warn"
	case string(gatehouse.RunSucceeded):
		return "good"
	case string(gatehouse.RunFailed), lostAttempt:
		return "bad"
	}
	return "quiet"
}

// runWord names a run's state, and says whether the run is stopping.
func runWord(r *gatehouse.Run) string {
	if r.Stop != "" && !r.Status.Final() {
		return stateWord(string(r.Status)) + ", stopping"
	}
	return stateWord(string(r.Status))
}

// runSentence sums up the run for screen readers.
func runSentence(d *gatehouse.RunDetail) string {
	done := 0
	for _, s := range d.Steps {
		if s.Status.Final() {
			done++
		}
	}
	return "Run " + runWord(d.Run) + "; " + strconv.Itoa(done) + " of " + strconv.Itoa(len(d.Steps)) +
		" steps ended."
}

// failureSentence says at which step a run failed, or that it was canceled.
func failureSentence(d *gatehouse.RunDetail) string {
	for _, s := range d.Steps {
		if s.Status == gatehouse.StepFailed && s.Parent == "" {
			return "Failed at step " + s.Key
		}
	}
	if d.Status == gatehouse.RunCanceled || d.Stop == gatehouse.RunCanceled {
		return "Canceled"
	}
	return "Failed"
}

// whom names the people who can answer an action's question. For an action without an open question,
// it names the outcome that the step waits for.
func whom(a *gatehouse.Action) string {
	p := a.Approval
	if p == nil || a.Status != gatehouse.StatusPending {
		return "the outcome of " + a.ActionType + ", which is " + string(a.Status)
	}
	who := cmp.Or(audienceWords(p.Reached()), "the role approver")
	if p.Required > 1 {
		who += ", " + strconv.Itoa(p.Approvals()) + " of " + strconv.Itoa(p.Required) + " have approved"
	}
	return who
}

// itsItems is what a for_each waits for. The items themselves say what they wait for, so summaries leave it out.
const itsItems = "its items"

// waitsFor says what a step waits for; "" when it does not wait.
func waitsFor(s *gatehouse.Step, actions []*gatehouse.Action) string {
	switch {
	case s.Status == gatehouse.StepWaitingApproval:
		for _, a := range actions {
			if a.ID == s.ActionID {
				return whom(a)
			}
		}
		return "an action"
	case s.Status != gatehouse.StepWaiting && s.Status != gatehouse.StepRetrying:
		return ""
	case s.Status == gatehouse.StepRetrying:
		return "its next attempt" + dueText(s, "at")
	case s.Event != "":
		return "the event " + s.Event + dueText(s, "until")
	case s.ChildRun != "":
		return "the run " + short(s.ChildRun)
	case s.DueAt != nil:
		return "its time" + dueText(s, "at")
	}
	return itsItems
}

// runWait is a waiting step and what it waits for.
type runWait struct {
	step *gatehouse.Step
	text string
}

// shownWaits is how many waiting steps the head of a run's page lists.
const shownWaits = 5

func waitsOf(d *gatehouse.RunDetail) []runWait {
	var list []runWait
	for _, s := range d.Steps {
		if text := waitsFor(s, d.Actions); text != "" && text != itsItems {
			list = append(list, runWait{s, text})
		}
	}
	return list
}

// dueText returns the end of a wait as the rest of a sentence. word is "at", or "until" if the wait can
// end earlier.
func dueText(s *gatehouse.Step, word string) string {
	if s.DueAt == nil {
		return ""
	}
	return ", " + word + " " + clock(*s.DueAt)
}

// took is the duration of a run so far.
func (v *view) took(r *gatehouse.Run) string {
	end := v.now
	if r.FinishedAt != nil {
		end = *r.FinishedAt
	}
	from := r.CreatedAt
	if r.StartedAt != nil {
		from = *r.StartedAt
	}
	return span(max(end.Sub(from), 0))
}

func workflowPath(name string) string { return "/workflows/" + url.PathEscape(name) }

func versionPath(name string, version int) string {
	return workflowPath(name) + "?version=" + strconv.Itoa(version)
}

// The size limits for displayed inputs and outputs, in bytes: for each one, and for all on a page.
const (
	maxRawValue = 16 << 10
	maxRaw      = 512 << 10
)

// rawBudget counts the bytes that a page may still show.
type rawBudget struct{ left int }

// cut returns the part of a value that is shown, and the number of omitted bytes.
func (b *rawBudget) cut(j gatehouse.JSON) (text string, more int) {
	text = string(j)
	if len(j) <= maxRawValue {
		text = pretty(j)
	}
	if room := min(maxRawValue, b.left); len(text) > room {
		more = len(text) - room
		text = strings.ToValidUTF8(text[:room], "")
	}
	b.left -= len(text)
	return text, more
}

// maxRows limits the rows of a page.
const maxRows = 500

func firstSteps(steps []*gatehouse.Step) []*gatehouse.Step {
	return steps[:min(len(steps), maxRows)]
}

// totals adds up the costs in each currency.
func totals(costs []*runline.ModelCost) []*runline.ModelCost {
	var list []*runline.ModelCost
	for _, c := range costs {
		at := -1
		for i := range list {
			if list[i].Currency == c.Currency {
				at = i
			}
		}
		if at < 0 {
			list = append(list, &runline.ModelCost{Currency: c.Currency, Cost: "0"})
			at = len(list) - 1
		}
		t := list[at]
		t.Calls += c.Calls
		t.InputTokens += c.InputTokens
		t.OutputTokens += c.OutputTokens
		t.Cost = t.Cost.Add(c.Cost)
	}
	return list
}

// hasRaw reports whether a step has details to unfold.
func hasRaw(s *gatehouse.Step) bool { return s.Item != "" || s.Input != "" || s.Output != "" }

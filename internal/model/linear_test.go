package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/gatehouse-dev/gatehouse"
)

// The sequential model of one action's decision, for porcupine: the answers of
// a single gate that does one thing at a time.

// persons is the number of people who decide; some of them have two identities.
const persons = 5

// request is one call on one action.
type request struct {
	action   int
	verb     string // approve, reject, cancel, revise or read
	client   int
	short    bool // the idempotent form
	required int
	// mortal: the action may expire at any moment. The first decide or cancel
	// that is told so reveals it.
	mortal bool
}

// maybe is the output of a call whose client gave up: it may have had its
// effect, then or later, or none.
const maybe = "maybe"

// decision is the state of one action.
type decision struct {
	status gatehouse.Status
	votes  [persons]ballots
}

type ballots struct {
	decision gatehouse.DecisionKind // "" for none
	client   int
}

func person(client int) int { return client % persons }

func (d decision) approvals() (n int) {
	for _, v := range d.votes {
		if v.decision == gatehouse.Approve {
			n++
		}
	}
	return n
}

// step returns the answer of a call in a state, and the next state.
func (d decision) step(r request) (answer string, next decision) {
	switch r.verb {
	case "read":
		return fmt.Sprintf("%s %d", d.status, d.approvals()), d
	case "cancel":
		return d.withdraw(canceled, "canceled", "too_late")
	case "revise":
		if d.status == expired {
			return "expired", d
		}
		return d.withdraw(superseded, "revised", "already_decided")
	}
	kind, to := gatehouse.Approve, approved
	if r.verb == "reject" {
		kind, to = gatehouse.Reject, rejected
	}
	own := d.votes[person(r.client)]
	if d.status != pending {
		return d.standing(r, kind, to, own), d
	}
	switch {
	case own.decision == kind && own.client == r.client:
		return "vote_recorded", d
	case own.decision == gatehouse.Reject || own.decision == kind:
		return "already_voted", d
	}
	next = d
	next.votes[person(r.client)] = ballots{kind, r.client}
	if kind == gatehouse.Approve && next.approvals() < r.required {
		return "vote_recorded", next
	}
	next.status = to
	return "decided", next
}

func (d decision) withdraw(to gatehouse.Status, done, not string) (string, decision) {
	switch {
	case d.status == pending:
		d.status = to
		return done, d
	case d.status == to && to == canceled:
		return "already_canceled", d
	}
	return not, d
}

// standing is the answer when a decision already stands.
func (d decision) standing(r request, kind gatehouse.DecisionKind, to gatehouse.Status, own ballots) string {
	switch {
	case d.status == to && (r.short || own.decision == kind):
		return "already_" + string(kind)
	case d.status == expired:
		return "expired"
	case r.short:
		return "not_awaiting_approval"
	}
	return "already_decided"
}

// machine is the model for porcupine, with one partition per action.
func machine() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			by := map[int][]porcupine.Operation{}
			for _, o := range history {
				n := o.Input.(request).action
				by[n] = append(by[n], o)
			}
			out := make([][]porcupine.Operation, 0, len(by))
			for _, part := range by {
				out = append(out, part)
			}
			return out
		},
		Init: func() any { return decision{status: pending} },
		Step: func(state, input, output any) (bool, any) {
			d, r, got := state.(decision), input.(request), output.(string)
			answer, next := d.step(r)
			if got == maybe || got == answer {
				return true, next
			}
			if !r.mortal || d.status != pending {
				return false, state
			}
			d.status = expired
			answer, next = d.step(r)
			if r.verb == "read" || r.verb == "revise" {
				// A read uses the clock of its own snapshot: a decision that
				// was in progress at the expiry may still come after it.
				next = state.(decision)
			}
			return got == answer, next
		},
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%+v -> %v", input, output)
		},
	}
}

// told counts the answers of a history by their meaning for a client.
func told(history []porcupine.Operation) map[string]int {
	out := map[string]int{}
	for _, o := range history {
		answer := o.Output.(string)
		if o.Input.(request).verb == "read" && answer != maybe {
			answer = "read"
		}
		out[answer]++
	}
	return out
}

// succeeded counts the calls that got what they asked for.
func succeeded(words map[string]int) (n int) {
	for word, count := range words {
		if slices.Contains([]string{"read", "decided", "vote_recorded", "canceled", "already_canceled", "revised"}, word) ||
			strings.HasPrefix(word, "already_a") || strings.HasPrefix(word, "already_r") {
			n += count
		}
	}
	return n
}

package invariants

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// pushData is the data that a push's leaves have in addition to the action's move.
type pushData struct {
	Push       string               `json:"push"`
	From       gatehouse.PushStatus `json:"push_from"`
	To         gatehouse.PushStatus `json:"push_to"`
	Attempt    int                  `json:"attempt"`
	Generation int                  `json:"generation"`
	Receipt    string               `json:"receipt"`
	Code       string               `json:"code"`
}

// history is the log's account of one action.
type history struct {
	status             gatehouse.Status
	decisions          int
	push               gatehouse.PushStatus
	intents            map[[2]int]bool // attempt and generation of each push.sent
	highest            int             // highest generation so far
	receiptAt          map[string]int  // by receipt: the highest generation when a leaf named it
	settledWithoutCall bool            // the push was settled without a call
	marked             int             // how often a restored store marked the push as sent
}

// replay reads an action's entries in order and checks rules 11, 12, 14 and 15.
// It skips the entries of review links and step-ups: their subject is not the action, and they have no transition.
func (f *actionRows) replay(say sayer) *history {
	h := &history{intents: map[[2]int]bool{}, receiptAt: map[string]int{}}
	for _, l := range f.leaves {
		if l.From == "" && l.To == "" && l.Subject != "" && l.Subject != f.id {
			continue
		}
		from, to := gatehouse.Status(l.From), gatehouse.Status(l.To)
		if from != h.status {
			say(14, "the entry %s begins at %q, but before it the action is %q", l.Type, from, h.status)
		}
		if from != to && !reachable(from, to, gatehouse.Statuses(), gatehouse.Status.CanMove) {
			say(11, "the entry %s moves the action from %q to %q", l.Type, from, to)
		}
		if from == gatehouse.StatusPending && to != gatehouse.StatusPending {
			h.decisions++
		}
		h.status = to
		if strings.HasPrefix(l.Type, "push.") {
			h.addPush(l, say)
		}
	}
	return h
}

func (h *history) addPush(l leaf, say sayer) {
	var d pushData
	if l.Data != "" && json.Unmarshal([]byte(l.Data), &d) != nil {
		say(14, "the entry %s cannot be read", l.Type)
		return
	}
	if d.From != d.To && d.From != "" && !reachable(d.From, d.To, gatehouse.PushStatuses(), gatehouse.PushStatus.CanMove) {
		say(11, "the entry %s moves push %s from %q to %q", l.Type, d.Push, d.From, d.To)
	}
	switch {
	case l.Type == "push.replayed":
		h.push = gatehouse.PushQueued
	case l.Type == "push.resolved":
		h.push = "" // the entry describes only the action
	case d.To != "":
		h.push = d.To
	}
	if d.Generation > 0 && l.Type != "push.late" {
		if d.Generation < h.highest {
			say(12, "the entry %s is of generation %d, after generation %d", l.Type, d.Generation, h.highest)
		}
		h.highest = max(h.highest, d.Generation)
	}
	if l.Type == "push.sent" {
		intent := [2]int{d.Attempt, d.Generation}
		if h.intents[intent] {
			say(15, "two intents for attempt %d", d.Attempt)
		}
		h.intents[intent] = true
	}
	if l.Type == "push.picked" && d.Code == gatehouse.ErrorRestored {
		h.marked++
	} else if l.Type == "push.picked" {
		h.settledWithoutCall = true
	}
	if d.Receipt != "" {
		h.receiptAt[d.Receipt] = h.highest
	}
}

// checkHistory compares the tables with the log: rules 1, 12, 14 and 15.
func (f *actionRows) checkHistory(h *history, say sayer) {
	if h.decisions > 1 {
		say(1, "the log has %d decisions", h.decisions)
	}
	if h.status != f.status {
		say(14, "the action is %s, but the log leads to %q", f.status, h.status)
	}
	for _, p := range f.pushes {
		// Leasing a push writes no entry; the log shows the lease only when
		// a call follows.
		leased := h.push == gatehouse.PushQueued && p.status == gatehouse.PushPicking
		if h.push != "" && h.push != p.status && p.status != gatehouse.PushCanceled && !leased {
			say(14, "push %s is %s, but the log leads to %s", p.id, p.status, h.push)
		}
		// Some attempts have no intent: a settlement without a call, a failed check
		// of the target before any call, and a call that a restored store may have
		// forgotten.
		checks := map[int]bool{}
		for _, c := range f.receipts {
			if c.source == "check" && !c.late {
				checks[c.attempt] = true
			}
		}
		n := len(h.intents) + len(checks) + h.marked
		if p.attempts != n && (p.attempts != 1 || n != 0 || !h.settledWithoutCall) {
			say(15, "push %s counts %d attempts, but it has %d intents, %d failed checks and %d marks of a restore",
				p.id, p.attempts, len(h.intents), len(checks), h.marked)
		}
	}
	for _, c := range f.receipts {
		if c.source == "call" && !h.intents[[2]int{c.attempt, c.generation}] {
			say(15, "receipt %s is of a call (attempt %d, generation %d) without an intent", c.id, c.attempt, c.generation)
		}
		if at, named := h.receiptAt[c.id]; named && !c.late && at > c.generation {
			say(12, "receipt %s was written under generation %d, when %d held the lease", c.id, c.generation, at)
		}
	}
}

// reachable reports whether the transition table has a path of one or two moves from
// one state to another. A leaf may cover two moves of one transaction.
func reachable[S ~string](from, to S, all []S, can func(S, S) bool) bool {
	return can(from, to) || slices.ContainsFunc(all, func(via S) bool { return can(from, via) && can(via, to) })
}

package proof

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// pushData is what a push's leaves say in addition to the action's move.
type pushData struct {
	Push       string               `json:"push"`
	From       gatehouse.PushStatus `json:"push_from"`
	To         gatehouse.PushStatus `json:"push_to"`
	Attempt    int                  `json:"attempt"`
	Generation int                  `json:"generation"`
	Receipt    string               `json:"receipt"`
}

// history is the log's account of one action.
type history struct {
	status    gatehouse.Status
	replays   int // by people
	terminal  int
	push      gatehouse.PushStatus
	intents   map[[2]int]bool // attempt and generation of each push.sent
	highest   int             // highest generation so far
	receiptAt map[string]int  // highest generation at the time a receipt was named
}

// checkLog checks invariants 1, 11, 12, 14 and 15: the log has no gap and
// verifies, its moves are in the transition tables, replaying them gives the
// state of the tables, and every call has its intent in the log.
func (w *world) checkLog(t *testing.T, db *look, actions map[string]*gatehouse.Action) {
	t.Helper()
	if out, err := w.cli(w.admin, "audit", "verify", "--json"); err != nil {
		t.Errorf("invariant 14: %v\n%s", err, out)
	}
	if n := count(t, db, db.gaps()); n > 0 {
		t.Errorf("invariant 14: the log of %d tenants has gaps", n)
	}
	past := replay(t, db)
	for id, a := range actions {
		h := past[id]
		if h == nil || h.status != a.Status {
			t.Errorf("invariant 14: %s is %s, but the log says otherwise: %+v", id, a.Status, h)
			continue
		}
		if h.terminal > 1 {
			t.Errorf("invariant 1: %s was decided %d times", id, h.terminal)
		}
		if a.Push != nil && h.push != "" && h.push != a.Push.Status && a.Push.Status != gatehouse.PushCanceled {
			t.Errorf("invariant 14: the push of %s is %s, but the log says %s", id, a.Push.Status, h.push)
		}
	}
	if len(past) != len(actions) {
		t.Errorf("invariant 14: the log has %d actions, the list shows %d", len(past), len(actions))
	}
	checkReceipts(t, db, past)
	calls, byKey := make(map[string]int), make(map[string]*gatehouse.Action)
	for _, c := range w.target.log() {
		calls[c.key]++
	}
	for _, a := range actions {
		byKey[sentKey(a.Tenant, a.IdempotencyKey)] = a
	}
	for key, n := range calls {
		a := byKey[key]
		if a == nil || past[a.ID] == nil {
			continue // already reported
		}
		h := past[a.ID]
		if n > len(h.intents) {
			t.Errorf("invariant 15: %s was called %d times on %d recorded intents", a.ID, n, len(h.intents))
		}
		if a.Operation == "once" && n > 1+h.replays {
			t.Errorf("invariant 15: class C was called %d times for %s, which people replayed %d times", n, a.ID, h.replays)
		}
	}
}

// replay reads the log in order and follows every action.
func replay(t *testing.T, db *look) map[string]*history {
	t.Helper()
	past := make(map[string]*history)
	rows, err := db.Query(db.inOrder())
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var body string
		if err := rows.Scan(&body); err != nil {
			t.Fatal(err)
		}
		if l := decodeLeaf(t, body); l.ActionID != "" {
			h := past[l.ActionID]
			if h == nil {
				h = &history{intents: make(map[[2]int]bool), receiptAt: make(map[string]int)}
				past[l.ActionID] = h
			}
			h.add(t, l)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return past
}

func (h *history) add(t *testing.T, l *gatehouse.Leaf) {
	t.Helper()
	from, to := gatehouse.Status(l.From), gatehouse.Status(l.To)
	if from != h.status {
		t.Errorf("invariant 14: %s of %s begins at %q, but the log has it at %q", l.Type, l.ActionID, from, h.status)
	}
	if from != to && !reachable(from, to, gatehouse.Statuses(), gatehouse.Status.CanMove) {
		t.Errorf("invariant 11: %s moved %s from %q to %q", l.Type, l.ActionID, from, to)
	}
	if from == gatehouse.StatusPending && to != gatehouse.StatusPending {
		h.terminal++
	}
	h.status = to
	if !strings.HasPrefix(l.Type, "push.") {
		return
	}
	var d pushData
	if l.Data != "" {
		if err := json.Unmarshal([]byte(l.Data), &d); err != nil {
			t.Fatal(err)
		}
	}
	if d.From != d.To && d.From != "" && !reachable(d.From, d.To, gatehouse.PushStatuses(), gatehouse.PushStatus.CanMove) {
		t.Errorf("invariant 11: %s moved push %s from %q to %q", l.Type, d.Push, d.From, d.To)
	}
	if d.To != "" {
		h.push = d.To
	}
	if l.Type == "push.replayed" {
		h.push = gatehouse.PushQueued
		h.replays++
	}
	if l.Type == "push.resolved" {
		h.push = ""
	}
	if d.Generation > 0 && l.Type != "push.late" {
		if d.Generation < h.highest {
			t.Errorf("invariant 12: %s of %s under generation %d after generation %d", l.Type, l.ActionID, d.Generation,
				h.highest)
		}
		h.highest = max(h.highest, d.Generation)
	}
	if l.Type == "push.sent" {
		intent := [2]int{d.Attempt, d.Generation}
		if h.intents[intent] {
			t.Errorf("invariant 15: two intents of %s for attempt %d", l.ActionID, d.Attempt)
		}
		h.intents[intent] = true
	}
	if d.Receipt != "" {
		h.receiptAt[d.Receipt] = h.highest
	}
}

// reachable reports whether the transition table leads from one state to another
// in one or two moves: a leaf may cover two moves of one transaction.
func reachable[S ~string](from, to S, all []S, can func(S, S) bool) bool {
	if can(from, to) {
		return true
	}
	for _, via := range all {
		if can(from, via) && can(via, to) {
			return true
		}
	}
	return false
}

// checkReceipts checks invariants 12 and 15: a receipt that changed state was
// written under the newest lease, and a receipt of a call has its intent.
func checkReceipts(t *testing.T, db *look, past map[string]*history) {
	t.Helper()
	rows, err := db.Query(`SELECT id, action_id, attempt, generation, late, source FROM receipt`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, action, source string
		var attempt, generation int
		var late bool
		if err := rows.Scan(&id, &action, &attempt, &generation, &late, &source); err != nil {
			t.Fatal(err)
		}
		h := past[action]
		if h == nil {
			t.Errorf("invariant 14: the receipt %s belongs to nothing in the log", id)
			continue
		}
		if source == "call" && !h.intents[[2]int{attempt, generation}] {
			t.Errorf("invariant 15: the receipt %s of %s is of a call (attempt %d, generation %d) without an intent", id, action,
				attempt, generation)
		}
		if at, named := h.receiptAt[id]; named && !late && at > generation {
			t.Errorf("invariant 12: the receipt %s was written under generation %d, when %d held the lease", id, generation, at)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

package gatehouse_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// The transition tables of the design, stated a second time: "from: to to to".
const (
	actionDesign = `
new:        pending approved denied
pending:    approved rejected expired canceled superseded
approved:   canceled pushing failed superseded
pushing:    applied failed unknown
unknown:    applied failed approved
failed:     approved
applied:    reversed
rejected:
denied:
expired:
canceled:
superseded:
reversed:`
	approvalDesign = `
new:       requested
requested: approved rejected expired canceled
approved:
rejected:
expired:
canceled:`
	pushDesign = `
new:      queued
queued:   picking canceled
picking:  sent queued failed
sent:     applied failed unknown queued
failed:   queued
unknown:  applied failed queued
applied:
canceled:`
)

// machine is one state machine: its table in the design, and in the code.
type machine struct {
	edges   map[string][]string
	canMove func(from, to string) bool
}

func machines(t *testing.T) map[string]machine {
	t.Helper()
	return map[string]machine{
		"action": {readDesign(t, actionDesign), func(from, to string) bool {
			return gatehouse.Status(from).CanMove(gatehouse.Status(to))
		}},
		"approval": {readDesign(t, approvalDesign), func(from, to string) bool {
			return gatehouse.ApprovalStatus(from).CanMove(gatehouse.ApprovalStatus(to))
		}},
		"push": {readDesign(t, pushDesign), func(from, to string) bool {
			return gatehouse.PushStatus(from).CanMove(gatehouse.PushStatus(to))
		}},
	}
}

func readDesign(t *testing.T, text string) map[string][]string {
	t.Helper()
	edges := map[string][]string{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			t.Fatalf("bad line %q", line)
		}
		if from == "new" {
			from = ""
		}
		edges[from] = strings.Fields(to)
	}
	return edges
}

func (m machine) has(from, to string) bool {
	for _, s := range m.edges[from] {
		if s == to {
			return true
		}
	}
	return false
}

// names lists the states, the state before creation and one that does not exist.
func (m machine) names() []string {
	names := []string{"nonsense"}
	for s := range m.edges {
		names = append(names, s)
	}
	return names
}

func TestTransitionTables(t *testing.T) {
	t.Parallel()
	for name, m := range machines(t) {
		for _, from := range m.names() {
			for _, to := range m.names() {
				if got := m.canMove(from, to); got != m.has(from, to) {
					t.Errorf("%s: %q -> %q is %v in the code", name, from, to, got)
				}
			}
		}
	}
}

func TestEveryStateIsReachable(t *testing.T) {
	t.Parallel()
	for name, m := range machines(t) {
		reached := map[string]bool{"": true}
		for queue := []string{""}; len(queue) > 0; queue = queue[1:] {
			for _, to := range m.names() {
				if m.canMove(queue[0], to) && !reached[to] {
					reached[to] = true
					queue = append(queue, to)
				}
			}
		}
		for s := range m.edges {
			if !reached[s] {
				t.Errorf("%s: %q cannot be reached", name, s)
			}
		}
		if reached["nonsense"] {
			t.Errorf("%s: a state that does not exist can be reached", name)
		}
	}
}

func TestStatusPredicates(t *testing.T) {
	t.Parallel()
	finished := strings.Fields("applied failed unknown reversed rejected denied expired canceled superseded")
	edges := readDesign(t, actionDesign)
	if len(gatehouse.Statuses()) != len(edges)-1 {
		t.Errorf("Statuses lists %d of %d states", len(gatehouse.Statuses()), len(edges)-1)
	}
	for _, s := range gatehouse.Statuses() {
		if _, ok := edges[string(s)]; !ok {
			t.Errorf("Statuses has %q", s)
		}
		if s.Finished() != slices.Contains(finished, string(s)) || s.Decided() != (s != "pending") {
			t.Errorf("%s: finished %v, decided %v", s, s.Finished(), s.Decided())
		}
	}
	push := readDesign(t, pushDesign)
	if len(gatehouse.PushStatuses()) != len(push)-1 {
		t.Errorf("PushStatuses lists %d of %d states", len(gatehouse.PushStatuses()), len(push)-1)
	}
	for _, s := range gatehouse.PushStatuses() {
		if _, ok := push[string(s)]; !ok {
			t.Errorf("PushStatuses has %q", s)
		}
	}
}

// TestDesign: in the design, only a pending, failed or unknown action, or a new one by policy, is approved, and
// only an approved one is pushed. TestTransitionTables compares the code with the design.
func TestDesign(t *testing.T) {
	t.Parallel()
	action := readDesign(t, actionDesign)
	for to, want := range map[string]string{
		"pending": "", "approved": " failed pending unknown", "pushing": "approved", "unknown": "pushing",
		"applied": "pushing unknown",
	} {
		var from []string
		for s, next := range action {
			if slices.Contains(next, to) {
				from = append(from, s)
			}
		}
		slices.Sort(from)
		if got := strings.Join(from, " "); got != want {
			t.Errorf("%s follows %q, want %q", to, got, want)
		}
	}
}

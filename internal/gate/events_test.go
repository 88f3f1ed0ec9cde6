package gate_test

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// number numbers the entries of the log.
func (w *world) number() {
	w.t.Helper()
	if _, err := (&audit.Sequencer{Store: w.store, Logger: slog.New(slog.DiscardHandler)}).Once(
		w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// heard returns the types of all events that a caller reads, from the first one.
func (w *world) heard(who context.Context, f gatehouse.EventFilter) (types []string) {
	w.t.Helper()
	first := int64(-1)
	f.After = &first
	for {
		page, err := w.gate.ReadEvents(who, f)
		must(w.t, err)
		for _, e := range page.Events {
			types = append(types, e.Type)
		}
		if page.Last == *f.After {
			return types
		}
		f.After = &page.Last
	}
}

// TestEventsBeyondTheLog: an index beyond the end of the log, as after a restore, is refused.
func TestEventsBeyondTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	auditor := w.principal("aud", gatehouse.KindPerson, gatehouse.RoleAuditor)
	w.number()
	page, err := w.gate.ReadEvents(auditor, gatehouse.EventFilter{})
	must(t, err)
	for after, refused := range map[int64]bool{-1: false, page.Last: false, page.Last + 1: true, math.MaxInt64 - 1: true} {
		_, err := w.gate.ReadEvents(auditor, gatehouse.EventFilter{After: &after})
		if refused != (gatehouse.CodeOf(err) == gatehouse.CodeInvalid) || !refused && err != nil {
			t.Errorf("after %d of %d: %v", after, page.Last, err)
		}
	}
}

// TestEventsAreReadByRights: an auditor reads all events, a person those of the
// actions, and an agent those of its own actions, also if it is an auditor.
func TestEventsAreReadByRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	other := w.principal("other", gatehouse.KindAgent, gatehouse.RoleProposer)
	auditor := w.principal("aud", gatehouse.KindPerson, gatehouse.RoleAuditor)
	worker := w.principal("work", gatehouse.KindService, gatehouse.RoleWorker)
	watcher := w.principal("watcher", gatehouse.KindAgent, gatehouse.RoleAuditor, gatehouse.RoleProposer)
	a := w.propose(bot, nil)
	if _, err := w.gate.Decide(ana, a.ID, approve(a)); err != nil {
		t.Fatal(err)
	}
	w.propose(other, nil)
	w.number()
	all := w.heard(auditor, gatehouse.EventFilter{})
	if !slices.Contains(all, "principal.created") || !slices.Contains(all, "policy.applied") {
		t.Errorf("an auditor reads %v", all)
	}
	for who, c := range map[string]struct {
		ctx  context.Context
		want []string
	}{
		"a person":             {ana, []string{"hitl.proposed", "hitl.approved", "hitl.proposed"}},
		"an agent":             {bot, []string{"hitl.proposed", "hitl.approved"}},
		"another":              {other, []string{"hitl.proposed"}},
		"a worker":             {worker, nil},
		"an agent that audits": {watcher, nil},
	} {
		if got := w.heard(c.ctx, gatehouse.EventFilter{}); !slices.Equal(got, c.want) {
			t.Errorf("%s reads %v", who, got)
		}
	}
	if got := w.heard(auditor, gatehouse.EventFilter{Types: []string{"hitl.app*", "none"}}); !slices.Equal(got,
		[]string{"hitl.approved"}) {
		t.Errorf("of some types: %v", got)
	}
	if got := w.heard(auditor, gatehouse.EventFilter{ActionID: a.ID}); !slices.Equal(got,
		[]string{"hitl.proposed", "hitl.approved"}) {
		t.Errorf("of one action: %v", got)
	}

	// A read without After returns no earlier events. A read that waits returns the next one.
	page, err := w.gate.ReadEvents(ana, gatehouse.EventFilter{})
	if err != nil || len(page.Events) != 0 || page.Last != int64(len(all))-1 {
		t.Fatalf("from now on: %+v, %v", page, err)
	}
	done := make(chan *gatehouse.EventPage, 1)
	go func() {
		got, err := w.gate.ReadEvents(ana, gatehouse.EventFilter{After: &page.Last, Wait: 30 * time.Second})
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	w.propose(bot, nil)
	w.number()
	got := <-done
	if len(got.Events) != 1 || got.Events[0].Index != page.Last+1 ||
		!strings.Contains(string(got.Events[0].Body), `"specversion":"1.0"`) {
		t.Errorf("waited for %+v", got)
	}
}

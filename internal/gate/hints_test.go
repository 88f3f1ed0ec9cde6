package gate_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// told records the topics of hints.
type told struct {
	wake.Hub
	mu     sync.Mutex
	topics map[string]int
}

func (h *told) Notify(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topics[topic]++
	h.Hub.Notify(topic)
}

// A push that is due now causes a hint. For a push whose hold is longer than the
// dispatcher's sleep there is none: the dispatcher finds it in the store.
func TestOnlyPushesThatAreDueSoonAreHintedAt(t *testing.T) {
	t.Parallel()
	for hold, want := range map[time.Duration]int{0: 1, 10 * time.Second: 0} {
		w := newWorld(t, "")
		hints := &told{topics: make(map[string]int)}
		w.gate = gate.New(w.store, w.targets, hints, gate.Config{Hold: &hold}, slog.New(slog.DiscardHandler))
		bot, ana := w.agent(), w.person("ana")
		a := w.propose(bot, nil)
		if ans, err := w.gate.Decide(ana, a.ID, approve(a)); err != nil || ans.Code != gatehouse.Decided {
			t.Fatalf("%+v, %v", ans, err)
		}
		if got := hints.topics[usecase.TopicPush]; got != want {
			t.Errorf("hold %s: %d hints about pushes, want %d", hold, got, want)
		}
		if hints.topics[a.ID] == 0 || hints.topics[usecase.TopicAudit] == 0 {
			t.Errorf("hold %s: no hints about the action and the log: %v", hold, hints.topics)
		}
	}
}

// TestReplayIsHinted: the hint of a replayed push differs from that of the new push, so that a hand-off to one replica
// does not drop it as a duplicate.
func TestReplayIsHinted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	hints := &told{topics: make(map[string]int)}
	w.gate = gate.New(w.store, w.targets, hints, gate.Config{Hold: new(time.Duration)}, slog.New(slog.DiscardHandler))
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	_, err := w.gate.Decide(ana, a.ID, approve(a))
	must(t, err)
	if a, err = w.gate.FindAction(w.admin, a.ID); err != nil {
		t.Fatal(err)
	}
	w.dead(a, gatehouse.PushFailed, "http_503", "no")
	answer, err := w.gate.ReplayDeadLetters(w.admin, gatehouse.ReplayRequest{IDs: []string{a.Push.ID}})
	must(t, err)
	topic := usecase.TopicPush + ":" + a.Push.ID
	if answer.Replayed != 1 || hints.topics[topic+":0"] != 1 || hints.topics[topic+":1"] != 1 {
		t.Errorf("replayed %+v, hints %v", answer, hints.topics)
	}
}

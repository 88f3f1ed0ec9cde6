package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// post is a personal channel that reaches everybody. Its messages are queued,
// and never sent.
type post struct{}

func (post) Kind() string                      { return "post" }
func (post) Trait() notify.Trait               { return notify.Trait{Personal: true} }
func (post) Reaches(*gatehouse.Principal) bool { return true }
func (post) Send(context.Context, *notify.Message) (notify.Sent, error) {
	return notify.Sent{}, errors.New("the post is not sent")
}

// board is a shared place whose cards are kept up to date.
type board struct {
	mu    sync.Mutex
	cards map[string]string // what each shows, by action
}

func (*board) Kind() string                      { return "board" }
func (*board) Trait() notify.Trait               { return notify.Trait{} }
func (*board) Reaches(*gatehouse.Principal) bool { return false }
func (*board) Decides() bool                     { return false }
func (*board) Gone(error) bool                   { return false }

// Shown is the question's state, or its outcome.
func (*board) Shown(m *notify.Message) string {
	switch m.Kind {
	case gatehouse.NotifyAsked:
		return fmt.Sprintf("requested %d/%d", m.Action.Approval.Approvals(), m.Action.Approval.Required)
	case gatehouse.NotifyDecided:
		return strings.TrimPrefix(m.Event, "hitl.")
	}
	return string(m.Kind)
}

func (b *board) Send(_ context.Context, m *notify.Message) (notify.Sent, error) {
	if m.Kind == gatehouse.NotifyAsked {
		return notify.Sent{Delivered: true, Ref: m.Action.ID, Shown: b.Shown(m)},
			b.Rewrite(context.Background(), m.Action.ID, m)
	}
	return notify.Sent{Delivered: true}, nil
}

func (b *board) Rewrite(_ context.Context, ref string, m *notify.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cards[ref] = b.Shown(m)
	return nil
}

func newTeller(s *side) *notify.Notifier {
	tenants := []string{s.tenant}
	return notify.New(s.store, wake.Spread(&wake.Hub{}), notify.Config{
		Channels: []*notify.Configured{
			{Name: "post", Tenants: tenants, Channel: post{}}, {Name: "board", Tenants: tenants, Channel: s.board},
		},
		DigestAfter: 10_000, Owner: "teller",
	}, nil, slog.New(slog.DiscardHandler))
}

// notify queues the messages about everything that has happened, sends those to
// the board, and brings its cards up to date.
func (m *match) notify() {
	m.play("notify", func() string { m.model.tell(); return "told" }, func(s *side) string {
		s.notify()
		return "told"
	})
}

func (s *side) notify() {
	ctx := context.Background()
	sequencer := &audit.Sequencer{Store: s.store}
	for n := 1; n > 0; {
		var err error
		n, err = sequencer.Once(ctx)
		s.must(err)
	}
	for _, round := range []func() (bool, error){
		func() (bool, error) { return s.teller.FanOut(ctx, s.tenant) },
		func() (bool, error) { return s.teller.Deliver(ctx, "board") },
		func() (bool, error) { return s.teller.WriteCards(ctx, "board") },
	} {
		for more := true; more; {
			var err error
			more, err = round()
			s.must(err)
		}
	}
}

// attribute notes who has caused the leaves of a step.
func (m *model) attribute() {
	for _, a := range m.actions {
		for len(a.actors) < len(a.leaves) {
			a.actors = append(a.actors, m.actor)
		}
	}
}

// tell makes the messages about what happened since the last time. Who is told
// follows from the present state.
func (m *model) tell() {
	for _, a := range m.actions {
		for i := a.heard; i < len(a.leaves); i++ {
			m.tellOf(a, a.leaves[i], a.actors[i])
		}
		a.heard = len(a.leaves)
	}
}

func (m *model) tellOf(a *action, leaf, actor string) {
	var kind gatehouse.NotificationKind
	var to func(*principal) bool
	status, _ := m.shown(a)
	switch leaf {
	case "hitl.proposed":
		if status != pending {
			return
		}
		kind, a.carded = gatehouse.NotifyAsked, true
		to = func(w *principal) bool { return a.refusal(w) == "" && a.voteOf(w.person) == nil }
	case "hitl.approved", "hitl.rejected", "hitl.canceled", "hitl.expired":
		kind = gatehouse.NotifyDecided
		if leaf == "hitl.expired" {
			kind = gatehouse.NotifyExpired
		}
		concerned := []string{a.by, a.behalf, m.people[a.by].sponsor}
		to = func(w *principal) bool { return slices.Contains(concerned, w.name) }
	case "push.failed", "push.unknown":
		p := a.push
		if p.status != gatehouse.PushUnknown && (p.status != gatehouse.PushFailed || !p.closed.IsZero()) {
			return
		}
		kind = gatehouse.NotifyDeadLetter
		if leaf == "push.unknown" {
			kind = gatehouse.NotifyUnknown
		}
		to = func(w *principal) bool { return w.has(gatehouse.RoleOperator) }
	default:
		return
	}
	m.told = append(m.told, fmt.Sprintf("#%d %s board", a.n, kind))
	self := ""
	if w := m.people[actor]; w != nil {
		self = w.person
	}
	for _, w := range m.people {
		if w.kind == gatehouse.KindPerson && !w.disabled && w.person != self && to(w) {
			m.told = append(m.told, fmt.Sprintf("#%d %s %s", a.n, kind, w.name))
		}
	}
}

// compareMessages compares the messages of a sequence with those that the
// routes and the people's rights ask for, and the cards with their actions.
func (m *match) compareMessages() {
	// When two outcomes of one action meet at its card, the second one waits, so the clock moves on.
	m.model.now = m.clock.advance(time.Minute)
	m.notify()
	want := slices.Sorted(slices.Values(m.model.told))
	for _, s := range m.sides {
		if d := cmp.Diff(want, s.messages()); d != "" {
			m.Errorf("%s: 17: the messages (-model +store):\n%s", s.name, d)
		}
		for i, a := range m.model.actions {
			shows, posted := s.board.cards[s.ids[i]]
			if posted != a.carded {
				m.Errorf("%s: #%d has a card: %t, the model says %t", s.name, i, posted, a.carded)
			}
			if status, _ := m.model.shown(a); posted && shows != a.card() && (status != expired || a.status != pending) {
				m.Errorf("%s: #%d: its card shows %q, it is %q", s.name, i, shows, a.card())
			}
		}
	}
}

// card is what the board must show of an action.
func (a *action) card() string {
	if a.approval == gatehouse.ApprovalRequested {
		return fmt.Sprintf("%s %d/%d", a.approval, a.approvals(), a.required)
	}
	return string(a.approval)
}

// messages lists all messages of the tenant. Those to the board must have
// arrived.
func (s *side) messages() (list []string) {
	ctx, cursor := context.Background(), ""
	for more := true; more; more = cursor != "" {
		var page gatehouse.Page[*gatehouse.Notification]
		s.must(s.store.View(ctx, s.tenant, func(tx gatehouse.ReadTx) (err error) {
			page, err = tx.ListNotifications(gatehouse.NotificationFilter{Limit: gatehouse.MaxLimit, Cursor: cursor})
			return err
		}))
		for _, n := range page.Items {
			to := n.RecipientName
			if n.Channel == "board" {
				to = n.Channel
				if n.Status != gatehouse.NotificationDelivered {
					s.t.Errorf("%s: %s of %s on the board is %s after %d attempts", s.name, n.Kind, n.ActionID, n.Status, n.Attempts)
				}
			}
			list = append(list, fmt.Sprintf("%s %s %s", s.place(n.ActionID), n.Kind, to))
		}
		cursor = page.NextCursor
	}
	slices.Sort(list)
	return list
}

package notify

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Withdraw cancels a pending action whose proposer no longer waits for it.
type Withdraw func(ctx context.Context, tenant, action, why string) error

// callsBack reports whether proposals of a tenant may have callbacks.
func (n *Notifier) callsBack(tenant string) bool {
	return slices.ContainsFunc(n.config.Channels, func(c *Configured) bool {
		return c.Trait().Callback && slices.Contains(c.Tenants, tenant)
	})
}

// callbackKinds lists the callbacks that an entry causes: the action is decided, the action is
// finished, or a task starts to wait for a new action.
func (l *leaf) callbackKinds() (kinds []gatehouse.NotificationKind) {
	from, to := gatehouse.Status(l.From), gatehouse.Status(l.To)
	if to == "" || l.ActionID == "" || l.ActionID != l.Subject {
		return nil
	}
	if from == "" && !to.Finished() {
		kinds = append(kinds, gatehouse.NotifyHeartbeat)
	}
	if (from == "" || from == gatehouse.StatusPending) && to.Decided() {
		kinds = append(kinds, gatehouse.NotifyCallbackDecided)
	}
	if to.Finished() && (from == "" || !from.Finished()) {
		kinds = append(kinds, gatehouse.NotifyCallbackFinished)
	}
	return kinds
}

// queueCallbacks queues an action's own callbacks.
func (s *fanOut) queueCallbacks(t trigger, a *gatehouse.Action) error {
	if a.Callback == nil {
		return nil
	}
	channel := gatehouse.CallbackChannel(a.Callback.Type)
	for _, kind := range t.leaf.callbackKinds() {
		wanted, err := s.causesCallback(t, kind, a)
		if err != nil {
			return err
		}
		if !wanted {
			continue
		}
		row := s.row(kind, a.ID, t.index, channel, "", gatehouse.ObjectJSON(
			gatehouse.Member{Name: "event", Value: gatehouse.StringJSON(t.leaf.Type)},
			gatehouse.Member{Name: "status", Value: gatehouse.StringJSON(t.leaf.To)},
		))
		due := s.now
		switch kind {
		case gatehouse.NotifyHeartbeat:
			due = due.Add(heartbeatInterval(a))
		case gatehouse.NotifyCallbackFinished:
			if s.queuedNow(gatehouse.NotifyCallbackDecided, a) {
				due = due.Add(time.Second) // a later due time orders messages that would be due together
			}
		}
		row.DueAt = &due
		s.rows = append(s.rows, row)
	}
	return nil
}

// causesCallback reports whether an entry causes a callback of a kind.
func (s *fanOut) causesCallback(t trigger, kind gatehouse.NotificationKind, a *gatehouse.Action) (bool, error) {
	if a.Callback.Type != gatehouse.CallbackStepFunctions {
		if kind != gatehouse.NotifyCallbackFinished {
			return kind != gatehouse.NotifyHeartbeat, nil
		}
		// A dead letter that was replayed finishes a second time.
		before, err := s.hasCallback(kind, a)
		return !before, err
	}
	// A task accepts only one answer.
	last := gatehouse.NotifyCallbackDecided
	if a.Callback.On == gatehouse.CallbackOnFinished {
		last = gatehouse.NotifyCallbackFinished
	}
	switch {
	case kind == gatehouse.NotifyHeartbeat:
		over := last == gatehouse.NotifyCallbackDecided && gatehouse.Status(t.leaf.To).Decided()
		return a.Callback.Heartbeat > 0 && !over, nil
	case kind != last, t.leaf.Data.Code == gatehouse.FailureWorkflowGone:
		return false, nil
	}
	if gatehouse.Status(t.leaf.To) == gatehouse.StatusSuperseded && a.Superseded != "" {
		next, err := s.tx.FindAction(a.Superseded)
		if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
			return false, err
		}
		if next != nil && next.Callback != nil && next.Callback.TaskTokenHash == a.Callback.TaskTokenHash {
			return false, nil // the task waits for the revision
		}
	}
	before, err := s.hasCallback(kind, a)
	return !before, err
}

// queuedNow reports whether this round has queued a callback of a kind.
func (s *fanOut) queuedNow(kind gatehouse.NotificationKind, a *gatehouse.Action) bool {
	return slices.ContainsFunc(s.rows, func(n *gatehouse.Notification) bool {
		return n.ActionID == a.ID && n.Kind == kind
	})
}

// hasCallback reports whether a callback of a kind exists already.
func (s *fanOut) hasCallback(kind gatehouse.NotificationKind, a *gatehouse.Action) (bool, error) {
	if s.queuedNow(kind, a) {
		return true, nil
	}
	page, err := s.tx.ListNotifications(gatehouse.NotificationFilter{
		Channel: gatehouse.CallbackChannel(a.Callback.Type), ActionID: a.ID, Limit: gatehouse.MaxLimit,
	})
	return slices.ContainsFunc(page.Items, func(n *gatehouse.Notification) bool { return n.Kind == kind }), err
}

// heartbeatInterval is the interval of the heartbeats: a third of the interval that the waiting state requires.
func heartbeatInterval(a *gatehouse.Action) time.Duration { return a.Callback.Heartbeat.D() / 3 }

// taskWaits reports whether a task still waits for an action's outcome.
func taskWaits(a *gatehouse.Action) bool {
	if a.Callback == nil || a.Callback.Heartbeat == 0 {
		return false
	}
	if a.Callback.On == gatehouse.CallbackOnFinished {
		return !a.Status.Finished()
	}
	return !a.Status.Decided()
}

// queueHeartbeat queues the next heartbeat, after any number of failed ones. It queues none if the task no longer
// waits, or if the failure is final.
func queueHeartbeat(m *gatehouse.Notification, now time.Time, sent Sent, failure error) {
	muted := errMuted("")
	if errors.As(failure, &muted) || failure != nil && refusal(failure).Final {
		return
	}
	next := now.Add(sent.NextHeartbeat)
	m.Status, m.Attempts, m.DueAt, m.FinishedAt = gatehouse.NotificationQueued, 0, &next, nil
}

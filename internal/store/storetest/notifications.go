package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// queuedNote stores a message that is due now.
func (s *suite) queuedNote(tenant string, more ...func(*gatehouse.Notification)) *gatehouse.Notification {
	s.Helper()
	now := s.now()
	n := &gatehouse.Notification{
		ID: "ntf_" + s.next(), Tenant: tenant, CreatedAt: now, Kind: gatehouse.NotifyAsked, ActionID: "act_1",
		Entry:   s.last.Load(),
		Channel: "mail", Recipient: "prn_1", Status: gatehouse.NotificationQueued, DueAt: &now,
		Data: `{"event":"hitl.proposed"}`,
	}
	for _, f := range more {
		f(n)
	}
	s.as(tenant).update(func(tx gatehouse.Tx) error { return tx.InsertNotifications([]*gatehouse.Notification{n}) })
	return n
}

func (s *suite) note(id string) (n *gatehouse.Notification) {
	s.Helper()
	s.view(func(tx gatehouse.ReadTx) (err error) { n, err = tx.FindNotification(id); return err })
	return n
}

// notifications belong to one tenant, are claimed once, and are moved by the
// holder of the claim only.
func (s *suite) notifications() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	ana := s.insertPrincipal(func(p *gatehouse.Principal) { p.Name = "ana" })
	first := s.queuedNote(tenant, func(n *gatehouse.Notification) { n.Recipient = ana.ID })
	later := s.queuedNote(tenant, func(n *gatehouse.Notification) {
		due := n.DueAt.Add(time.Hour)
		n.DueAt = &due
	})
	other := s.queuedNote(tenant, func(n *gatehouse.Notification) { n.Channel = "hook" })
	s.queuedNote("acme", func(n *gatehouse.Notification) { n.Channel = "hook" })

	want := *first
	want.RecipientName = "ana"
	s.same("the first", s.note(first.ID), &want)
	twin := *first
	twin.ID = "ntf_twin"
	s.updateReturns(gatehouse.ErrConflict, "the same message of an entry", func(tx gatehouse.Tx) error {
		return tx.InsertNotifications([]*gatehouse.Notification{&twin})
	})
	s.as("acme").updateReturns(gatehouse.ErrNotFound, "another tenant's message", func(tx gatehouse.Tx) error {
		_, err := tx.FindNotification(first.ID)
		return err
	})
	ids := func(f gatehouse.NotificationFilter) (list []string) {
		s.view(func(tx gatehouse.ReadTx) error {
			page, err := tx.ListNotifications(f)
			list = nil
			for _, n := range page.Items {
				list = append(list, n.ID)
			}
			return err
		})
		return list
	}
	s.same("all", ids(gatehouse.NotificationFilter{}), []string{other.ID, later.ID, first.ID})
	s.same("of a channel", ids(gatehouse.NotificationFilter{Channel: "hook"}), []string{other.ID})
	s.same("of a status", ids(gatehouse.NotificationFilter{Status: gatehouse.NotificationFailed}), []string(nil))

	claim := func(channel string) (list []*gatehouse.Notification) {
		s.updateQueues(func(q gatehouse.Queues) (err error) {
			list, err = q.ClaimNotifications(channel, "worker", time.Minute, 10)
			return err
		})
		return list
	}
	if got := claim("hook"); len(got) != 2 {
		s.Fatalf("claimed %d of two tenants", len(got))
	}
	mine := claim("mail")
	if len(mine) != 1 || mine[0].ID != first.ID || mine[0].Attempts != 1 || mine[0].Generation != 1 ||
		mine[0].Status != gatehouse.NotificationSent {
		s.Fatalf("claimed %+v", mine)
	}
	if again := claim("mail"); len(again) != 0 {
		s.Fatalf("claimed again %+v", again)
	}
	done := *mine[0]
	now := s.now()
	done.Status, done.DueAt, done.FinishedAt, done.LeaseOwner, done.Ref = gatehouse.NotificationAccepted, nil, &now,
		"", "<id@x>"
	s.updateReturns(gatehouse.ErrConflict, "a stale claim", func(tx gatehouse.Tx) error {
		return tx.UpdateNotification(&done, gatehouse.NotificationSent, 0)
	})
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateNotification(&done, gatehouse.NotificationSent, 1) })
	done.RecipientName = "ana"
	s.same("accepted", s.note(first.ID), &done)
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		open, err := q.OpenNotifications()
		if err == nil && open != 3 {
			s.Errorf("%d open, want 3", open)
		}
		next, e := q.NextNotificationAt("mail")
		if e == nil && !next.Equal(*later.DueAt) {
			s.Errorf("next at %s, want %s", next, later.DueAt)
		}
		return errors.Join(err, e)
	})
	s.updateQueues(func(q gatehouse.Queues) error {
		n, err := q.PurgeNotifications(now.Add(time.Hour), 10)
		if err == nil && n != 1 {
			s.Errorf("purged %d, want 1", n)
		}
		return err
	})
	s.same("after the purge", ids(gatehouse.NotificationFilter{}), []string{other.ID, later.ID})
}

// notificationRace checks that concurrent claims never get the same message.
func (s *suite) notificationRace() {
	const messages = 60
	for range messages {
		s.queuedNote(tenant)
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	seen := map[string]string{}
	for i := range 4 {
		owner := fmt.Sprint("worker", i)
		work.Go(func() {
			for range messages {
				var list []*gatehouse.Notification
				err := s.store.UpdateQueues(s.Context(), func(q gatehouse.Queues) (err error) {
					list, err = q.ClaimNotifications("mail", owner, time.Minute, 3)
					return err
				})
				if err != nil {
					s.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				for _, n := range list {
					if seen[n.ID] != "" {
						s.Errorf("%s was claimed by %s and %s", n.ID, seen[n.ID], owner)
					}
					seen[n.ID] = owner
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
	if len(seen) != messages {
		s.Errorf("%d claimed, want %d", len(seen), messages)
	}
}

// logPosition moves only from the position that was read.
func (s *suite) logPosition() {
	at := func(want int64) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) error {
			got, err := tx.LogPosition()
			if err == nil && got != want {
				s.Errorf("position %d, want %d", got, want)
			}
			return err
		})
	}
	at(-1)
	s.update(func(tx gatehouse.Tx) error { return tx.MoveLogPosition(-1, 5) })
	at(5)
	s.updateReturns(
		gatehouse.ErrConflict,
		"a second beginning",
		func(tx gatehouse.Tx) error { return tx.MoveLogPosition(-1, 7) },
	)
	s.updateReturns(
		gatehouse.ErrConflict,
		"a stale move",
		func(tx gatehouse.Tx) error { return tx.MoveLogPosition(4, 7) },
	)
	s.update(func(tx gatehouse.Tx) error { return tx.MoveLogPosition(5, 9) })
	at(9)
}

// channelStates checks that a channel's state is stored by tenant and channel, that queued messages that have failed
// before can be made due now, and which messages count as recent.
func (s *suite) channelStates() {
	var state *gatehouse.ChannelState
	s.update(func(tx gatehouse.Tx) (err error) {
		if state, err = tx.LockChannelState("mail"); err != nil {
			return err
		}
		now := tx.Now()
		state.Failures, state.FailingSince, state.LastError = 3, &now, "refused"
		state.Flaky, state.Minutes = true, []gatehouse.ChannelMinute{{Minute: 29_000_000, Tried: 40, Failed: 5}}
		return tx.PutChannelState(state)
	})
	s.view(func(tx gatehouse.ReadTx) error {
		list, err := tx.ChannelStates()
		s.same("states", list, []*gatehouse.ChannelState{state})
		return err
	})
	waits := s.queuedNote(tenant, func(n *gatehouse.Notification) {
		due := n.DueAt.Add(time.Hour)
		n.DueAt, n.Attempts = &due, 2
	})
	fresh := s.queuedNote(tenant, func(n *gatehouse.Notification) {
		due := n.DueAt.Add(time.Hour)
		n.DueAt = &due
	})
	s.update(func(tx gatehouse.Tx) error { return tx.HurryNotifications("mail") })
	if got := s.note(waits.ID); !got.DueAt.Before(*waits.DueAt) {
		s.Errorf("a retry is still due at %s", got.DueAt)
	}
	if got := s.note(fresh.ID); !got.DueAt.Equal(*fresh.DueAt) {
		s.Errorf("one that was not tried moved to %s", got.DueAt)
	}
	older := s.queuedNote(tenant, func(n *gatehouse.Notification) {
		due := n.DueAt.Add(time.Hour)
		n.DueAt, n.Attempts, n.Channel, n.CreatedAt = &due, 2, "probed", n.CreatedAt.Add(-time.Hour)
	})
	newer := s.queuedNote(tenant, func(n *gatehouse.Notification) {
		due := n.DueAt.Add(time.Hour)
		n.DueAt, n.Attempts, n.Channel = &due, 2, "probed"
	})
	for _, since := range []time.Duration{time.Second, -2 * time.Hour} {
		s.update(func(tx gatehouse.Tx) error { return tx.ProbeNotification("probed", newer.CreatedAt.Add(since)) })
		got := s.note(older.ID)
		if moved := got.DueAt.Before(*older.DueAt); moved != (since < 0) || moved != (got.Attempts == 1) {
			s.Errorf("since %s: the oldest is due at %s after %d attempts", since, got.DueAt, got.Attempts)
		}
		if got := s.note(newer.ID); !got.DueAt.Equal(*newer.DueAt) || got.Attempts != 2 {
			s.Errorf("since %s: one that is not the oldest moved to %s", since, got.DueAt)
		}
	}
	s.view(func(tx gatehouse.ReadTx) error {
		count, digest, err := tx.RecentNotifications("mail", "prn_1", waits.CreatedAt.Add(-time.Second))
		if err == nil && (count != 2 || digest != nil) {
			s.Errorf("%d recent, digest %v", count, digest)
		}
		return err
	})
	open := s.queuedNote(tenant, func(n *gatehouse.Notification) { n.Kind, n.Entry = gatehouse.NotifyDigest, -1 })
	s.view(func(tx gatehouse.ReadTx) error {
		count, digest, err := tx.RecentNotifications("mail", "prn_1", waits.CreatedAt.Add(-time.Second))
		if err == nil && (count != 3 || digest == nil || digest.ID != open.ID) {
			s.Errorf("%d recent, digest %v", count, digest)
		}
		return err
	})
}

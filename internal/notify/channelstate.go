package notify

import (
	"github.com/gatehouse-dev/gatehouse"
)

// change is the effect of an attempt on a channel's state.
type change struct {
	// known is set when the attempt counts for the channel, failing when the channel fails after it.
	known, failing bool
	// alerted is set when the attempt made the channel start or stop failing, or be switched off.
	alerted bool
}

// recordHealth records a channel's state after an attempt, and reports when the channel starts or stops
// failing. first is true if no earlier attempt of the message has failed.
func (n *Notifier) recordHealth(
	tx gatehouse.Tx, c *Configured, m *gatehouse.Notification, first bool, failure error,
) (moved change, err error) {
	if m.Status == gatehouse.NotificationMuted {
		return moved, nil
	}
	if failure != nil && refusal(failure).Recipient {
		return moved, nil
	}
	s, err := tx.LockChannelState(c.Name)
	if err != nil {
		return moved, err
	}
	now := tx.Now()
	moved.known, moved.failing = true, s.FailingSince != nil
	if first && counted(s) {
		count(s, now, failure != nil)
	}
	if failure == nil {
		s.Failures, s.LastOKAt = 0, &now
		broken := s.FailingSince != nil || s.OffAt != nil
		if broken && !endsFailure(s, now) {
			return moved, tx.PutChannelState(s)
		}
		s.FailingSince, s.Flaky, s.OffAt, s.LastError = nil, false, nil, ""
		moved.failing = false
		if broken {
			if err := n.leaf(tx, "channel.recovered", m.Tenant, c.Name, ""); err != nil {
				return moved, err
			}
			if err := tx.HurryNotifications(c.Name); err != nil {
				return moved, err
			}
			moved.alerted = true
		}
		return moved, tx.PutChannelState(s)
	}
	s.Failures++
	s.LastError = shortError(failure)
	event, why := applyFailure(s, c, now, refusal(failure).Gone)
	if err := tx.PutChannelState(s); err != nil || event == "" {
		return moved, err
	}
	moved.failing, moved.alerted = true, true
	if err := n.leaf(tx, event, m.Tenant, c.Name, why); err != nil {
		return moved, err
	}
	return moved, n.alert(tx, m.Tenant, c.Name, event, why)
}

// leaf writes a log entry about a channel.
func (n *Notifier) leaf(tx gatehouse.LogWriter, event, tenant, channel, why string) error {
	l := &gatehouse.Leaf{Tenant: tenant, Type: event, Subject: channel, Actor: "system"}
	if why != "" {
		l.Data = gatehouse.ObjectJSON(gatehouse.Member{Name: "error", Value: gatehouse.StringJSON(why)})
	}
	return tx.AppendLeaf(l)
}

// alert queues a message about a broken channel on its fallback channels: to their shared place, or
// to every administrator whom they reach.
func (n *Notifier) alert(tx gatehouse.Tx, tenant, broken, event, why string) error {
	routes, err := n.routing(tx, tenant)
	if err != nil {
		return err
	}
	s := &fanOut{n: n, tx: tx, tenant: tenant, now: tx.Now(), routes: routes}
	data := gatehouse.ObjectJSON(
		gatehouse.Member{Name: "channel", Value: gatehouse.StringJSON(broken)},
		gatehouse.Member{Name: "error", Value: gatehouse.StringJSON(why)},
		gatehouse.Member{Name: "event", Value: gatehouse.StringJSON(event)},
	)
	if s.preferences, err = preferencesOf(tx, ""); err != nil {
		return err
	}
	fallbacks := routes.fallbacks(broken)
	for _, c := range fallbacks {
		if !c.Trait().Personal {
			s.rows = append(s.rows, s.row(gatehouse.NotifyChannelFailing, "", -1, c.Name, "", data))
			continue
		}
		people, err := tx.ListPeople()
		if err != nil {
			return err
		}
		for _, p := range people {
			if p.Disabled || !p.Has(gatehouse.RoleAdmin) {
				continue
			}
			reached, err := s.reaches(c, p)
			if err != nil {
				return err
			}
			if !reached {
				continue
			}
			row := s.row(gatehouse.NotifyChannelFailing, "", -1, c.Name, p.ID, data)
			muted, err := s.mutes(row.Kind, c, p, fallbacks)
			if err != nil {
				return err
			}
			if muted {
				s.mute(row)
			}
			s.rows = append(s.rows, row)
		}
	}
	return tx.InsertNotifications(s.rows)
}

package notify

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// week is the longest time without a message on a [Trait.Weekly] channel, checkEvery the interval at
	// which this is checked.
	week       = 7 * 24 * time.Hour
	checkEvery = time.Hour
	// weekly is the Data of the message that tests such a channel. Unlike an administrator's test, it is
	// retried, so that three failed attempts report the channel as failing.
	weekly = gatehouse.JSON(`{"event":"weekly"}`)
)

// Weekly queues a test on a channel for each tenant that had no message on it for a week. Replicas may
// check at the same time: because of the lock on the channel's state, only one queues the test.
func (n *Notifier) Weekly(ctx context.Context, channel string) error {
	c := n.channel(channel)
	if c == nil {
		return errors.New("notify: no channel " + channel)
	}
	var errs []error
	for _, tenant := range c.Tenants {
		errs = append(errs, n.store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
			s, err := tx.LockChannelState(c.Name)
			if err != nil || s.OffAt != nil {
				return err
			}
			recent, _, err := tx.RecentNotifications(c.Name, "", tx.Now().Add(-week))
			if err != nil || recent > 0 {
				return err
			}
			due := tx.Now()
			return tx.InsertNotifications([]*gatehouse.Notification{{
				ID: newID(), Tenant: tenant, CreatedAt: due, Kind: gatehouse.NotifyTest, Entry: -1, Channel: c.Name,
				Status: gatehouse.NotificationQueued, DueAt: &due, Data: weekly,
			}})
		}))
	}
	n.hints.Notify(Topic)
	return errors.Join(errs...)
}

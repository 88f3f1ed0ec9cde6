package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.NotificationService = (*Gate)(nil)

// TopicNotify is notified when messages to people were queued.
const TopicNotify = "notify"

// testWait is how long TestChannel waits for the outcome.
const testWait = 25 * time.Second

// ChannelInfo is what the use cases know about a channel.
type ChannelInfo struct {
	Name, Kind string
	Tenants    []string
	// Personal channels send to people whom they reach, other channels to a shared
	// place.
	Personal bool
	Reaches  func(*gatehouse.Principal) bool
	// Endpoint checks the address of a device; nil unless the channel sends to devices.
	// Reaches does not know the recipients of such a channel.
	Endpoint func(string) error
	// Callback channels make the callbacks of proposals, and have no place of their own.
	Callback bool
}

// mayReadMessages fails unless the caller may see which messages were sent to whom.
func mayReadMessages(ctx context.Context) error {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return err
	}
	return Require(c, gatehouse.RoleOperator, gatehouse.RoleAuditor)
}

// ListNotifications returns a page, newest first.
func (g *Gate) ListNotifications(
	ctx context.Context, f gatehouse.NotificationFilter,
) (page gatehouse.Page[*gatehouse.Notification], err error) {
	if err := mayReadMessages(ctx); err != nil {
		return page, err
	}
	err = g.View(ctx, "notification", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		page, err = tx.ListNotifications(f)
		return err
	})
	return page, err
}

// RetryNotification makes a message due now.
func (g *Gate) RetryNotification(ctx context.Context, id string) (out *gatehouse.Notification, err error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	if id == "" {
		return nil, gatehouse.Violations{{Pointer: "/id", Detail: "is required"}}.Err()
	}
	by := usecase.Case{By: c}
	out, err = usecase.Perform(ctx, g.Runner, by, func(tx gatehouse.Tx) (*gatehouse.Notification, error) {
		n, err := tx.FindNotification(id)
		if err != nil {
			return nil, usecase.NotFoundAs(err, "notification", id)
		}
		if n.Status != gatehouse.NotificationFailed && n.Status != gatehouse.NotificationQueued {
			return nil, gatehouse.E(
				gatehouse.CodeTooLate,
				"only a failed or queued notification can be retried, this one is %s",
				n.Status,
			)
		}
		return n, sendAgain(tx, n)
	})
	if err == nil {
		g.Hints.Notify(TopicNotify)
	}
	return out, err
}

// sendAgain makes a message due now, and gives it all its attempts again.
func sendAgain(tx gatehouse.Tx, n *gatehouse.Notification) error {
	from, now := n.Status, tx.Now()
	n.Status, n.DueAt, n.FinishedAt, n.Attempts = gatehouse.NotificationQueued, &now, nil, 0
	return tx.UpdateNotification(n, from, n.Generation)
}

// RetryNotifications makes failed messages due now, except those that somebody else retries meanwhile.
func (g *Gate) RetryNotifications(
	ctx context.Context, r gatehouse.RetryRequest,
) (*gatehouse.RetryAnswer, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	out := &gatehouse.RetryAnswer{DryRun: r.DryRun == nil || *r.DryRun}
	find := func(tx gatehouse.ReadTx) error {
		page, err := tx.ListNotifications(gatehouse.NotificationFilter{
			Status: gatehouse.NotificationFailed, Channel: r.Channel, FinishedSince: r.Since, Limit: r.Limit,
			Cursor: r.Cursor,
		})
		out.Items, out.NextCursor = page.Items, page.NextCursor
		return err
	}
	if out.DryRun {
		return out, g.Store.View(ctx, c.Principal.Tenant, find)
	}
	by := usecase.Case{By: c}
	out, err = usecase.Perform(ctx, g.Runner, by, func(tx gatehouse.Tx) (*gatehouse.RetryAnswer, error) {
		if err := find(tx); err != nil {
			return nil, err
		}
		found := out.Items
		out.Items = found[:0:0]
		for _, n := range found {
			switch err := sendAgain(tx, n); {
			case err == nil:
				out.Items = append(out.Items, n)
			case !errors.Is(err, gatehouse.ErrConflict):
				return nil, err
			}
		}
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	g.Hints.Notify(TopicNotify)
	return out, nil
}

// ListChannels returns the configured channels of the caller's tenant, with their
// states.
func (g *Gate) ListChannels(ctx context.Context) (list []*gatehouse.ChannelState, err error) {
	if err := mayReadMessages(ctx); err != nil {
		return nil, err
	}
	err = g.View(ctx, "channel", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		states, err := tx.ChannelStates()
		if err != nil {
			return err
		}
		list = []*gatehouse.ChannelState{}
		for _, info := range g.config.Channels {
			if !slices.Contains(info.Tenants, c.Principal.Tenant) {
				continue
			}
			s := &gatehouse.ChannelState{Tenant: c.Principal.Tenant, Channel: info.Name}
			if i := slices.IndexFunc(states,
				func(s *gatehouse.ChannelState) bool { return s.Channel == info.Name }); i >= 0 {
				s = states[i]
			}
			s.Kind = info.Kind
			list = append(list, s)
		}
		return nil
	})
	return list, err
}

// TestChannel sends a test message to the caller, or to the channel's shared place.
func (g *Gate) TestChannel(ctx context.Context, channel string) (*gatehouse.Notification, error) {
	c, err := admin(ctx)
	if err != nil {
		return nil, err
	}
	tenant := c.Principal.Tenant
	i := slices.IndexFunc(g.config.Channels, func(info ChannelInfo) bool {
		return info.Name == channel && slices.Contains(info.Tenants, tenant)
	})
	if i < 0 {
		return nil, gatehouse.E(gatehouse.CodeNotFound,
			"no channel %s is configured for this tenant; gatehouse notify channels lists those that are",
			gatehouse.Quote(channel))
	}

	info := g.config.Channels[i]
	if info.Callback {
		return nil, gatehouse.Violations{{
			Pointer: "/channel", Detail: "sends the callbacks of proposals, and has no receiver of its own to test",
		}}.Err()
	}
	n := testMessage(c, &info)
	if info.Personal {
		n.Recipient = c.Principal.ID
	}
	return g.sendTest(ctx, c, n, func(tx gatehouse.Tx) error {
		reaches := !info.Personal
		switch {
		case info.Endpoint != nil:
			devices, err := tx.ListDevices(c.Principal.ID)
			if err != nil {
				return err
			}
			reaches = len(devices) > 0
		case info.Personal:
			reaches = info.Reaches(c.Principal)
		}
		if !reaches {
			return gatehouse.Violations{{Pointer: "/channel", Detail: "has no address for you"}}.Err()
		}
		return nil
	})
}

// testMessage is a test on a channel for the caller's tenant.
func testMessage(c *gatehouse.Caller, info *ChannelInfo) *gatehouse.Notification {
	return &gatehouse.Notification{
		ID: NewID("ntf"), Tenant: c.Principal.Tenant, Kind: gatehouse.NotifyTest, Entry: -1, Channel: info.Name,
		Status: gatehouse.NotificationQueued,
	}
}

// sendTest queues a test message after a check, and waits briefly for its outcome.
func (g *Gate) sendTest(
	ctx context.Context, c *gatehouse.Caller, n *gatehouse.Notification, check func(gatehouse.Tx) error,
) (*gatehouse.Notification, error) {
	done, end := g.Hints.Subscribe(n.ID)
	defer end()
	err := g.Do(ctx, c, func(tx gatehouse.Tx) error {
		if err := check(tx); err != nil {
			return err
		}
		now := tx.Now()
		n.CreatedAt, n.DueAt = now, &now
		return tx.InsertNotifications([]*gatehouse.Notification{n})
	})
	if err != nil {
		return nil, err
	}
	g.Hints.Notify(TopicNotify)

	ctx, cancel := context.WithTimeout(ctx, testWait)
	defer cancel()
	for again := time.NewTicker(time.Second); ; {
		select {
		case <-done:
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return n, nil
		}
		err := g.Store.View(ctx, n.Tenant, func(tx gatehouse.ReadTx) error {
			found, err := tx.FindNotification(n.ID)
			if err == nil {
				n = found
			}
			return err
		})
		if err == nil && n.Finished() {
			again.Stop()
			return n, nil
		}
	}
}

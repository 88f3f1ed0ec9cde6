package slack

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// topicClicks is the hint topic for stored clicks, topicCards the one for cards that must be
// rewritten.
const (
	topicClicks = "slack"
	topicCards  = notify.TopicCards
)

const (
	// claimClicks limits the clicks that are processed concurrently, clickLease the time for one of
	// them.
	claimClicks = 8
	clickLease  = time.Minute
	// clickTime limits the decision and the answer, separately.
	clickTime = 20 * time.Second
	// tryFor is how long a click and the answer to its person are retried.
	tryFor = 24 * time.Hour
	// clickPoll is how long a click waits at most if its hint was lost.
	clickPoll = time.Second
	// keepClicks is how long finished clicks are kept.
	keepClicks = 30 * 24 * time.Hour
	purgeEvery = time.Hour
	purgeBatch = 1000
)

// Run processes clicks, and keeps the Socket Mode connections open, until the context ends.
func (d *Handler) Run(ctx context.Context) {
	var work sync.WaitGroup
	for _, a := range d.apps {
		for _, p := range a.sockets {
			work.Go(func() { d.socket(ctx, a, p) })
		}
	}
	work.Go(func() { d.clicks(ctx) })
	work.Wait()
}

func (d *Handler) clicks(ctx context.Context) {
	wake, end := d.Hints.Subscribe(topicClicks)
	defer end()
	purged := time.Time{}
	notify.Loop(ctx, d.Log, "slack: clicks", clickPoll, wake, func(ctx context.Context) (bool, error) {
		more, err := d.Work(ctx)
		if err == nil && time.Since(purged) > purgeEvery {
			var left bool
			if left, err = d.purge(ctx); left {
				return true, nil
			}
			purged = time.Now()
		}
		return more, err
	})
}

// purge deletes a batch of old clicks. left says that there may be more.
func (d *Handler) purge(ctx context.Context) (left bool, err error) {
	deleted := 0
	err = d.Store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
		deleted, err = q.PurgeSlackClicks(q.Now().Add(-keepClicks), purgeBatch)
		return err
	})
	return err == nil && deleted == purgeBatch, err
}

// Work processes one round of due clicks. more says that further clicks may be due.
func (d *Handler) Work(ctx context.Context) (more bool, err error) {
	var next, now time.Time
	err = d.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		now = q.Now()
		next, err = q.NextSlackClickAt()
		return err
	})
	if err != nil || next.IsZero() || next.After(now) {
		return false, err
	}
	var claimed []*gatehouse.SlackClick
	err = d.Store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
		claimed, err = q.ClaimSlackClicks(d.Owner, clickLease, claimClicks)
		return err
	})
	errs := make([]error, len(claimed))
	var work sync.WaitGroup
	for i, c := range claimed {
		work.Go(func() { errs[i] = d.carryOut(ctx, c, now) })
	}
	work.Wait()
	return len(claimed) == claimClicks, errors.Join(err, errors.Join(errs...))
}

// carryOut makes the decision of a claimed click, and answers the person.
func (d *Handler) carryOut(ctx context.Context, c *gatehouse.SlackClick, now time.Time) error {
	if c.Result == "" {
		call, cancel := context.WithTimeout(ctx, clickTime)
		result, said, err := d.Gate.CarryOutSlackClick(call, c)
		cancel()
		d.reach("decided")
		switch {
		case ctx.Err() != nil:
			return ctx.Err() // the handler stops: the lease expires, and the click is processed again
		case err != nil && now.Sub(c.CreatedAt) < tryFor:
			return d.later(ctx, c, now, err)
		case err != nil:
			result, said = "gave_up", "Your answer could not be recorded. Open it in Gatehouse."
		}
		c.Result, c.Said = result, said
		if err := d.put(ctx, c, true); err != nil {
			return ignoreConflict(err)
		}
		d.Hints.Notify(topicCards)
		d.reach("recorded")
	}
	err := d.answer(ctx, c)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !lost(err) && now.Sub(c.CreatedAt) < tryFor:
		return d.later(ctx, c, now, err)
	case err != nil:
		c.LastError = err.Error()
		d.Log.WarnContext(ctx, "slack: a click was not answered", "click", c.ID, "channel", c.Channel, "error", err)
	}
	c.DueAt, c.FinishedAt, c.LeaseOwner = nil, &now, ""
	return ignoreConflict(d.put(ctx, c, false))
}

// answer tells the person the result of the click.
func (d *Handler) answer(ctx context.Context, c *gatehouse.SlackClick) error {
	for _, p := range d.Channels {
		if p.Name != c.Channel {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, clickTime)
		defer cancel()
		link := ""
		if c.ActionID != "" {
			link = d.page("/actions/" + c.ActionID)
		}
		if c.Result == "not_linked" {
			link = d.page("/settings")
		}
		return p.say(ctx, c.SlackChannel, c.User, c.Said, link)
	}
	return &notify.Refusal{Final: true, Err: errors.New("the channel is not configured any more")}
}

// later postpones a click.
func (d *Handler) later(ctx context.Context, c *gatehouse.SlackClick, now time.Time, cause error) error {
	wait := min(2*time.Second<<min(c.Attempts, 10), time.Minute)
	var r *notify.Refusal
	if errors.As(cause, &r) && r.After > wait {
		wait = r.After
	}
	due := now.Add(wait)
	c.DueAt, c.LeaseOwner, c.LastError = &due, "", cause.Error()
	d.Log.WarnContext(ctx, "slack: a click waits", "click", c.ID, "attempt", c.Attempts, "error", cause)
	return ignoreConflict(d.put(ctx, c, false))
}

// put records the progress of a click; touch also makes its card due.
func (d *Handler) put(ctx context.Context, c *gatehouse.SlackClick, touch bool) error {
	return d.Store.Update(ctx, c.Tenant, func(tx gatehouse.Tx) error {
		if err := tx.UpdateSlackClick(c, c.Generation); err != nil || !touch {
			return err
		}
		return tx.TouchCards(c.ActionID)
	})
}

// ignoreConflict ignores the error of a claim that somebody else has taken over.
func ignoreConflict(err error) error {
	if errors.Is(err, gatehouse.ErrConflict) {
		return nil
	}
	return err
}

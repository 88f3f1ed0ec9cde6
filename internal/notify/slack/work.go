package slack

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// topicClicks is hinted at when a click was stored, topicCards when a card is to be
// written again.
const (
	topicClicks = "slack"
	topicCards  = notify.TopicCards
)

const (
	// claimClicks bounds the clicks that are carried out at a time, clickLease how
	// long one may take.
	claimClicks = 8
	clickLease  = time.Minute
	// clickTime bounds deciding, and answering, each.
	clickTime = 20 * time.Second
	// tryFor is how long a click is tried to be carried out, and its person to be
	// answered.
	tryFor = 24 * time.Hour
	// clickPoll is how long a click waits whose hint was lost.
	clickPoll = time.Second
	// keepClicks is how long finished clicks are kept.
	keepClicks = 30 * 24 * time.Hour
	purgeEvery = time.Hour
	purgeBatch = 1000
)

// Run carries out clicks, and keeps the connections of Socket Mode, until the context
// ends.
func (d *Desk) Run(ctx context.Context) {
	var work sync.WaitGroup
	for _, a := range d.apps {
		if a.token != "" {
			work.Go(func() { d.socket(ctx, a) })
		}
	}
	work.Go(func() { d.clicks(ctx) })
	work.Wait()
}

func (d *Desk) clicks(ctx context.Context) {
	wake, end := d.Hints.Subscribe(topicClicks)
	defer end()
	failures, purged := 0, time.Time{}
	for ctx.Err() == nil {
		more, err := d.Work(ctx)
		if err == nil && time.Since(purged) > purgeEvery {
			purged = time.Now()
			err = d.purge(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures = min(failures+1, 5)
			d.Log.WarnContext(ctx, "slack: clicks", "error", err)
		default:
			failures = 0
		}
		if more && err == nil {
			continue
		}
		pause := clickPoll << failures
		t := time.NewTimer(pause + rand.N(pause/4+1))
		select {
		case <-wake:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

func (d *Desk) purge(ctx context.Context) error {
	return d.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		_, err := q.PurgeSlackClicks(q.Now().Add(-keepClicks), purgeBatch)
		return err
	})
}

// Work carries out the clicks that are due, one round. more is whether there may be
// further ones.
func (d *Desk) Work(ctx context.Context) (more bool, err error) {
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

// carryOut decides what a claimed click asks for, and answers the person.
func (d *Desk) carryOut(ctx context.Context, c *gatehouse.SlackClick, now time.Time) error {
	if c.Result == "" {
		call, cancel := context.WithTimeout(ctx, clickTime)
		result, said, err := d.Gate.CarryOutSlackClick(call, c)
		cancel()
		d.reach("decided")
		switch {
		case ctx.Err() != nil:
			return ctx.Err() // stopped: the lease ends, and the click is carried out again
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

// answer tells the person what became of the click.
func (d *Desk) answer(ctx context.Context, c *gatehouse.SlackClick) error {
	for _, p := range d.Places {
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
		return p.say(ctx, c.Place, c.User, c.Said, link)
	}
	return &notify.Refusal{Final: true, Err: errors.New("the channel is not configured any more")}
}

// later puts a click off.
func (d *Desk) later(ctx context.Context, c *gatehouse.SlackClick, now time.Time, cause error) error {
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

// put records how far a click is; touch makes its card due, too.
func (d *Desk) put(ctx context.Context, c *gatehouse.SlackClick, touch bool) error {
	return d.Store.Update(ctx, c.Tenant, func(tx gatehouse.Tx) error {
		if err := tx.UpdateSlackClick(c, c.Generation); err != nil || !touch {
			return err
		}
		return tx.TouchCards(c.ActionID)
	})
}

// ignoreConflict is for a claim that somebody else has taken over.
func ignoreConflict(err error) error {
	if errors.Is(err, gatehouse.ErrConflict) {
		return nil
	}
	return err
}

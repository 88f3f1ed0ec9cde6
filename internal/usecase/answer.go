package usecase

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// PollInterval is how long a lost hint can delay a long poll.
const PollInterval = time.Second

// Poll calls try until it is done: at once, after each hint, and every PollInterval. It ends without an
// error when the wait is over, or when the caller has left.
func Poll(
	ctx context.Context, hints Hints, wait time.Duration, topics []string, try func() (done bool, err error),
) error {
	hint, end := hints.Subscribe(topics...)
	defer end()
	over := time.After(wait)
	poll := time.NewTicker(PollInterval)
	defer poll.Stop()
	for {
		done, err := try()
		if ctx.Err() != nil {
			return nil // try may have failed because of that
		}
		if done || err != nil || wait <= 0 {
			return err
		}
		select {
		case <-hint:
		case <-poll.C:
		case <-over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// Busy asks the client to try again.
func Busy(cause error) error {
	e := gatehouse.E(gatehouse.CodeBusy, "the store is busy; try again").Because(cause)
	e.RetryAfter = 1
	return e
}

// NotFound maps the store's ErrNotFound to an error with code not_found.
func NotFound(err error, what string) error {
	if errors.Is(err, gatehouse.ErrNotFound) {
		return gatehouse.E(gatehouse.CodeNotFound, "no such %s", what)
	}
	return err
}

// NotFoundAs is NotFound with the id in the detail.
func NotFoundAs(err error, what, id string) error {
	if errors.Is(err, gatehouse.ErrNotFound) {
		return gatehouse.E(gatehouse.CodeNotFound, "no %s %s", what, gatehouse.QuoteWord(id))
	}
	return err
}

// OrEmpty turns nil into an empty list: an answer has [] and not null.
func OrEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

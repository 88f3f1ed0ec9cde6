package usecase

import (
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// PollInterval is how long a lost hint can delay a long poll.
const PollInterval = time.Second

// Busy asks the client to try again.
func Busy(cause error) error {
	e := gatehouse.E(gatehouse.CodeBusy, "the store is busy; try again").Because(cause)
	e.RetryAfter = 1
	return e
}

// NotFound maps the store's error to the domain's error.
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

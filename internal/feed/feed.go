package feed

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// poll is how long an entry waits at most when its hint was lost.
	poll = 900 * time.Millisecond
	// settle is the minimum pause after a hint: hints come when leaves are
	// written, and the sequencer needs a moment to number them.
	settle = 30 * time.Millisecond
	// rest is the ratio of the pause after a hint to the time that reading the
	// sizes of all logs took, so that with many tenants these reads stay a small
	// load. The pause is at most poll.
	rest = 9
	// standback is the minimum pause after another replica has published first.
	standback = time.Second
	// remind is the number of consecutive failures of which only the first is
	// logged.
	remind = 60
)

// Feed publishes new entries of the audit log. Any number of feeds may run on
// one store and stream.
type Feed struct {
	Store gatehouse.Store
	// Conn reconnects by itself: see Connect.
	Conn   *nats.Conn
	Config Config
	// Wake hints that the log has grown; nil is allowed.
	Wake <-chan struct{}
	// Logger logs failures; nil is slog.Default.
	Logger *slog.Logger

	published atomic.Uint64
	behind    atomic.Int64
}

// Published counts the entries that this feed has stored in the stream.
func (f *Feed) Published() uint64 { return f.published.Load() }

// Behind is the number of log entries that the stream lacked when this feed
// last looked, over all tenants: an upper bound before the first contact.
func (f *Feed) Behind() int64 { return f.behind.Load() }

// Run publishes until ctx ends: when woken, and at least every 900 ms. When
// another replica was first, it pauses for one to two seconds instead. It
// returns soon after ctx has ended, whatever the state of NATS. It logs the
// beginning and the end of a failure.
func (f *Feed) Run(ctx context.Context) {
	js, err := jetstream.New(f.Conn,
		jetstream.WithPublishAsyncTimeout(requestTimeout), jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil { // only for contradictory options
		f.logger().ErrorContext(ctx, "feed: events are not published", "error", err)
		return
	}
	p := newPublisher(f, js)
	wake, failures := f.Wake, 0
	for ctx.Err() == nil {
		conflict, err := p.round(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil:
			if failures++; failures%remind == 1 {
				f.logger().WarnContext(ctx, "feed: events wait in the log", "error", err, "failures", failures, "behind",
					f.Behind())
			}
			pause(ctx, poll/2+rand.N(poll/2))
		default:
			if failures > 0 {
				f.logger().InfoContext(ctx, "feed: events are published again", "behind", f.Behind())
			}
			failures = 0
			if conflict {
				pause(ctx, standback+rand.N(standback))
			} else {
				wake = await(ctx, wake, min(max(settle, rest*p.looked), poll))
			}
		}
	}
}

// await returns a moment after a wake signal, or when the poll interval is over
// or ctx ends. The result is wake, or nil once wake is closed.
func await(ctx context.Context, wake <-chan struct{}, moment time.Duration) <-chan struct{} {
	t := time.NewTimer(poll)
	defer t.Stop()
	select {
	case _, open := <-wake:
		if !open {
			return nil
		}
		pause(ctx, moment)
	case <-t.C:
	case <-ctx.Done():
	}
	return wake
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (f *Feed) logger() *slog.Logger {
	if f.Logger != nil {
		return f.Logger
	}
	return slog.Default()
}

// errConflict says that the tenant's last message is not the expected one:
// another feed has published, or messages are gone.
var errConflict = errors.New("feed: another process has written to the stream")

// tenantError is a problem with one tenant's events, which does not affect
// other tenants.
type tenantError struct {
	tenant string
	cause  error
}

func (e *tenantError) Error() string { return "tenant " + e.tenant + ": " + e.cause.Error() }
func (e *tenantError) Unwrap() error { return e.cause }

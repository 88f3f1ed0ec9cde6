// Package pgwake carries hints between replicas with PostgreSQL's LISTEN and
// NOTIFY.
//
// Each replica uses one connection to listen and to send. All topics of a
// round, at most one round per 10 ms, are packed into as few notifications as
// possible. A NOTIFY takes a lock that all committing notifiers share, so it
// must be neither frequent nor part of a use case's transaction. The connection
// must go to the server itself or through a pooler in session mode: through a
// pooler in transaction mode, LISTEN receives nothing.
//
// While the server is unreachable, hints are dropped; every waiter also polls.
package pgwake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/pgurl"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

const (
	// channel is the channel that all replicas on a database use.
	channel = "gatehouse_hints"
	// roundTrip bounds connecting, and each statement.
	roundTrip = 5 * time.Second
	// quiet is how long the carrier may have nothing to send before it probes the
	// connection: a listener would never notice a peer that vanished without
	// closing it.
	quiet = 30 * time.Second
)

// Carrier implements wake.Carrier.
type Carrier struct {
	config *pgx.ConnConfig
	origin string
	log    *slog.Logger
	quiet  time.Duration
	// listening receives after each LISTEN; for tests.
	listening chan struct{}
}

// New returns a carrier for the replicas on a database. url is a connection
// string as pgx accepts it. New does not connect.
func New(url string, log *slog.Logger) (*Carrier, error) {
	config, err := pgurl.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("pgwake: %w", err)
	}
	config.RuntimeParams["application_name"] = "gatehouse hints"
	return &Carrier{config: config, origin: uuid.NewString(), log: log, quiet: quiet, listening: make(chan struct{}, 1)},
		nil
}

// Takes refuses topics that are handed to one replica.
func (*Carrier) Takes(topic string) bool { return !strings.HasPrefix(topic, "push:") }

// Run carries hints until ctx ends.
func (c *Carrier) Run(ctx context.Context, out *wake.Queue, deliver func(string)) {
	var retry wake.Backoff
	for failing := false; ctx.Err() == nil; retry.Pause(ctx) {
		err := c.session(ctx, out, deliver, func() {
			if failing {
				c.log.InfoContext(ctx, "hints from other replicas arrive by PostgreSQL again")
			}
			failing = false
			retry.Succeeded()
		})
		if ctx.Err() == nil && !failing {
			failing = true
			c.log.WarnContext(ctx, "no hints arrive from other replicas by PostgreSQL; polling continues", "error", err)
		}
	}
}

// session connects and carries hints until something fails or ctx ends.
func (c *Carrier) session(ctx context.Context, out *wake.Queue, deliver func(string), connected func()) error {
	dial, cancel := context.WithTimeout(ctx, roundTrip)
	defer cancel()
	conn, err := pgx.ConnectConfig(dial, c.config)
	if err != nil {
		return err
	}
	defer func() {
		// A context of its own, to close the connection even after ctx has
		// ended.
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(bye) // the server cleans up the rest
	}()
	if _, err := conn.Exec(dial, "LISTEN "+channel); err != nil {
		return err
	}
	connected()
	select {
	case c.listening <- struct{}{}:
	default:
	}
	for {
		if err := c.turn(ctx, conn, out, deliver); err != nil {
			return err
		}
	}
}

// turn listens until the queue has topics, then sends them. If there are none
// for c.quiet, it probes the connection.
func (c *Carrier) turn(ctx context.Context, conn *pgx.Conn, out *wake.Queue, deliver func(string)) error {
	topics, err := c.listen(ctx, conn, out, deliver)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, roundTrip)
	defer cancel()
	if len(topics) == 0 {
		return conn.Ping(limited)
	}
	_, err = conn.Exec(limited, "SELECT pg_notify($1, message) FROM unnest($2::text[]) AS message",
		channel, wake.Encode(c.origin, topics))
	return err
}

// listen delivers notifications until the queue has a round, which it returns,
// or until c.quiet has passed. Ending the wait keeps the connection usable: pgx
// closes it on any error except a time-out.
func (c *Carrier) listen(ctx context.Context, conn *pgx.Conn, out *wake.Queue, deliver func(string)) ([]string, error) {
	waiting, stop := context.WithTimeout(ctx, c.quiet)
	defer stop()
	round := make(chan []string, 1)
	go func() {
		round <- out.Round(waiting)
		stop()
	}()
	var failed error
	for waiting.Err() == nil {
		n, err := conn.WaitForNotification(waiting)
		if err != nil {
			if waiting.Err() == nil || conn.IsClosed() {
				failed = errors.Join(errors.New("the connection was lost"), err)
			}
			break
		}
		if n.Channel != channel {
			continue
		}
		origin, topics := wake.Decode(n.Payload)
		if origin == c.origin {
			continue
		}
		for _, t := range topics {
			deliver(t)
		}
	}
	stop()
	return <-round, failed
}

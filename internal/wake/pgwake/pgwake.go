// Package pgwake carries hints between replicas by PostgreSQL's LISTEN and
// NOTIFY.
//
// Each replica holds one connection, on which it listens and sends. All topics
// of a round, at most every 10 ms, travel in as few notifications as they fit
// in: a NOTIFY takes a lock that all committing notifiers share, so it must be
// neither frequent nor within a use case's transaction. The connection must
// reach the server itself, or a pooler in session mode: behind a pooler in
// transaction mode LISTEN hears nothing.
//
// While the server is away hints are dropped; everybody who waits for one
// polls as well.
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
	// channel is the name that replicas on one database share.
	channel = "gatehouse_hints"
	// roundTrip bounds connecting and each statement.
	roundTrip = 5 * time.Second
	// quiet is how long the connection may be silent before it is tried: a
	// peer that vanished without a word would never be noticed by listening.
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

// New makes a carrier for the replicas on a database; url is a connection
// string as pgx reads it. It does not connect.
func New(url string, log *slog.Logger) (*Carrier, error) {
	if err := pgurl.Check(url); err != nil {
		return nil, fmt.Errorf("pgwake: %w", err)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("pgwake: %w", err)
	}
	config.RuntimeParams["application_name"] = "gatehouse hints"
	return &Carrier{config: config, origin: uuid.NewString(), log: log, quiet: quiet, listening: make(chan struct{}, 1)}, nil
}

// Takes leaves out what is handed to one replica alone.
func (*Carrier) Takes(topic string) bool { return !strings.HasPrefix(topic, "push:") }

// Run carries until ctx ends.
func (c *Carrier) Run(ctx context.Context, out *wake.Queue, deliver func(string)) {
	var retry wake.Retry
	for failing := false; ctx.Err() == nil; retry.Pause(ctx) {
		err := c.session(ctx, out, deliver, func() {
			if failing {
				c.log.InfoContext(ctx, "hints from other replicas by PostgreSQL again")
			}
			failing = false
			retry.Succeeded()
		})
		if ctx.Err() == nil && !failing {
			failing = true
			c.log.WarnContext(ctx, "no hints from other replicas by PostgreSQL; polling goes on", "error", err)
		}
	}
}

// session connects and carries until something fails or ctx ends.
func (c *Carrier) session(ctx context.Context, out *wake.Queue, deliver func(string), connected func()) error {
	dial, cancel := context.WithTimeout(ctx, roundTrip)
	defer cancel()
	conn, err := pgx.ConnectConfig(dial, c.config)
	if err != nil {
		return err
	}
	defer func() {
		// With a context of its own, to say goodbye even after ctx ended.
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(bye) // what is left of it is the server's to clean up
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

// turn listens until there is something to send, and sends it.
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

// listen delivers what comes until the queue has a round, which it returns, or
// until the connection was silent for long. Ending a wait leaves the
// connection usable: pgx closes it on anything but a time-out.
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

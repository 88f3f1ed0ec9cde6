package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	readClock = `SELECT clock_timestamp()`
	// clock is the time in a query: the transaction's, or what it will read in
	// the same round trip, before the query: what the query takes for live, the
	// transaction does too. It stands for two arguments, those of nowIfKnown.
	clock = `(SELECT coalesce(?::bigint, greatest(?::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)))`
	// lastLeaf is what was stored last.
	lastLeaf = `SELECT body FROM audit_leaf ORDER BY seq DESC LIMIT 1`
)

// nowIfKnown is Now where that needs no round trip, else the reading that it
// cannot be below; the other is nil.
func (t *readTx) nowIfKnown() (now, high any) {
	switch {
	case t.begun:
		return t.Now(), nil
	case t.s.config.Clock != nil:
		return t.s.reading(t.s.config.Clock().UnixMicro()), nil
	}
	return nil, t.s.high.Load()
}

// recall begins with the time at which something was last stored. Where the
// server's clock fell back, a process that starts would else live before those
// that run: their decisions would not be due for it, and they would take its
// leases for ended.
func (s *Store) recall(ctx context.Context, pool *pgxpool.Pool) error {
	var body string
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setTenant, AllTenants); err != nil {
			return err
		}
		return tx.QueryRow(ctx, lastLeaf).Scan(&body)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	var leaf struct{ At time.Time }
	if err == nil {
		err = json.Unmarshal([]byte(body), &leaf)
	}
	if err != nil {
		return fmt.Errorf("the last audit leaf: %w", err)
	}
	s.high.Store(leaf.At.UnixMicro())
	return nil
}

// reading is the larger of the clock and of what this process has read before.
func (s *Store) reading(clock int64) time.Time {
	for {
		high := s.high.Load()
		if clock <= high {
			s.standing(time.Duration(high-clock) * time.Microsecond)
			return time.UnixMicro(high).UTC()
		}
		if s.high.CompareAndSwap(high, clock) {
			s.lag.Store(0)
			return time.UnixMicro(clock).UTC()
		}
	}
}

// lastReading is for a transaction that failed before it could ask. The clock
// of this process has no say in what others go by.
func (s *Store) lastReading() time.Time {
	if high := s.high.Load(); high > 0 {
		return time.UnixMicro(high).UTC()
	}
	return time.Now().UTC().Truncate(time.Microsecond)
}

// tolerated is how far the server's clock may be behind what was read before
// somebody is told: until it has caught up, time stands still, and with it
// holds, retries, leases and expiries.
const tolerated = 10 * time.Second

// ClockBehind is how far the server's clock was behind what was read before,
// when it was last read: 0 up to ten seconds, within which nobody notices.
func (s *Store) ClockBehind() time.Duration { return time.Duration(s.lag.Load()) }

// standing tells, once a minute, that time stands still.
func (s *Store) standing(behind time.Duration) {
	if behind < tolerated {
		s.lag.Store(0)
		return
	}
	s.lag.Store(int64(behind))
	now := time.Now().Unix()
	if last := s.told.Load(); now-last >= 60 && s.told.CompareAndSwap(last, now) {
		s.log.Error("postgres: the database's clock is behind the store's; time stands still until it has caught up", "behind", behind)
	}
}

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
	// clock is the current time within a query: the transaction's clock reading, if there is one. Otherwise the
	// query reads the clock itself, just after the transaction does so in the same round trip. Its two arguments
	// are the results of nowIfKnown.
	clock = `(SELECT coalesce(?::bigint, greatest(?::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)))`
	// lastLeaf is the leaf that was stored last.
	lastLeaf = `SELECT body FROM audit_leaf ORDER BY seq DESC LIMIT 1`
)

// nowIfKnown returns Now if that needs no round trip, otherwise the lower bound high of the
// next reading. The other result is nil.
func (t *readTx) nowIfKnown() (now, high any) {
	switch {
	case t.begun:
		return t.Now(), nil
	case t.s.config.Clock != nil:
		return t.s.advanceClock(t.s.config.Clock().UnixMicro()), nil
	}
	return nil, t.s.high.Load()
}

// restoreClock starts the clock at the time of the last stored leaf. If the server's clock has
// fallen back, a new process would otherwise be behind the running ones: it would find their
// decisions not yet due, and they would find its leases ended.
func (s *Store) restoreClock(ctx context.Context, pool *pgxpool.Pool) error {
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

// advanceClock returns the larger of the clock and the highest earlier reading of this process.
func (s *Store) advanceClock(clock int64) time.Time {
	for {
		high := s.high.Load()
		if clock <= high {
			s.noteLag(time.Duration(high-clock) * time.Microsecond)
			return time.UnixMicro(high).UTC()
		}
		if s.high.CompareAndSwap(high, clock) {
			s.lag.Store(0)
			return time.UnixMicro(clock).UTC()
		}
	}
}

// lastReading is the time of a transaction that failed before it read the clock: the last reading of the
// database's clock, if there is one, because other processes do not use this machine's clock.
func (s *Store) lastReading() time.Time {
	if high := s.high.Load(); high > 0 {
		return time.UnixMicro(high).UTC()
	}
	return time.Now().UTC().Truncate(time.Microsecond)
}

// maxSilentLag is how far the server's clock may fall behind an earlier reading before the
// store reports it. Until the clock catches up, the store's time does not advance, so holds,
// retries, leases and expiries do not end.
const maxSilentLag = 10 * time.Second

// ClockBehind returns how far the server's clock was behind an earlier reading when it was last read; 0 if that
// is less than maxSilentLag.
func (s *Store) ClockBehind() time.Duration { return time.Duration(s.lag.Load()) }

// noteLag records the lag, and logs it at most once a minute.
func (s *Store) noteLag(behind time.Duration) {
	if behind < maxSilentLag {
		s.lag.Store(0)
		return
	}
	s.lag.Store(int64(behind))
	now := time.Now().Unix()
	if last := s.lagLogged.Load(); now-last >= 60 && s.lagLogged.CompareAndSwap(last, now) {
		s.log.Error("postgres: the database's clock is behind; the store's clock waits until it has caught up",
			"behind", behind)
	}
}

package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// View runs fn on one snapshot. When ctx ends, the running statement ends too.
func (s *Store) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return s.view(ctx, tenant, false, func(t *readTx) error { return fn(t) })
}

// Read is a View of one method call, in one round trip.
func (s *Store) Read(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return s.view(ctx, tenant, true, func(t *readTx) error { return fn(t) })
}

// readQueues is passed to closures that read for all tenants. Its methods are the methods of readTx that
// call AllTenants first.
type readQueues struct{ *readTx }

var (
	_ gatehouse.ReadTx     = (*readTx)(nil)
	_ gatehouse.ReadQueues = readQueues{}
)

// In moves the transaction to a tenant.
func (q readQueues) In(tenant string) gatehouse.ReadTx {
	q.useTenant(tenant)
	return q.readTx
}

// ViewQueues is View for all tenants.
func (s *Store) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.view(ctx, "", false, func(t *readTx) error { return fn(readQueues{t}) })
}

// ReadQueues is ViewQueues for one method call, in one round trip.
func (s *Store) ReadQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.view(ctx, "", true, func(t *readTx) error { return fn(readQueues{t}) })
}

// maxConnectRetry is how long a View retries while the server refuses connections, for example
// during a restart. No statement was sent by then, so a retry is always safe.
const maxConnectRetry = time.Second

// acquireView takes a view slot and a connection. Between attempts it returns the slot, so that
// other Views can wait at the same time.
func (s *Store) acquireView(ctx context.Context) (*pgxpool.Conn, error) {
	began := time.Now()
	for pause := maxConnectRetry / 20; ; pause *= 2 {
		if err := s.takeSlot(ctx, s.viewSlots); err != nil {
			return nil, err
		}
		c, err := s.acquire(ctx)
		if err == nil {
			return c, nil
		}
		<-s.viewSlots
		if kindOf(err) != lost || time.Since(began)+pause > s.config.maxConnectRetry {
			return nil, err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-s.closing:
			timer.Stop()
			return nil, errClosed
		}
	}
}

func (s *Store) view(ctx context.Context, tenant string, single bool, fn func(*readTx) error) error {
	t := &readTx{s: s, ctx: ctx, view: true, single: single}
	t.Reads = shared.Reads{Reader: t}
	t.useTenant(tenant)
	defer t.endView()
	if !single {
		if err := t.connectView(); err != nil {
			return err
		}
	}
	err := fn(t)
	if t.err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = t.err
	}
	return err
}

// connectView takes a view slot and a connection.
func (t *readTx) connectView() error {
	if t.conn, t.err = t.s.acquireView(t.ctx); t.err != nil {
		return t.err
	}
	t.c = t.conn.Conn()
	return nil
}

// endView returns what connectView took, and ends the Read's turn in the queue.
func (t *readTx) endView() {
	t.ended = true
	if t.readDone != nil {
		t.readDone()
	}
	if t.conn == nil {
		return
	}
	leave := func() {
		t.finish()
		<-t.s.viewSlots
	}
	if t.inTransaction() {
		go leave() // nobody has to wait for the end of a read
	} else {
		leave()
	}
}

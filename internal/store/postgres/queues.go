package postgres

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// readQueues and queues are passed to closures for all tenants. Their methods are the methods
// of readTx and tx that call AllTenants first.
type readQueues struct{ *readTx }

type queues struct{ *tx }

var (
	_ gatehouse.ReadTx     = (*readTx)(nil)
	_ gatehouse.Tx         = (*tx)(nil)
	_ gatehouse.ReadQueues = readQueues{}
	_ gatehouse.Queues     = queues{}
)

// In moves the transaction to a tenant.
func (q readQueues) In(tenant string) gatehouse.ReadTx {
	q.useTenant(tenant)
	return q.readTx
}

// In moves the transaction to a tenant.
func (q queues) In(tenant string) gatehouse.Tx {
	q.useTenant(tenant)
	return q.tx
}

// ViewQueues is View for all tenants.
func (s *Store) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.view(ctx, "", false, func(t *readTx) error { return fn(readQueues{t}) })
}

// ReadQueues is ViewQueues of one question, in one round trip.
func (s *Store) ReadQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.view(ctx, "", true, func(t *readTx) error { return fn(readQueues{t}) })
}

// UpdateQueues is Update for all tenants.
func (s *Store) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return s.update(ctx, "", func(t *tx) error { return fn(queues{t}) })
}

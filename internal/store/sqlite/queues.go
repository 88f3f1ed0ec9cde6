package sqlite

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// readQueues and queues are handed to closures that work for all tenants. They
// have the methods of readTx and tx whose statements name no tenant.
type readQueues struct{ *readTx }

type queues struct{ *tx }

var (
	_ gatehouse.ReadQueues = readQueues{}
	_ gatehouse.Queues     = queues{}
)

// In scopes the transaction to a tenant.
func (q readQueues) In(tenant string) gatehouse.ReadTx {
	q.tenant = tenant
	return q.readTx
}

// In scopes the transaction to a tenant.
func (q queues) In(tenant string) gatehouse.Tx {
	q.tenant = tenant
	return q.tx
}

// ViewQueues is View for all tenants.
func (s *Store) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.view(ctx, "", func(t *readTx) error { return fn(readQueues{t}) })
}

// ReadQueues is ViewQueues: there is no remote database here.
func (s *Store) ReadQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.ViewQueues(ctx, fn)
}

// UpdateQueues is Update for all tenants.
func (s *Store) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return s.update(ctx, "", func(t *tx) error { return fn(queues{t}) })
}

package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// tx implements gatehouse.Tx. It needs no row locks: the writer runs one transaction at a time.
type tx struct {
	readTx
	shared.Writes
	w         *writer
	known     knownAction
	knownPush knownPush
	waiting   unnumbered
}

// queues is passed to closures that write for all tenants. The methods of gatehouse.Queues name no tenant in
// their statements.
type queues struct{ *tx }

var (
	_ gatehouse.ReadTx     = (*readTx)(nil)
	_ gatehouse.ReadQueues = readQueues{}
	_ gatehouse.Tx         = (*tx)(nil)
	_ gatehouse.Queues     = queues{}
)

// Tenant is the transaction's tenant; "" while it works for all tenants.
func (t *readTx) Tenant() string { return t.tenant }

// AllTenants does nothing: here a statement that names no tenant applies to all tenants anyway.
func (t *readTx) AllTenants() (restore func()) { return func() {} }

// Each calls row for each row of the result.
func (t *readTx) Each(sql string, row func(shared.Row) error, args ...any) error {
	return t.each(sql, func(r *stmt) error { return row(r) }, args...)
}

// Write runs a statement.
func (t *tx) Write(sql string, args ...any) error {
	_, err := t.exec(sql, args...)
	return err
}

// WriteOrFail runs a statement. If it changes no row, the error is noRowErr.
func (t *tx) WriteOrFail(noRowErr error, sql string, args ...any) error {
	n, err := t.exec(sql, args...)
	if err == nil && n == 0 {
		return noRowErr
	}
	return err
}

// Returning is Each: SQLite runs the whole statement before it returns the first row.
func (t *tx) Returning(sql string, row func(shared.Row) error, args ...any) error {
	return t.Each(sql, row, args...)
}

// In scopes the transaction to a tenant.
func (q queues) In(tenant string) gatehouse.Tx {
	q.tenant = tenant
	return q.tx
}

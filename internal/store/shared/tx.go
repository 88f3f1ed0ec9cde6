package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Reader is an engine's transaction, for statements whose text is the same on both engines. $1 is the
// first argument, $2 the second, and so on.
type Reader interface {
	Tenant() string
	Now() time.Time
	// AllTenants makes the next statements apply to all tenants, until the caller calls restore.
	AllTenants() (restore func())
	// Each calls row for each row of the result.
	Each(sql string, row func(Row) error, args ...any) error
}

// Writer is a Reader that writes.
type Writer interface {
	Reader
	Write(sql string, args ...any) error
	// WriteOrFail is Write, but the transaction fails with noRowErr if the statement writes no row.
	// noRowErr is ErrConflict or ErrNotFound. WriteOrFail returns the error, or the commit does.
	WriteOrFail(noRowErr error, sql string, args ...any) error
	// Returning is Each for a statement that writes.
	Returning(sql string, row func(Row) error, args ...any) error
}

// Reads are the reads whose SQL is the same on both engines.
type Reads struct{ Reader }

// Writes are the writes whose SQL is the same on both engines.
type Writes struct{ Writer }

// Owns returns ErrOtherTenant unless a row's tenant is the transaction's tenant.
func (t Writes) Owns(tenant string) error {
	if tenant != t.Tenant() {
		return gatehouse.ErrOtherTenant
	}
	return nil
}

// Append returns a row function that appends each row to a list.
func Append[T any](list *[]T, scan func(Row) (T, error)) func(Row) error {
	return func(r Row) error {
		v, err := scan(r)
		*list = append(*list, v)
		return err
	}
}

// list reads all rows of the result.
func list[T any](t Reader, scan func(Row) (T, error), sql string, args ...any) (all []T, err error) {
	err = t.Each(sql, Append(&all, scan), args...)
	return all, err
}

// find reads one row; ErrNotFound if there is none.
func find[T any](t Reader, scan func(Row) (T, error), sql string, args ...any) (row T, err error) {
	found := false
	err = t.Each(sql, func(r Row) (err error) {
		found = true
		row, err = scan(r)
		return err
	}, args...)
	if err == nil && !found {
		err = gatehouse.ErrNotFound
	}
	return row, err
}

// number reads one integer; 0 if there is no row.
func number(t Reader, sql string, args ...any) (n int, err error) {
	err = t.Each(sql, func(r Row) error { n = int(r.Int()); return nil }, args...)
	return n, err
}

// timeOrZero reads one time; the zero time for NULL.
func timeOrZero(t Reader, sql string, args ...any) (at time.Time, err error) {
	err = t.Each(sql, func(r Row) error {
		if next := r.TimePtr(); next != nil {
			at = *next
		}
		return nil
	}, args...)
	return at, err
}

func scanText(r Row) (string, error) { return r.Text(), nil }

// MaxText sorts after every id and every name.
const MaxText = "\U0010FFFF"

// listing describes a page of a list that is ordered by id. first is the id after which the first page
// begins: MaxText if the order is descending, else "".
type listing struct {
	kind, cursor, first string
	limit               int
	filter              []string
}

// page reads a page. In sql, $1 is the tenant, $2 the id after which the page begins, $3 the number of rows,
// and $4 the first of args.
func page[T any](
	t Reader, l listing, scan func(Row) (T, error), id func(T) string, sql string, args ...any,
) (p gatehouse.Page[T], err error) {
	c, err := ParseCursor(l.cursor, l.kind, l.filter...)
	if err != nil {
		return p, err
	}
	after := c.ID
	if after == "" {
		after = l.first
	}
	limit := PageLimit(l.limit)
	p.Items = []T{}
	args = append([]any{t.Tenant(), after, limit + 1}, args...)
	err = t.Each(sql, Append(&p.Items, scan), args...)
	return Finish(p, limit, func(v T) Cursor { return Cursor{ID: id(v)} }, l.kind, l.filter...), err
}

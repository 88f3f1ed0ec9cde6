package postgres

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// arrayStatement is a statement of a transition, for any number of rows at once: one row for an Update that
// runs alone, the rows of all members for a group. Its text is complete: it can be pasted into psql.
//
// Argument $1 is the array of the rows' first column, $2 that of the second, and so on. The columns are
// the fields of the row type, in their order; those of a struct in a field follow with the field's name
// before theirs. The text unnests the first array, and finds the row's elements of the others by its number
// n: unnest of many arrays costs three times as much. The last argument is the number of rows. It is a LIMIT,
// so the planner expects few rows and finds each by an index, whatever it believes about the sizes of
// tables. A subquery with OFFSET 0 is planned by itself, as a lookup for a single row.
//
// A read returns the number of the row, from 1, before its own columns.
type arrayStatement struct {
	text string
	// forGroup is the text that a group sends. It differs only for a read that locks: its comment SKIP LOCKED
	// becomes part of the statement, since a group waits for no lock. Rows that somebody else holds are missing
	// from the result.
	forGroup string
	// single is the text for one row, of a write with so many columns that arrays would be slow. Its
	// arguments are the columns themselves.
	single string
	// needed says that a member runs alone if the read finds nothing for it.
	needed bool
	// rank orders the writes of a group, lowest first. It is 0 for a read.
	rank    int
	columns []column
	// subject is the index of the column that names the written object, -1 for none. No two members of
	// a group write the same one.
	subject int
	// distinct says that a group sends equal rows once.
	distinct bool
	// key is the index of the column that is an idempotency key, -1 for none. No two members of a group
	// write the same key: the statement would find it free for both, as it does not see its own writes.
	key int
}

// of is a statement for rows of type R.
type of[R any] struct{ *arrayStatement }

func newStatement[R any](text string) of[R] {
	columns := columnsOf(nil, column{typ: reflect.TypeFor[R]()})
	forGroup := strings.ReplaceAll(text, "/* SKIP LOCKED */", "SKIP LOCKED")
	return of[R]{&arrayStatement{text: text, forGroup: forGroup, subject: -1, key: -1, columns: columns}}
}

func reads[R any](text string) of[R] { return newStatement[R](text) }

// locks is a read that locks the row that a member needs.
func locks[R any](text string) of[R] {
	s := newStatement[R](text)
	s.needed = true
	return s
}

// writes is a write. subject names the column with that role, "" for none.
func writes[R any](rank int, subject, text string) of[R] {
	s := newStatement[R](text)
	s.rank, s.subject = rank, s.column(subject)
	return s
}

// single is a write of one row, which no group sends.
func single[R any](text string) of[R] { return newStatement[R]("").withSingle(text) }

// withSingle sets the text for one row.
func (s of[R]) withSingle(text string) of[R] {
	s.single = text
	return s
}

// withKey names the column that is an idempotency key.
func (s of[R]) withKey(name string) of[R] {
	s.key = s.column(name)
	return s
}

// once sets distinct.
func (s of[R]) once() of[R] {
	s.distinct = true
	return s
}

func (s *arrayStatement) column(name string) int {
	return slices.IndexFunc(s.columns, func(c column) bool { return c.name == name })
}

// The order of the writes of a group. Those of runs come first, up to rankLastOfRuns.
const (
	rankClaim = iota + 1
	rankUsage
	rankAttempt
	rankStep
	rankPass
	rankRun
	rankOutput
	rankWakeParent
	rankReflexion
	rankAction
	rankLockCeiling
	rankClaims
	rankCheckCeiling
	rankVote
	rankApproval
	rankPushUpdate
	rankMove
	rankPush
	rankReceipt
	rankMirror
	rankWake
	rankLeaf
	rankAnswer

	rankLastOfRuns = rankReflexion
)

// ask is the read for one row.
func (s of[R]) ask(fn func(*row) error, r R) query {
	return query{statement: s.arrayStatement, rows: []any{r}, row: fn}
}

// write queues one row.
func (s of[R]) write(t *tx, r R) error {
	return t.queueWrite(s.row(t, r))
}

func (s of[R]) row(t *tx, r R) query {
	return query{statement: s.arrayStatement, rows: []any{r}, tenant: t.tenant}
}

// arguments returns the columns of the rows, and the number of rows.
func (s *arrayStatement) arguments(rows []any) []any {
	values := make([]reflect.Value, len(rows))
	for i, r := range rows {
		values[i] = reflect.ValueOf(r)
	}
	args := make([]any, 0, len(s.columns)+1)
	for i := range s.columns {
		args = append(args, s.columns[i].array(values))
	}
	return append(args, int64(len(rows)))
}

// scalars returns the columns of one row.
func (s *arrayStatement) scalars(r any) []any {
	args := make([]any, len(s.columns))
	for i := range s.columns {
		v, ok := s.columns[i].value(reflect.ValueOf(r))
		switch c := &s.columns[i]; {
		case !ok: // NULL
		case c.typ == timeType:
			args[i] = v.Interface().(time.Time).UnixMicro()
		case c.typ.Kind() == reflect.Array:
			args[i] = hashBytes(v)
		case c.typ.Kind() == reflect.Slice:
			args[i] = v.Bytes()
		case c.typ.Kind() == reflect.Bool:
			args[i] = v.Bool()
		case c.typ.Kind() == reflect.String:
			args[i] = v.String()
		default:
			args[i] = v.Int()
		}
	}
	return args
}

func hashBytes(v reflect.Value) []byte {
	h := v.Convert(hashType).Interface().([32]byte)
	return h[:]
}

// textAt is a text column of a row; "" for NULL.
func (s *arrayStatement) textAt(r any, column int) string {
	if column < 0 {
		return ""
	}
	v, ok := s.columns[column].value(reflect.ValueOf(r))
	if !ok {
		return ""
	}
	return v.String()
}

// column is a field of a row. It is optional if one of the pointers on the way to it may be nil; then it
// is NULL.
type column struct {
	name     string
	path     []int
	typ      reflect.Type
	optional bool
}

var (
	timeType = reflect.TypeFor[time.Time]()
	hashType = reflect.TypeFor[[32]byte]()
)

// columnsOf appends the columns of a field, or of its fields if it is a struct.
func columnsOf(list []column, c column) []column {
	if c.typ.Kind() == reflect.Pointer {
		c.typ, c.optional = c.typ.Elem(), true
	}
	if c.typ.Kind() != reflect.Struct || c.typ == timeType {
		return append(list, c)
	}
	for i := range c.typ.NumField() {
		f, in := c.typ.Field(i), c
		if !f.Anonymous {
			in.name += f.Name
		}
		in.typ, in.path = f.Type, append(c.path[:len(c.path):len(c.path)], i)
		list = columnsOf(list, in)
	}
	return list
}

// value is the column of a row; ok is false for NULL.
func (c *column) value(v reflect.Value) (field reflect.Value, ok bool) {
	for i := -1; ; i++ {
		if i >= 0 {
			v = v.Field(c.path[i])
		}
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		if i == len(c.path)-1 {
			return v, true
		}
	}
}

// array is the column of all rows. A time is a number of microseconds.
func (c *column) array(rows []reflect.Value) any {
	switch {
	case c.typ == timeType:
		return collect(c, rows, func(v reflect.Value) int64 { return v.Interface().(time.Time).UnixMicro() })
	case c.typ.Kind() == reflect.Array:
		return collect(c, rows, hashBytes)
	case c.typ.Kind() == reflect.Slice:
		return collect(c, rows, reflect.Value.Bytes)
	case c.typ.Kind() == reflect.Bool:
		return collect(c, rows, reflect.Value.Bool)
	case c.typ.Kind() == reflect.String:
		return collect(c, rows, reflect.Value.String)
	}
	return collect(c, rows, reflect.Value.Int)
}

func collect[T any](c *column, rows []reflect.Value, get func(reflect.Value) T) any {
	list := make([]T, len(rows))
	if !c.optional {
		for i, r := range rows {
			v, _ := c.value(r)
			list[i] = get(v)
		}
		return list
	}
	some := make([]*T, len(rows))
	for i, r := range rows {
		if v, ok := c.value(r); ok {
			list[i] = get(v)
			some[i] = &list[i]
		}
	}
	return some
}

// orNull is nil for an absent text.
func orNull[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

// idRow names an object of a tenant.
type idRow struct{ Tenant, ID string }

// failure is the part of a gatehouse.Failure that has columns; nil for none.
type failure struct{ Code, Detail string }

func failureOf(f *gatehouse.Failure) *failure {
	if f == nil {
		return nil
	}
	return &failure{f.Code, f.Detail}
}

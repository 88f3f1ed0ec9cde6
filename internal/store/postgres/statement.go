package postgres

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// arrayStatement is a statement of a transition, for any number of rows: one row for an Update that
// runs alone, the rows of all members for a group. Its text is complete and can be pasted into psql.
//
// Argument $1 is the array of the first column of all rows, $2 that of the second column, and so on.
// The columns are the fields of the row type, in their order. A field of struct type is replaced by its
// own fields, whose names are prefixed with the name of the struct field unless the struct is embedded.
// The text unnests only the first array WITH ORDINALITY, and indexes the other arrays by that row number
// n: to unnest many arrays costs three times as much. The last argument is the number of rows. The text
// uses it as LIMIT, so that the planner expects few rows and looks each row up in an index, even if its
// statistics of the tables are wrong. The planner treats a subquery with OFFSET 0 separately, as a lookup
// of one row.
//
// A read returns the row number n, from 1, before its other columns.
type arrayStatement struct {
	text string
	// forGroup is the text that a group sends. It differs from text only for a locking read: the comment
	// SKIP LOCKED becomes part of the statement, because a group waits for no lock. Rows that another
	// transaction holds are missing from the result.
	forGroup string
	// single is the text for one row, if the statement is a write with so many columns that arrays are
	// slow. Its arguments are the values of the columns.
	single string
	// needed says that a member runs alone if this read finds no row for the member.
	needed bool
	// rank orders the writes of a group, lowest first. It is 0 for a read.
	rank    int
	columns []column
	// subject is the index of the column that identifies the written object, -1 for none. No two members
	// of a group write the same object.
	subject int
	// distinct says that a group drops duplicate rows.
	distinct bool
	// key is the index of the column that is an idempotency key, -1 for none. No two members of a group
	// write the same key: the statement does not see its own writes, so it would find the key free for
	// both.
	key int
}

// statementOf is an arrayStatement whose rows are of type R.
type statementOf[R any] struct{ *arrayStatement }

func newStatement[R any](text string) statementOf[R] {
	columns := columnsOf(nil, column{typ: reflect.TypeFor[R]()})
	forGroup := strings.ReplaceAll(text, "/* SKIP LOCKED */", "SKIP LOCKED")
	return statementOf[R]{&arrayStatement{text: text, forGroup: forGroup, subject: -1, key: -1, columns: columns}}
}

func reads[R any](text string) statementOf[R] { return newStatement[R](text) }

// locks is a read that locks rows. A group member without such a row runs alone.
func locks[R any](text string) statementOf[R] {
	s := newStatement[R](text)
	s.needed = true
	return s
}

// writes is a write. subject is the name of the subject column; see arrayStatement.
func writes[R any](rank int, subject, text string) statementOf[R] {
	s := newStatement[R](text)
	s.rank, s.subject = rank, s.column(subject)
	return s
}

// single is a write of one row, which no group sends.
func single[R any](text string) statementOf[R] { return newStatement[R]("").withSingle(text) }

// withSingle sets the text for one row.
func (s statementOf[R]) withSingle(text string) statementOf[R] {
	s.single = text
	return s
}

// withKey keeps rows with the same idempotency key out of one group.
func (s statementOf[R]) withKey() statementOf[R] {
	s.key = s.column("IdempotencyKey")
	return s
}

// withDistinct makes groups drop duplicate rows.
func (s statementOf[R]) withDistinct() statementOf[R] {
	s.distinct = true
	return s
}

// column returns the index of a column, -1 for an unknown name.
func (s *arrayStatement) column(name string) int {
	return slices.IndexFunc(s.columns, func(c column) bool { return c.name == name })
}

// The order of the writes of a group. The writes of workflow runs come first, up to rankLastOfRuns.
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

// ask returns the read with one row of arguments. fn is called for each row of the result.
func (s statementOf[R]) ask(fn func(*row) error, r R) query {
	return query{statement: s.arrayStatement, rows: []any{r}, row: fn}
}

// write queues the write of one row.
func (s statementOf[R]) write(t *tx, r R) error {
	return t.queueWrite(s.row(t, r))
}

func (s statementOf[R]) row(t *tx, r R) query {
	return query{statement: s.arrayStatement, rows: []any{r}, tenant: t.tenant}
}

// arguments returns the array of each column, and then the number of rows.
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

// scalars returns the values of the columns of one row.
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

// textAt returns the value of a text column of a row; "" for NULL.
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

// column is a field of a row.
type column struct {
	name string
	// path holds the index of the field in each nested struct, outermost first.
	path []int
	typ  reflect.Type
	// optional says that the field, or a struct on its path, is a pointer. A nil pointer is NULL.
	optional bool
}

var (
	timeType = reflect.TypeFor[time.Time]()
	hashType = reflect.TypeFor[[32]byte]()
)

// columnsOf appends a field to list. If the field is a struct, columnsOf appends the fields of the struct
// instead.
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

// value returns the column's value in a row; ok is false for NULL.
func (c *column) value(row reflect.Value) (value reflect.Value, ok bool) {
	value, ok = follow(row)
	for _, i := range c.path {
		if !ok {
			return value, false
		}
		value, ok = follow(value.Field(i))
	}
	return value, ok
}

// follow returns the target of a pointer, and any other value unchanged. ok is false for a nil pointer.
func follow(v reflect.Value) (target reflect.Value, ok bool) {
	switch {
	case v.Kind() != reflect.Pointer:
		return v, true
	case v.IsNil():
		return v, false
	}
	return v.Elem(), true
}

// array returns the column's values in all rows. A time is in microseconds since 1970.
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

// collect returns the column's values as a []T, or as a []*T with nil for NULL if the column is optional.
func collect[T any](c *column, rows []reflect.Value, get func(reflect.Value) T) any {
	list := make([]T, len(rows))
	if !c.optional {
		for i, r := range rows {
			v, _ := c.value(r)
			list[i] = get(v)
		}
		return list
	}
	pointers := make([]*T, len(rows))
	for i, r := range rows {
		if v, ok := c.value(r); ok {
			list[i] = get(v)
			pointers[i] = &list[i]
		}
	}
	return pointers
}

// orNull returns nil for an empty text, else a pointer to the text.
func orNull[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

// idRow identifies an object of a tenant.
type idRow struct{ Tenant, ID string }

// failure has the fields of a gatehouse.Failure that are stored in columns. A nil *failure is NULL.
type failure struct{ Code, Detail string }

func failureOf(f *gatehouse.Failure) *failure {
	if f == nil {
		return nil
	}
	return &failure{f.Code, f.Detail}
}

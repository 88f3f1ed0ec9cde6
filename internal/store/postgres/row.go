package postgres

import (
	"encoding/binary"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// row is the current row of a result, as it came over the wire: integers,
// booleans and bytes in binary, texts as they are. Its methods read from left
// to right and allocate nothing but what they return.
type row struct {
	raw    [][]byte
	column int
}

func (r *row) next() []byte {
	b := r.raw[r.column]
	r.column++
	return b
}

// skip passes columns.
func (r *row) skip(n int) { r.column += n }

// null reports whether the next column is NULL, without passing it.
func (r *row) null() bool { return r.raw[r.column] == nil }

func (r *row) text() string { return string(r.next()) }

func (r *row) json() gatehouse.JSON { return gatehouse.JSON(r.next()) }

func (r *row) int() int64 {
	b := r.next()
	switch len(b) {
	case 8:
		return int64(binary.BigEndian.Uint64(b))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b)))
	}
	return 0
}

func (r *row) bool() bool { b := r.next(); return len(b) == 1 && b[0] == 1 }

func (r *row) time() time.Time { return time.UnixMicro(r.int()).UTC() }

func (r *row) timePtr() *time.Time {
	if r.null() {
		r.column++
		return nil
	}
	t := r.time()
	return &t
}

// epoch2000 is PostgreSQL's zero time, in microseconds since 1970.
const epoch2000 = 946_684_800_000_000

// timestamp reads a timestamptz, in microseconds since 1970.
func (r *row) timestamp() int64 { return r.int() + epoch2000 }

func (r *row) hash() (h [32]byte) {
	copy(h[:], r.next())
	return h
}

func (r *row) blob() []byte { return append([]byte(nil), r.next()...) }

// listAt reads a stored list from the next column, and keeps the first error.
func listAt[T ~string](r *row, err *error) []T {
	list, e := shared.DecodeList[T](r.text())
	if e != nil && *err == nil {
		*err = e
	}
	return list
}

func jsonAt[T any](r *row, err *error) *T {
	v, e := shared.DecodeJSON[T](r.text())
	if e != nil && *err == nil {
		*err = e
	}
	return v
}

// bind makes arguments what the columns hold: times as microseconds, "" of an
// optional text as NULL by way of orNull.
func bind(args []any) []any {
	for i, a := range args {
		switch v := a.(type) {
		case time.Time:
			args[i] = v.UnixMicro()
		case *time.Time:
			if v == nil {
				args[i] = nil
			} else {
				args[i] = v.UnixMicro()
			}
		case gatehouse.JSON:
			args[i] = string(v)
		case int:
			args[i] = int64(v)
		}
	}
	return args
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

package postgres

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// row is the current row of a result in wire format: integers, booleans and bytes in binary,
// texts as they are. Its methods read the columns from left to right and allocate only the values
// that they return.
type row struct {
	raw    [][]byte
	column int
	// kept holds the texts of all columns once keep was called.
	kept []string
}

// keep copies a whole row at once: the dozens of texts of a wide row become parts of one string.
// Most texts (tenant, type, fingerprint of the connector) equal the previous row's and are not
// copied again. before is the result of keep for the previous row, nil for none; the caller must
// not use it afterwards. A text keeps all texts in memory that were copied together with it.
func (r *row) keep(before []string) []string {
	if before == nil {
		before = make([]string, len(r.raw))
	}
	r.kept = before
	n := 0
	for i, v := range r.raw {
		if string(v) != r.kept[i] {
			n += len(v)
		}
	}
	var b strings.Builder
	b.Grow(n) // one allocation
	for i, v := range r.raw {
		if string(v) != r.kept[i] {
			from := b.Len()
			b.Write(v)
			r.kept[i] = b.String()[from:]
		}
	}
	return r.kept
}

func (r *row) next() []byte {
	b := r.raw[r.column]
	r.column++
	return b
}

// Skip skips n columns.
func (r *row) Skip(n int) { r.column += n }

// Null reports whether the next column is NULL, without reading it.
func (r *row) Null() bool { return r.raw[r.column] == nil }

func (r *row) Text() string {
	b := r.next()
	if r.kept == nil {
		return string(b)
	}
	return r.kept[r.column-1]
}

func (r *row) JSON() gatehouse.JSON { return gatehouse.JSON(r.Text()) }

func (r *row) Int() int64 {
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

func (r *row) Bool() bool { b := r.next(); return len(b) == 1 && b[0] == 1 }

func (r *row) Time() time.Time { return time.UnixMicro(r.Int()).UTC() }

func (r *row) TimePtr() *time.Time {
	if r.Null() {
		r.Skip(1)
		return nil
	}
	t := r.Time()
	return &t
}

// epoch2000 is PostgreSQL's zero time, in microseconds since 1970.
const epoch2000 = 946_684_800_000_000

// timestamp reads a timestamptz, in microseconds since 1970.
func (r *row) timestamp() int64 { return r.Int() + epoch2000 }

func (r *row) Hash() (h [32]byte) {
	copy(h[:], r.next())
	return h
}

func (r *row) Blob() []byte { return append([]byte(nil), r.next()...) }

// bind converts arguments in place to column types: times to microseconds since 1970, JSON to text, int to
// int64. Callers pass optional texts through shared.OrNull.
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

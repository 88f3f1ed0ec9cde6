package sqlite

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-dev/gatehouse"
)

// stmt is a prepared statement and, while it is stepped, its current row. The
// column methods read from left to right.
type stmt struct {
	c      *conn
	p      uintptr
	sql    string
	params int
	// numbers holds, for each parameter, the number in its name ($1, $2 and so on), which is the number of its
	// argument. It is nil if the parameters have no such names: then they have the order of the arguments.
	numbers []int
	// buf is C memory that holds the bound strings and blobs until the next bind.
	buf    uintptr
	size   int
	column int32
	busy   bool
}

// bind binds arguments: string, JSON, integers, bool, []byte, time.Time and
// *time.Time (microseconds since 1970). nil becomes NULL.
func (s *stmt) bind(args []any) error {
	need := 0
	for _, a := range args {
		switch v := a.(type) {
		case string:
			need += len(v)
		case gatehouse.JSON:
			need += len(v)
		case []byte:
			need += len(v)
		}
	}
	if s.buf == 0 || need > s.size {
		if s.buf != 0 {
			libc.Xfree(s.c.tls, s.buf)
		}
		s.size = max(need+need/2, 64)
		if s.buf = libc.Xmalloc(s.c.tls, types.Size_t(s.size)); s.buf == 0 {
			s.size = 0
			return &dbError{code: sqlite3.SQLITE_NOMEM, text: "out of memory"}
		}
	}
	at := s.buf
	for i := range args {
		a := args[i]
		if s.numbers != nil {
			a = args[s.numbers[i]-1]
		}
		switch rc := s.bindOne(int32(i+1), a, &at); rc {
		case sqlite3.SQLITE_OK:
		case unsupported:
			return fmt.Errorf("bind parameter %d: the type %T is not supported", i+1, a)
		default:
			return fmt.Errorf("bind parameter %d, a %T: %w", i+1, a, s.c.failure(rc))
		}
	}
	return nil
}

// readNumbers reads the numbers of the parameters from their names. Parameters are counted in order of their
// first use, each name once.
func (s *stmt) readNumbers() error {
	for i := range s.params {
		name := sqlite3.Xsqlite3_bind_parameter_name(s.c.tls, s.p, int32(i+1))
		number, ok := strings.CutPrefix(libc.GoString(name), "$")
		if name == 0 || !ok {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > s.params {
			return fmt.Errorf("parameter $%s is not one of the %d parameters", number, s.params)
		}
		s.numbers = append(s.numbers, n)
	}
	if s.numbers != nil && len(s.numbers) != s.params {
		return errors.New("the statement mixes numbered and other parameters")
	}
	return nil
}

// unsupported is the result of bindOne for an argument whose type it does not know. It is not a code of SQLite.
const unsupported int32 = -1

func (s *stmt) bindOne(i int32, a any, at *uintptr) int32 {
	tls := s.c.tls
	switch v := a.(type) {
	case string:
		return s.bindText(i, v, at)
	case gatehouse.JSON:
		return s.bindText(i, string(v), at)
	case int64:
		return sqlite3.Xsqlite3_bind_int64(tls, s.p, i, sqlite3.Tsqlite_int64(v))
	case int:
		return sqlite3.Xsqlite3_bind_int64(tls, s.p, i, sqlite3.Tsqlite_int64(v))
	case bool:
		if v {
			return sqlite3.Xsqlite3_bind_int64(tls, s.p, i, 1)
		}
		return sqlite3.Xsqlite3_bind_int64(tls, s.p, i, 0)
	case time.Time:
		return sqlite3.Xsqlite3_bind_int64(tls, s.p, i, sqlite3.Tsqlite_int64(v.UnixMicro()))
	case *time.Time:
		if v == nil {
			return sqlite3.Xsqlite3_bind_null(tls, s.p, i)
		}
		return sqlite3.Xsqlite3_bind_int64(tls, s.p, i, sqlite3.Tsqlite_int64(v.UnixMicro()))
	case []byte:
		if v == nil {
			return sqlite3.Xsqlite3_bind_null(tls, s.p, i)
		}
		p := *at
		copy(libc.GoBytes(p, len(v)), v)
		*at += uintptr(len(v))
		return sqlite3.Xsqlite3_bind_blob(tls, s.p, i, p, int32(len(v)), 0)
	case nil:
		return sqlite3.Xsqlite3_bind_null(tls, s.p, i)
	}
	return unsupported
}

func (s *stmt) bindText(i int32, v string, at *uintptr) int32 {
	p := *at
	copy(libc.GoBytes(p, len(v)), v)
	*at += uintptr(len(v))
	return sqlite3.Xsqlite3_bind_text(s.c.tls, s.p, i, p, int32(len(v)), 0)
}

func (s *stmt) step() (bool, error) {
	s.column = 0
	switch rc := sqlite3.Xsqlite3_step(s.c.tls, s.p); rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.failure(rc)
	}
}

func (s *stmt) drain() error {
	for {
		if more, err := s.step(); err != nil || !more {
			return err
		}
	}
}

func (s *stmt) reset() {
	sqlite3.Xsqlite3_reset(s.c.tls, s.p)
	s.busy = false
}

func (s *stmt) finalize() {
	sqlite3.Xsqlite3_finalize(s.c.tls, s.p)
	if s.buf != 0 {
		libc.Xfree(s.c.tls, s.buf)
		s.buf = 0
	}
}

// raw returns the next column's bytes, valid until the next step.
func (s *stmt) raw() []byte {
	p := sqlite3.Xsqlite3_column_blob(s.c.tls, s.p, s.column)
	n := sqlite3.Xsqlite3_column_bytes(s.c.tls, s.p, s.column)
	s.column++
	if p == 0 || n == 0 {
		return nil
	}
	return libc.GoBytes(p, int(n))
}

func (s *stmt) Text() string { return string(s.raw()) }

func (s *stmt) Int() int64 {
	v := sqlite3.Xsqlite3_column_int64(s.c.tls, s.p, s.column)
	s.column++
	return int64(v)
}

func (s *stmt) Bool() bool { return s.Int() != 0 }

func (s *stmt) Time() time.Time { return time.UnixMicro(s.Int()).UTC() }

func (s *stmt) TimePtr() *time.Time {
	if s.Null() {
		s.column++
		return nil
	}
	t := s.Time()
	return &t
}

// Skip skips n columns.
func (s *stmt) Skip(n int) { s.column += int32(n) }

// Null reports whether the next column is NULL, without advancing.
func (s *stmt) Null() bool {
	return sqlite3.Xsqlite3_column_type(s.c.tls, s.p, s.column) == sqlite3.SQLITE_NULL
}

func (s *stmt) Hash() (h [32]byte) {
	copy(h[:], s.raw())
	return h
}

// Blob returns a copy of the next column's bytes.
func (s *stmt) Blob() []byte { return append([]byte(nil), s.raw()...) }

// JSON reads a TEXT column.
func (s *stmt) JSON() gatehouse.JSON { return gatehouse.JSON(s.raw()) }

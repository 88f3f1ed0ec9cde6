package sqlite

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"

	"modernc.org/libc"
	_ "modernc.org/sqlite" // patches and registers the library before its first use
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is one connection to SQLite's C interface, used by one goroutine at a
// time. It calls the library directly instead of database/sql: statements live
// as long as the connection, texts are bound from one buffer per statement, and
// reading a row allocates only its texts. BenchmarkConn compares this with the
// driver and with database/sql.
type conn struct {
	tls   *libc.TLS
	db    uintptr
	stmts map[string]*stmt
	// known indexes the same statements by the address of their SQL text.
	// Nearly every text is a long constant, and hashing one costs as much as a
	// step.
	known map[*byte]*stmt
	// out is C memory for results that the library returns through pointers.
	out uintptr
}

// openConn opens the file, creating it when create is set.
func openConn(path string, create bool) (*conn, error) {
	flags := int32(sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_NOMUTEX)
	if create {
		flags |= sqlite3.SQLITE_OPEN_CREATE
	}
	c := &conn{tls: libc.NewTLS(), stmts: make(map[string]*stmt), known: make(map[*byte]*stmt)}
	c.out = libc.Xcalloc(c.tls, 2, 8)
	name, err := libc.CString(path)
	if err != nil {
		_ = c.close()
		return nil, err
	}
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, c.out, flags, 0)
	c.db = pointerAt(c.out)
	libc.Xfree(c.tls, name)
	if rc != sqlite3.SQLITE_OK {
		err := c.failure(rc)
		_ = c.close()
		return nil, err
	}
	sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	// Without this option (the query planner stability guarantee), SQLite
	// recompiles a statement whenever its plan could depend on a bound value,
	// as with every LIMIT.
	if rc := c.configure(sqlite3.SQLITE_DBCONFIG_ENABLE_QPSG, 1); rc != sqlite3.SQLITE_OK {
		err := c.failure(rc)
		_ = c.close()
		return nil, err
	}
	return c, nil
}

// configure sets one option of the connection.
func (c *conn) configure(option, value int32) int32 {
	list := libc.NewVaList(value, uintptr(0))
	defer libc.Xfree(c.tls, list)
	return sqlite3.Xsqlite3_db_config(c.tls, c.db, option, list)
}

const pointerSize = bits.UintSize / 8

func pointerAt(p uintptr) uintptr {
	b := libc.GoBytes(p, pointerSize)
	if pointerSize == 8 {
		return uintptr(binary.NativeEndian.Uint64(b))
	}
	return uintptr(binary.NativeEndian.Uint32(b))
}

func (c *conn) close() error {
	if c.tls == nil {
		return nil
	}
	c.forget()
	var err error
	if c.db != 0 {
		if rc := sqlite3.Xsqlite3_close_v2(c.tls, c.db); rc != sqlite3.SQLITE_OK {
			err = &dbError{code: rc, text: "close"}
		}
	}
	libc.Xfree(c.tls, c.out)
	c.tls.Close()
	c.tls, c.db = nil, 0
	return err
}

// forget finalizes all statements.
func (c *conn) forget() {
	for _, s := range c.stmts {
		s.finalize()
	}
	clear(c.stmts)
	clear(c.known)
}

// interrupt makes a running statement fail. It is the only method that another
// goroutine may call, and only while the connection is open.
func (c *conn) interrupt() {
	tls := libc.NewTLS()
	sqlite3.Xsqlite3_interrupt(tls, c.db)
	tls.Close()
}

// autocommit reports whether no transaction is open.
func (c *conn) autocommit() bool { return sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) != 0 }

// totalChanges counts the rows that the connection changed so far.
func (c *conn) totalChanges() int64 {
	return int64(sqlite3.Xsqlite3_total_changes64(c.tls, c.db))
}

// violatesForeignKey reports whether a deferred foreign key is still violated.
func (c *conn) violatesForeignKey() bool {
	sqlite3.Xsqlite3_db_status(c.tls, c.db, sqlite3.SQLITE_DBSTATUS_DEFERRED_FKS, c.out, c.out+8, 0)
	return int32At(c.out) != 0
}

func int32At(p uintptr) int32 { return int32(binary.NativeEndian.Uint32(libc.GoBytes(p, 4))) }

func (c *conn) lastRow() int64 { return int64(sqlite3.Xsqlite3_last_insert_rowid(c.tls, c.db)) }

func (c *conn) failure(rc int32) error {
	e := &dbError{code: rc}
	if c.db != 0 {
		if code := sqlite3.Xsqlite3_extended_errcode(c.tls, c.db); code&0xff == rc&0xff {
			e.code = code
		}
		e.text = libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))
	} else {
		e.text = libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, rc))
	}
	return e
}

// prepare compiles the first statement of a text. s is nil when the text holds
// only a comment.
func (c *conn) prepare(text uintptr) (s *stmt, tail uintptr, err error) {
	rc := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, text, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, c.out, c.out+pointerSize)
	if rc != sqlite3.SQLITE_OK {
		return nil, 0, c.failure(rc)
	}
	tail = pointerAt(c.out + pointerSize)
	p := pointerAt(c.out)
	if p == 0 {
		return nil, tail, nil
	}
	s = &stmt{c: c, p: p, params: int(sqlite3.Xsqlite3_bind_parameter_count(c.tls, p))}
	if err := s.readNumbers(); err != nil {
		s.finalize()
		return nil, 0, err
	}
	return s, tail, nil
}

// cached returns the statement for an SQL text and prepares it on first use.
func (c *conn) cached(sql string) (*stmt, error) {
	at := unsafe.StringData(sql) //nolint:gosec // compared, never followed
	if s := c.known[at]; s != nil && len(s.sql) == len(sql) {
		return s, nil // s keeps its text alive, so no other text can have that address
	}
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	text, err := libc.CString(sql)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, text)
	s, _, err := c.prepare(text)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", sql, err)
	}
	s.sql = sql
	c.stmts[sql], c.known[at] = s, s
	return s, nil
}

// script runs every statement of an SQL text without parameters.
func (c *conn) script(sql string) error {
	text, err := libc.CString(sql)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, text)
	for at := text; libc.GoBytes(at, 1)[0] != 0; {
		s, tail, err := c.prepare(at)
		if err != nil {
			return err
		}
		at = tail
		if s == nil {
			continue
		}
		err = s.drain()
		s.finalize()
		if err != nil {
			return err
		}
	}
	return nil
}

// exec runs a statement and returns the number of rows that it changed.
func (c *conn) exec(sql string, args ...any) (int, error) {
	s, err := c.bound(sql, args)
	if err != nil {
		return 0, err
	}
	err = s.drain()
	s.reset()
	if err != nil {
		return 0, err
	}
	return int(sqlite3.Xsqlite3_changes(c.tls, c.db)), nil
}

// each calls row for every row of a query. row must not run the same query.
func (c *conn) each(sql string, row func(*stmt) error, args ...any) error {
	s, err := c.bound(sql, args)
	if err != nil {
		return err
	}
	defer s.reset()
	for {
		more, err := s.step()
		if err != nil || !more {
			return err
		}
		if err := row(s); err != nil {
			return err
		}
	}
}

// first calls row for the first row, and reports whether there was one.
func (c *conn) first(sql string, row func(*stmt) error, args ...any) (bool, error) {
	s, err := c.bound(sql, args)
	if err != nil {
		return false, err
	}
	defer s.reset()
	found, err := s.step()
	if err != nil || !found {
		return false, err
	}
	return true, row(s)
}

// number reads one integer; 0 when there is no row.
func (c *conn) number(sql string, args ...any) (n int64, err error) {
	_, err = c.first(sql, func(r *stmt) error { n = r.Int(); return nil }, args...)
	return n, err
}

func (c *conn) bound(sql string, args []any) (*stmt, error) {
	s, err := c.cached(sql)
	if err != nil {
		return nil, err
	}
	if s.busy {
		return nil, fmt.Errorf("the statement is already running: %s", sql)
	}
	if len(args) != s.params {
		return nil, fmt.Errorf("%d arguments for %d parameters: %s", len(args), s.params, sql)
	}
	if err := s.bind(args); err != nil {
		return nil, err
	}
	s.busy = true
	return s, nil
}

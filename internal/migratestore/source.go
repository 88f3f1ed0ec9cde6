package migratestore

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
)

// source is the folder's file, opened twice: as a store, which holds the lock unless it only reads, and as a SQL
// database.
type source struct {
	gatehouse.Store
	db *sql.DB
	// The folder's own markers, which change with every write.
	clock, batch int64
}

// openSource opens the file and takes its lock. With readOnly, it takes no lock, so a server may have the file open.
func openSource(ctx context.Context, config sqlite.Config, readOnly bool) (s *source, err error) {
	if _, err := sqlite.FileVersion(ctx, config.Path); err != nil {
		return nil, err
	}
	s = &source{}
	if readOnly {
		s.Store, err = sqlite.Inspect(ctx, config)
	} else {
		s.Store, err = sqlite.Open(ctx, config)
	}
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: config.Path}).EscapedPath(),
		RawQuery: "mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)"}
	if s.db, err = sql.Open("sqlite", name.String()); err == nil {
		s.db.SetMaxOpenConns(1)
		err = s.db.QueryRowContext(ctx, `SELECT clock, batch FROM meta`).Scan(&s.clock, &s.batch)
	}
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("read %s: %w", config.Path, err)
	}
	return s, nil
}

func (s *source) Close() error {
	if s.db != nil {
		_ = s.db.Close()
	}
	return s.Store.Close()
}

func (s *source) count(ctx context.Context, t table) (n int64, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM `+quoted(t.name)).Scan(&n)
	return n, err
}

// after opens at most limit rows after a key, in key order. Each blob comes
// with a flag for NULL, because the driver does not distinguish NULL from an
// empty blob.
func (s *source) after(ctx context.Context, t table, key []any, limit int) (*sql.Rows, error) {
	var selected, names, marks []string
	for _, c := range t.columns {
		selected = append(selected, quoted(c.name))
		if c.kind == blob {
			selected = append(selected, quoted(c.name)+" IS NULL")
		}
	}
	for _, c := range t.key {
		names, marks = append(names, quoted(c.name)), append(marks, "?")
	}
	q := "SELECT " + strings.Join(selected, ", ") + " FROM " + quoted(t.name)
	if key != nil {
		q += " WHERE (" + strings.Join(names, ", ") + ") > (" + strings.Join(marks, ", ") + ")"
	}
	q += fmt.Sprintf(" ORDER BY %s LIMIT %d", strings.Join(names, ", "), limit)
	return s.db.QueryContext(ctx, q, key...)
}

// batch is a pgx.CopyFromSource over rows of the folder. It ends early when the
// rows exceed maxBytes, and remembers the last row's key.
type batch struct {
	t        table
	rows     *sql.Rows
	cells    []any
	key      []any
	n, bytes int64
	maxBytes int64
	err      error
}

func (b *batch) Next() bool {
	if b.bytes >= b.maxBytes || !b.rows.Next() {
		return false
	}
	width := len(b.t.columns)
	for _, c := range b.t.columns {
		if c.kind == blob {
			width++
		}
	}
	raw, into := make([]any, width), make([]any, width)
	for i := range raw {
		into[i] = &raw[i]
	}
	if b.err = b.rows.Scan(into...); b.err != nil {
		return false
	}
	b.cells, b.key = b.cells[:0], make([]any, len(b.t.key))
	for _, c := range b.t.columns {
		var v any
		v, raw = raw[0], raw[1:]
		if c.kind == blob {
			if bytes, _ := v.([]byte); raw[0] == int64(1) {
				v = nil
			} else if len(bytes) == 0 {
				v = []byte{}
			}
			raw = raw[1:]
		}
		if v, b.err = convert(c, v); b.err != nil {
			b.err = fmt.Errorf("%s.%s: %w", b.t.name, c.name, b.err)
			return false
		}
		switch v := v.(type) {
		case string:
			b.bytes += int64(len(v))
		case []byte:
			b.bytes += int64(len(v))
		case []int64:
			b.bytes += int64(len(v)) * 8
		}
		b.bytes += 8
		b.cells = append(b.cells, v)
		if c.key > 0 {
			b.key[c.key-1] = v
		}
	}
	b.n++
	return true
}

func (b *batch) Values() ([]any, error) { return b.cells, b.err }

func (b *batch) Err() error {
	if b.err != nil {
		return b.err
	}
	return b.rows.Err()
}

// convert converts a value to the type of the target column.
func convert(c column, v any) (any, error) {
	if c.kind == array {
		return numbers(v)
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case int64:
		switch c.kind {
		case number:
			return v, nil
		case boolean:
			if v == 0 || v == 1 {
				return v == 1, nil
			}
		}
	case string:
		if strings.IndexByte(v, 0) >= 0 {
			return nil, fmt.Errorf("a text holds the character U+0000, which PostgreSQL cannot store: %.60q", v)
		}
		if c.kind == text {
			return v, nil
		}
	case []byte:
		if c.kind == blob {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%v, a %T, is not %s", v, v, c.kind)
}

// numbers decodes a list of numbers. The driver does not distinguish an empty
// list from NULL; the column is never NULL.
func numbers(v any) ([]int64, error) {
	b, isBytes := v.([]byte)
	if v != nil && !isBytes || len(b)%8 != 0 {
		return nil, fmt.Errorf("%v, a %T, is not %s", v, v, array)
	}
	n := make([]int64, len(b)/8)
	for i := range n {
		n[i] = int64(binary.BigEndian.Uint64(b[i*8:]))
	}
	return n, nil
}

// keyPart is one value of a key in the progress table.
type keyPart struct {
	Number *int64  `json:"n,omitempty"`
	Text   *string `json:"t,omitempty"`
	Bytes  *string `json:"b,omitempty"`
}

func encodeKey(key []any) (string, error) {
	parts := make([]keyPart, len(key))
	for i, v := range key {
		switch v := v.(type) {
		case int64:
			parts[i].Number = &v
		case string:
			parts[i].Text = &v
		case []byte:
			s := base64.StdEncoding.EncodeToString(v)
			parts[i].Bytes = &s
		default:
			return "", fmt.Errorf("a key cannot hold %T", v)
		}
	}
	b, err := json.Marshal(parts)
	return string(b), err
}

func decodeKey(s string) ([]any, error) {
	if s == "" {
		return nil, nil
	}
	var parts []keyPart
	if err := json.Unmarshal([]byte(s), &parts); err != nil {
		return nil, err
	}
	key := make([]any, len(parts))
	for i, p := range parts {
		switch {
		case p.Number != nil:
			key[i] = *p.Number
		case p.Text != nil:
			key[i] = *p.Text
		case p.Bytes != nil:
			b, err := base64.StdEncoding.DecodeString(*p.Bytes)
			if err != nil {
				return nil, err
			}
			key[i] = b
		}
	}
	return key, nil
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

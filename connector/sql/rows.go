package sqlconn

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// chunk limits the keys in one statement.
const chunk = 500

// statement accumulates the text and the parameters of one statement.
type statement struct {
	dialect dialect
	text    strings.Builder
	args    []any
	// identity is the quoted table of an INSERT that names the value of an IDENTITY column.
	identity string
}

func (s *statement) add(parts ...string) *statement {
	for _, p := range parts {
		s.text.WriteString(p)
	}
	return s
}

// param adds a value as a parameter.
func (s *statement) param(v any) *statement {
	s.args = append(s.args, v)
	return s.add(s.dialect.param(len(s.args)))
}

// keys adds "key IN (…)".
func (s *statement) keys(t *table, refs []string) {
	key := t.columns[t.key]
	s.add(s.dialect.quote(key.name), " IN (")
	for i, ref := range refs {
		if i > 0 {
			s.add(", ")
		}
		s.param(s.dialect.bind(key, gatehouse.StringJSON(ref)))
	}
	s.add(")")
}

// duplicateKeyError says that the configured key column has duplicates.
type duplicateKeyError struct{ ref string }

func (e *duplicateKeyError) Error() string {
	return fmt.Sprintf("the key %s names more than one row", gatehouse.Quote(e.ref))
}

// readRows reads the rows with the given keys, with row locks if lock is set, and maps them by
// their keys as text. A row counts only if its key is written exactly like the ref: the database
// may find row 42 by the ref 042, but the map does not have that ref.
func readRows(ctx context.Context, q querier, d dialect, t *table, refs []string, lock bool) (map[string]row, error) {
	found := make(map[string]row, len(refs))
	for start := 0; start < len(refs); start += chunk {
		part := refs[start:min(start+chunk, len(refs))]
		s := &statement{dialect: d}
		s.add("SELECT ")
		for i, col := range t.columns {
			if i > 0 {
				s.add(", ")
			}
			s.add(d.read(col))
		}
		var hint, end string
		if lock {
			hint, end = d.lock()
		}
		s.add(" FROM ", t.sqlName, hint, " WHERE ").keys(t, part)
		s.add(" ORDER BY ", d.quote(t.columns[t.key].name), end)
		if err := scanRows(ctx, q, s, t, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func scanRows(ctx context.Context, q querier, s *statement, t *table, found map[string]row) error {
	rows, err := q.QueryContext(ctx, s.text.String(), s.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	raw := make([]any, len(t.columns))
	into := make([]any, len(raw))
	for i := range raw {
		into[i] = &raw[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		r := make(row, len(raw))
		for i, col := range t.columns {
			if r[i], err = s.dialect.decode(col, raw[i]); err != nil {
				return err
			}
		}
		ref := text(r[t.key].json)
		if _, twice := found[ref]; twice {
			return &duplicateKeyError{ref}
		}
		found[ref] = r
	}
	return rows.Err()
}

// queryOne reads the one row of a query.
func queryOne(ctx context.Context, q querier, query string, args []any, into ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	return errors.Join(rows.Scan(into...), rows.Close())
}

// difference is the difference between a row and the proposal's description of it.
type difference struct{ expected, actual gatehouse.JSON }

// compare returns nil if a row has the version and the pre-image. A row that does not exist is nil.
func (t *table) compare(r row, version string, pre []gatehouse.Member) *difference {
	if r == nil {
		d := &difference{expected: gatehouse.ObjectJSON(pre...), actual: "null"}
		if version != "" {
			d.expected = gatehouse.StringJSON(version)
		}
		return d
	}
	if version != "" {
		col, got := t.columns[t.version], r[t.version].json
		if !col.equal(gatehouse.StringJSON(version), got) {
			return &difference{gatehouse.StringJSON(version), gatehouse.StringJSON(text(got))}
		}
	}
	var expected, actual []gatehouse.Member
	for _, f := range pre {
		i, ok := t.byName[f.Name]
		if !ok {
			continue // refused by newPlan
		}
		if !t.columns[i].equal(f.Value, r[i].json) {
			expected = append(expected, f)
			actual = append(actual, gatehouse.Member{Name: f.Name, Value: r[i].json})
		}
	}
	if expected == nil {
		return nil
	}
	return &difference{gatehouse.ObjectJSON(expected...), gatehouse.ObjectJSON(actual...)}
}

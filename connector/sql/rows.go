package sqlconn

import (
	"context"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// chunk bounds the keys of one statement.
const chunk = 500

// statement collects the text and parameters of one statement.
type statement struct {
	dialect dialect
	text    strings.Builder
	args    []any
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

// duplicateKeyError tells that the configured key names more than one row.
type duplicateKeyError struct{ ref string }

func (e *duplicateKeyError) Error() string {
	return fmt.Sprintf("the key %s names more than one row", gatehouse.Quote(e.ref))
}

// readRows reads the rows of the given keys, locked when wanted, by their keys
// as text. So a row counts only when its key is the ref itself: the database
// may find the row 42 under 042, but nobody looks for it there.
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
		s.add(" FROM ", t.sqlName, " WHERE ").keys(t, part)
		s.add(" ORDER BY ", d.quote(t.columns[t.key].name))
		if lock {
			s.add(d.lock())
		}
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

// difference is how a row differs from what the proposal says of it.
type difference struct{ expected, actual gatehouse.JSON }

// compare returns nil when a row is as the version and the pre-image say. A
// row that is not there is nil.
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

package demo

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bookkeeping is the default name of the table that the sql connector adds to a target. It is not
// part of the shop.
const bookkeeping = "gatehouse_applied"

// Difference is one difference between the ledger and the approved changes.
type Difference struct {
	Table    string `json:"table"`
	Key      string `json:"key,omitempty"`
	Column   string `json:"column,omitempty"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// String shows the difference. The values of columns are SQL literals.
func (d Difference) String() string {
	at := strings.TrimSuffix(strings.Join([]string{d.Table, d.Key, d.Column}, " "), " ")
	return fmt.Sprintf("%s: expected %s, found %s", strings.TrimSpace(at), d.Expected, d.Found)
}

// compare compares all rows of two ledgers. It returns the number of compared rows and tables.
func compare(ctx context.Context, expected, found *sql.DB) (rows, tables int, diffs []Difference, err error) {
	want, err := shapes(ctx, expected)
	if err != nil {
		return 0, 0, nil, err
	}
	got, err := shapes(ctx, found)
	if err != nil {
		return 0, 0, nil, err
	}
	diffs = []Difference{}
	for _, name := range union(want, got) {
		if want[name].sql != got[name].sql {
			diffs = append(diffs,
				Difference{name, "", "", cmp.Or(want[name].sql, "nothing"), cmp.Or(got[name].sql, "nothing")})
			continue
		}
		if !want[name].table {
			continue
		}
		n, d, err := compareTable(ctx, name, expected, found)
		if err != nil {
			return 0, 0, nil, fmt.Errorf("table %s: %w", name, err)
		}
		rows, tables, diffs = rows+n, tables+1, append(diffs, d...)
	}
	return rows, tables, diffs, nil
}

func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// shape is the definition of a table, index, trigger or view.
type shape struct {
	sql   string
	table bool
}

func shapes(ctx context.Context, db *sql.DB) (all map[string]shape, err error) {
	rows, err := db.QueryContext(ctx,
		`SELECT name, COALESCE(sql, ''), type = 'table' FROM sqlite_schema WHERE tbl_name <> ?`, bookkeeping)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	all = map[string]shape{}
	for rows.Next() {
		var name string
		var s shape
		if err := rows.Scan(&name, &s.sql, &s.table); err != nil {
			return nil, err
		}
		all[name] = s
	}
	return all, rows.Err()
}

func compareTable(ctx context.Context, name string, expected, found *sql.DB) (n int, diffs []Difference, err error) {
	columns, want, err := readTable(ctx, expected, name)
	if err != nil {
		return 0, nil, err
	}
	_, got, err := readTable(ctx, found, name)
	if err != nil {
		return 0, nil, err
	}
	for _, key := range union(want, got) {
		n++
		w, g := want[key], got[key]
		switch {
		case w == nil:
			diffs = append(diffs, Difference{name, key, "", "no such row", "(" + strings.Join(g, ", ") + ")"})
		case g == nil:
			diffs = append(diffs, Difference{name, key, "", "(" + strings.Join(w, ", ") + ")", "no such row"})
		default:
			for i := range w {
				if w[i] != g[i] {
					diffs = append(diffs, Difference{name, key, columns[i], w[i], g[i]})
				}
			}
		}
	}
	return n, diffs, nil
}

// readTable reads all rows, keyed by their first column, which is the primary key of every
// table. Values are SQL literals, which distinguish 1, '1' and NULL.
func readTable(ctx context.Context, db *sql.DB, name string) (columns []string, all map[string][]string, err error) {
	if columns, err = columnsOf(ctx, db, name); err != nil {
		return nil, nil, err
	}
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = `quote("` + c + `")`
	}
	rows, err := db.QueryContext(ctx, fmt.Sprintf(`SELECT %s FROM "%s"`, strings.Join(quoted, ", "), name))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	all = map[string][]string{}
	for rows.Next() {
		cells, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, nil, err
		}
		if _, twice := all[cells[0]]; twice {
			return nil, nil, fmt.Errorf("the key %s appears twice", cells[0])
		}
		all[cells[0]] = cells
	}
	return columns, all, rows.Err()
}

func columnsOf(ctx context.Context, db *sql.DB, table string) (names []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT name FROM pragma_table_info(?) ORDER BY cid`, table)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

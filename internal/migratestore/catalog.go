package migratestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// Tables of one engine only, which are not copied. SQLite: the stored clock and
// batch numbers. PostgreSQL: schema versions, commit marks, the queue of leaves
// (see queueLeaves), and the tables of this package. Both: the search index, which the server fills.
var (
	sqliteOnly = map[string]bool{
		"meta": true, "action_word": true, "action_word_block": true, "action_word_mark": true,
	}
	postgresOnly = map[string]bool{
		"gatehouse_schema": true, "gatehouse_session": true, queueTable: true,
		"action_word": true, "action_word_block": true, "action_word_mark": true,
		// Replicas share the rates in this table; a folder, which one process serves, needs none.
		"rate_spent":       true,
		postgres.MoveTable: true, progressTable: true, keysTable: true,
	}
)

// kind is the type of a value during the copy.
type kind string

const (
	number  kind = "a number"
	boolean kind = "a boolean"
	text    kind = "text"
	blob    kind = "bytes"
	array   kind = "a list of numbers" // in the folder, bytes: eight per number
)

// column is a column to copy; generated columns are not copied.
type column struct {
	name      string
	kind      kind
	generated bool
	key       int // position in the primary key, from 1; 0 means not part of it
}

// table is a table that both sides have.
type table struct {
	name    string
	columns []column // without generated ones, in PostgreSQL's order
	key     []column // in key order
}

// catalog holds the tables of one database and their columns, by name.
type catalog map[string]map[string]column

func sqliteCatalog(ctx context.Context, db *sql.DB) (catalog, error) {
	rows, err := db.QueryContext(ctx,
		`SELECT m.name, c.name, c.type, c.hidden, c.pk FROM sqlite_schema m, pragma_table_xinfo(m.name) c
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY m.name, c.cid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := catalog{}
	for rows.Next() {
		var name, declared string
		var hidden int
		var c column
		if err := rows.Scan(&name, &c.name, &declared, &hidden, &c.key); err != nil {
			return nil, err
		}
		switch strings.ToUpper(declared) {
		case "INTEGER", "INT":
			c.kind = number
		case "TEXT":
			c.kind = text
		case "BLOB":
			c.kind = blob
		default:
			c.kind = kind("SQLite's " + declared)
		}
		c.generated = hidden > 1
		out.add(name, c)
	}
	return out, rows.Err()
}

// postgresCatalog reads the tables of the schema in which unqualified names are
// created. Partitions belong to their table.
func postgresCatalog(ctx context.Context, db querier) (catalog, []string, error) {
	rows, err := db.Query(ctx, `SELECT c.relname::text, a.attname::text, a.atttypid, a.attgenerated <> ''
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname, a.attnum`)
	if err != nil {
		return nil, nil, err
	}
	out, order := catalog{}, []string{}
	var name string
	var oid uint32
	var c column
	_, err = pgx.ForEachRow(rows, []any{&name, &c.name, &oid, &c.generated}, func() error {
		switch oid {
		case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
			c.kind = number
		case pgtype.BoolOID:
			c.kind = boolean
		case pgtype.TextOID:
			c.kind = text
		case pgtype.ByteaOID:
			c.kind = blob
		case pgtype.Int8ArrayOID:
			c.kind = array
		default:
			c.kind = kind(fmt.Sprintf("PostgreSQL's type %d", oid))
		}
		out.add(name, c)
		order = append(order, name+"."+c.name)
		return nil
	})
	return out, order, err
}

func (c catalog) add(table string, col column) {
	if c[table] == nil {
		c[table] = map[string]column{}
	}
	c[table][col.name] = col
}

// match finds the tables to copy, sorted by name. If the two sides differ, it returns
// one error that lists all differences.
func match(from, to catalog, order []string) ([]table, error) {
	var wrong []error
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	var tables []table
	for _, name := range slices.Sorted(maps.Keys(from)) {
		switch {
		case sqliteOnly[name]:
			continue
		case to[name] == nil:
			complain("the table %s is in the folder only", name)
			continue
		}
		t := table{name: name}
		for _, c := range slices.Sorted(maps.Keys(from[name])) {
			if _, found := to[name][c]; !found {
				complain("the column %s.%s is in the folder only", name, c)
			}
		}
		for _, full := range order {
			of, c, _ := strings.Cut(full, ".")
			if of != name {
				continue
			}
			here, found := from[name][c]
			there := to[name][c]
			switch {
			case !found && there.generated: // computed from copied columns
			case !found:
				complain("the column %s is in the database only", full)
			case here.generated != there.generated:
				complain("the column %s is computed on one side only", full)
			case here.generated:
			case here.kind != there.kind && (here.kind != number || there.kind != boolean) &&
				(here.kind != blob || there.kind != array), strings.Contains(string(there.kind), "'s "):
				complain("the column %s is %s in the folder and %s in the database", full, here.kind, there.kind)
			default:
				t.columns = append(t.columns, column{name: c, kind: there.kind, key: here.key})
			}
		}
		for place := 1; ; place++ {
			i := slices.IndexFunc(t.columns, func(c column) bool { return c.key == place })
			if i < 0 {
				break
			}
			t.key = append(t.key, t.columns[i])
		}
		if len(t.key) == 0 {
			complain("the table %s has no primary key", name)
		}
		tables = append(tables, t)
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if from[name] == nil && !postgresOnly[name] {
			complain("the table %s is in the database only", name)
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("folder and database do not have the same tables: %w", errors.Join(wrong...))
	}
	return tables, nil
}

package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// kind is a column's type, as far as comparing and binding need it.
type kind int

const (
	kindAny     kind = iota // SQLite's columns without affinity
	kindText                // compared exactly
	kindInteger             // compared by value
	kindNumber              // compared by value
	kindBool
	kindJSON
	kindTime   // a point in time, with or without zone
	kindOther  // other types of PostgreSQL and SQL Server, in the server's text form
	kindBinary // MySQL's and SQL Server's bytes, as 0x and hexadecimal digits
	// kindRowVersion is SQL Server's rowversion: bytes that the database raises itself
	kindRowVersion
)

// column is a column of the database's catalogue.
type column struct {
	name      string
	kind      kind
	decl      string // the declared type, for people
	notNull   bool
	generated bool
	identity  bool // the database numbers the rows, but an insert can set the number
	filled    bool // the database gives a value where an insert gives none
	// hexadecimal columns hold bytes or a uuid: the case of the digits has no meaning.
	hexadecimal bool
	// spellExpr is an SQL expression whose one parameter is a value: it yields the text that the database writes for
	// the value, or NULL where writing would round the value. spellExpr is "" if each value has one spelling.
	spellExpr string
}

// table is an entity's table, with the columns that proposals may see.
type table struct {
	entity  Entity
	sqlName string
	columns []column // the visible ones
	byName  map[string]int
	key     int
	version int // -1 for none
	extern  int
	hidden  bool // there are columns that are not visible
	// cascades is set if a foreign key removes or changes other rows with a deleted one.
	cascades bool
}

// schemaError says that the configuration does not match the database.
type schemaError struct{ detail string }

func (e *schemaError) Error() string { return e.detail }

// querier can read: a pool or one connection.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// table returns an entity's table. It reads the catalogue on first use or if fresh is set. The
// error is a *schemaError if the table does not match the configuration.
func (c *Connector) table(ctx context.Context, entity string, fresh bool) (*table, error) {
	c.mu.Lock()
	t := c.tables[entity]
	c.mu.Unlock()
	if t != nil && !fresh {
		return t, nil
	}
	e, ok := c.cfg.Entities[entity]
	if !ok {
		return nil, &schemaError{unknownEntity(c.cfg, entity)}
	}
	columns, err := c.dialect.columns(ctx, c.reader, e.Table)
	if err != nil {
		return nil, err
	}
	t, err = newTable(c.dialect, e, columns)
	if err != nil {
		return nil, err
	}
	if t.cascades, err = c.dialect.cascades(ctx, c.reader, e.Table); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.tables[entity] = t
	c.mu.Unlock()
	return t, nil
}

// isSchemaError reports whether the target answered but does not match the configuration.
func isSchemaError(err error) bool {
	var s *schemaError
	return errors.As(err, &s)
}

// forget makes the next call read the catalogue again.
func (c *Connector) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.tables)
}

func newTable(d dialect, e Entity, columns []column) (*table, error) {
	if len(columns) == 0 {
		return nil, &schemaError{fmt.Sprintf("the target has no table %s", e.Table)}
	}
	t := &table{entity: e, sqlName: quoteTable(d, e.Table), byName: make(map[string]int), version: -1}
	extern := e.ExternalID
	if extern == "" {
		extern = e.Key
	}
	for _, col := range columns {
		if len(e.Columns) > 0 && !slices.Contains(e.Columns, col.name) &&
			col.name != e.Key && col.name != e.Version && col.name != extern {
			t.hidden = true
			continue
		}
		t.byName[col.name] = len(t.columns)
		t.columns = append(t.columns, col)
	}
	for _, name := range slices.Concat([]string{e.Key, extern}, e.Columns, slices.Sorted(maps.Keys(e.Fields))) {
		if _, ok := t.byName[name]; !ok {
			return nil, &schemaError{fmt.Sprintf("table %s has no column %s", e.Table, name)}
		}
	}
	t.key, t.extern = t.byName[e.Key], t.byName[extern]
	if e.KeyFrom == keyFromDatabase && !t.columns[t.key].filled {
		return nil, &schemaError{fmt.Sprintf("key_from is database, but column %s of %s has no identity, "+
			"AUTO_INCREMENT or default whose value can be read back", e.Key, e.Table)}
	}
	if e.Version != "" {
		i, ok := t.byName[e.Version]
		if !ok {
			return nil, &schemaError{fmt.Sprintf("table %s has no column %s", e.Table, e.Version)}
		}
		if k := t.columns[i].kind; k != kindInteger && k != kindNumber && k != kindAny && k != kindRowVersion {
			return nil, &schemaError{
				fmt.Sprintf("column %s of %s is %s, but a version is an integer that Gatehouse raises by one",
					e.Version, e.Table, t.columns[i].decl)}
		}
		t.version = i
	}
	return t, nil
}

// raisesVersion reports whether there is a version that Gatehouse raises, not the database.
func (t *table) raisesVersion() bool {
	return t.version >= 0 && t.columns[t.version].kind != kindRowVersion
}

// column returns a visible column.
func (t *table) column(name string) (column, bool) {
	i, ok := t.byName[name]
	if !ok {
		return column{}, false
	}
	return t.columns[i], true
}

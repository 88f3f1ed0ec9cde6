package demo

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// tables maps the type of a target to its table and key column.
var tables = map[string]struct{ table, key string }{
	"item":     {"items", "sku"},
	"customer": {"customers", "id"},
	"order":    {"orders", "id"},
	"refund":   {"refunds", "id"},
}

// applyJournal applies to db the changes that must be in the ledger according to the journal,
// each once, in the order of the decisions.
func applyJournal(ctx context.Context, db *sql.DB, entries []entry) (n int, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	// An order may have been approved before the customer that it waits for.
	if _, err := conn.ExecContext(ctx, "PRAGMA foreign_keys = off"); err != nil {
		return 0, err
	}
	seen := map[string]bool{}
	for i := range entries {
		e := &entries[i]
		if !e.stands() || e.ActionID != "" && seen[e.ActionID] {
			continue
		}
		seen[e.ActionID] = true
		if err := e.apply(ctx, conn); err != nil {
			return n, fmt.Errorf("journal, %s by %s: %w", e.Kind, e.By, err)
		}
		n++
	}
	return n, nil
}

// apply applies the entry's change.
func (e *entry) apply(ctx context.Context, conn *sql.Conn) error {
	fields, err := e.Change.Fields()
	if err != nil {
		return err
	}
	refs := e.Target.EntityRefs
	if len(refs) == 0 {
		refs = []string{e.Target.EntityRef}
	}
	if e.Connector == warehouseConnector {
		return e.applyWarehouse(ctx, conn, fields)
	}
	at, ok := tables[e.Target.EntityType]
	if !ok {
		return fmt.Errorf("unknown entity type %s", e.Target.EntityType)
	}
	var names, marks []string
	var values []any
	operation := strings.TrimPrefix(e.Operation, "bulk_")
	if operation == "delete" {
		fields = nil // {"deleted": true} names no column
	}
	for _, f := range fields {
		v, err := value(f.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		names, marks, values = append(names, f.Name), append(marks, "?"), append(values, v)
	}
	for _, ref := range refs {
		var statement string
		args := append(slices.Clone(values), ref)
		switch operation {
		case "insert":
			statement = fmt.Sprintf("INSERT INTO %s (%s, %s, version) VALUES (%s, ?, 1)",
				at.table, strings.Join(names, ", "), at.key, strings.Join(marks, ", "))
		case "update":
			statement = fmt.Sprintf("UPDATE %s SET %s = ?, version = version + 1 WHERE %s = ?",
				at.table, strings.Join(names, " = ?, "), at.key)
		case "delete":
			statement = fmt.Sprintf("DELETE FROM %s WHERE %s = ?", at.table, at.key)
		default:
			return fmt.Errorf("%s: no such operation", e.Operation)
		}
		if err := one(ctx, conn, statement, args...); err != nil {
			return fmt.Errorf("%s %s: %w", e.Operation, ref, err)
		}
	}
	return nil
}

func (e *entry) applyWarehouse(ctx context.Context, conn *sql.Conn, fields []gatehouse.Member) error {
	by := map[string]any{}
	for _, f := range fields {
		v, err := value(f.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		by[f.Name] = v
	}
	switch e.Operation {
	case opReceive:
		return one(ctx, conn, receiveSQL, by["quantity"], e.Target.EntityRef)
	case opCredit:
		return one(ctx, conn, creditSQL, e.Target.EntityRef, by["amount"], by["currency"], by["reason"])
	}
	return fmt.Errorf("%s: no such operation", e.Operation)
}

func one(ctx context.Context, conn *sql.Conn, statement string, args ...any) error {
	res, err := conn.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows changed instead of 1", n)
	}
	return err
}

// value returns the ledger's stored form of a JSON value.
func value(j gatehouse.JSON) (any, error) {
	if s, ok := j.Text(); ok {
		return s, nil
	}
	if j == "null" {
		return nil, nil
	}
	return strconv.ParseInt(string(j), 10, 64)
}

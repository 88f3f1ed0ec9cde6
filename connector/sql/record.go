package sqlconn

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// stored is the form in which an idempotency record holds a [connector.Result].
type stored struct {
	ExternalID string              `json:"external_id,omitempty"`
	Request    gatehouse.JSON      `json:"request,omitempty"`
	Response   gatehouse.JSON      `json:"response,omitempty"`
	Reversal   *gatehouse.Reversal `json:"reversal,omitempty"`
}

// codeRecordTable is the error code for an idempotency table whose storage engine, key columns or primary
// key are unsuitable.
const codeRecordTable = "invalid_idempotency_table"

// checkKeyColumns refuses key columns that are not binary.
func checkKeyColumns(table string, columns []column) error {
	for _, c := range columns {
		if (c.name == "tenant" || c.name == "idempotency_key") && !strings.HasPrefix(c.decl, "varbinary(") {
			return &refusal{codeRecordTable,
				fmt.Sprintf("column %s of %s is %s, but must be varbinary(255)", c.name, table, c.decl)}
		}
	}
	return nil
}

// claim inserts the record of a call; it returns false if the record exists. It waits for another
// transaction that has inserted the same record and not ended.
func (c *Connector) claim(ctx context.Context, conn *sql.Conn, call connector.Call) (bool, error) {
	if !c.recordReady.Load() {
		if err := c.dialect.ensureIdempotencyTable(ctx, conn, c.cfg.IdempotencyTable); err != nil {
			return false, err
		}
	}
	s := &statement{dialect: c.dialect}
	s.add("INSERT INTO ", quoteTable(c.dialect, c.cfg.IdempotencyTable),
		" (tenant, idempotency_key, digest, operation, entity, applied_at, result) VALUES (")
	s.recordKey(call, ", ").add(", ").param(string(call.Digest)).add(", ")
	s.param(call.Operation).add(", ").param(entityName(call.Target)).add(", ", c.dialect.now(), ", '')",
		c.dialect.unlessExists())
	n, err := c.dialect.execute(ctx, conn, s)
	switch {
	case err != nil && c.dialect.unlessExists() == "" && c.dialect.classify(err).unique:
		return false, nil
	case err != nil:
		return false, err
	}
	return n == 1, nil
}

// recordKey adds the two parameters of a record's primary key.
func (s *statement) recordKey(call connector.Call, between string) *statement {
	s.param(s.dialect.recordKey(call.Tenant)).add(between)
	return s.param(s.dialect.recordKey(call.IdempotencyKey))
}

// entityName is the name by which a person finds the record.
func entityName(t gatehouse.Target) string {
	if len(t.EntityRefs) > 0 {
		return fmt.Sprintf("%s (%d keys)", t.EntityType, len(t.EntityRefs))
	}
	return t.EntityType + "/" + t.EntityRef
}

// complete stores the answer in the record, in the same transaction.
func (c *Connector) complete(ctx context.Context, conn *sql.Conn, call connector.Call, res connector.Result) error {
	b, err := json.Marshal(stored{res.ExternalID, res.RequestMetadata, res.ResponseMetadata, res.Reversal})
	if err != nil {
		return err
	}
	s := &statement{dialect: c.dialect}
	s.add("UPDATE ", quoteTable(c.dialect, c.cfg.IdempotencyTable), " SET result = ").param(string(b))
	s.add(" WHERE tenant = ").recordKey(call, " AND idempotency_key = ")
	_, err = conn.ExecContext(ctx, s.text.String(), s.args...)
	return err
}

// recorded returns the stored answer of the same call. A record with another digest is a refusal.
func (c *Connector) recorded(
	ctx context.Context, q querier, call connector.Call,
) (res connector.Result, found bool, err error) {
	s := &statement{dialect: c.dialect}
	s.add("SELECT digest, result FROM ", quoteTable(c.dialect, c.cfg.IdempotencyTable),
		" WHERE tenant = ").recordKey(call, " AND idempotency_key = ")
	rows, err := q.QueryContext(ctx, s.text.String(), s.args...)
	if err != nil {
		return res, false, err
	}
	defer rows.Close()
	if !rows.Next() {
		return res, false, rows.Err()
	}
	var digest, result string
	if err := rows.Scan(&digest, &result); err != nil {
		return res, false, err
	}
	if gatehouse.Digest(digest) != call.Digest {
		return res, false,
			&refusal{"idempotency_conflict", "this idempotency key has carried out another change: " + gatehouse.Quote(digest)}
	}
	var st stored
	if err := json.Unmarshal([]byte(result), &st); err != nil {
		return res, false, fmt.Errorf("sqlconn: idempotency record: %w", err)
	}
	return connector.Result{
		ExternalID: st.ExternalID, RequestMetadata: st.Request, ResponseMetadata: st.Response, Reversal: st.Reversal,
	}, true, rows.Err()
}

// ReadBack looks up the idempotency record. Without a record, the finding is Inconclusive and never
// Absent, because a stopped caller may still commit. A repeated call is harmless: it returns the stored
// answer, or makes the change.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	res, found, err := c.recorded(ctx, c.reader, call)
	switch {
	case err != nil && c.noRecordTable(ctx):
		return connector.Inconclusive, connector.Result{}, nil
	case err != nil:
		return connector.Inconclusive, connector.Result{}, c.unreachable(err)
	case found:
		return connector.Present, res, nil
	}
	return connector.Inconclusive, connector.Result{}, nil
}

// noRecordTable reports whether the target is readable and has no table of records, which proves
// that no change was ever carried out there.
func (c *Connector) noRecordTable(ctx context.Context) bool {
	columns, err := c.dialect.columns(ctx, c.reader, c.cfg.IdempotencyTable)
	return err == nil && len(columns) == 0
}

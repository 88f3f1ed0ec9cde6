package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// receiptRow holds the columns of a receipt that is inserted.
type receiptRow struct {
	Tenant                            string
	ID                                string
	ActionID                          string
	PushID                            string
	IdempotencyKey                    string
	Attempt, Generation               int
	Outcome                           gatehouse.ReceiptOutcome
	ErrorCode, Error, ExternalID      string
	Reversible, Late                  bool
	Source                            string
	At                                time.Time
	RequestMetadata, ResponseMetadata gatehouse.JSON
	Reversal                          string
}

var insertReceipts = writes[receiptRow](rankReceipt, "PushID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, ($3::text[])[n] AS action_id, ($4::text[])[n] AS push_id,
    ($5::text[])[n] AS idempotency_key, ($6::bigint[])[n] AS attempt, ($7::bigint[])[n] AS generation,
    ($8::text[])[n] AS outcome, ($9::text[])[n] AS error_code, ($10::text[])[n] AS error,
    ($11::text[])[n] AS external_id, ($12::boolean[])[n] AS reversible, ($13::boolean[])[n] AS late,
    ($14::text[])[n] AS source, ($15::bigint[])[n] AS at, ($16::text[])[n] AS request_metadata,
    ($17::text[])[n] AS response_metadata, ($18::text[])[n] AS reversal, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $19
),
w AS (
  INSERT INTO receipt (tenant, id, action_seq, action_id, push_id, idempotency_key, attempt, generation,
    outcome, error_code, error, external_id, reversible, late, source, at,
    request_metadata, response_metadata, reversal)
  SELECT h.tenant, r.id, h.action_seq, h.action_id, h.id, r.idempotency_key, r.attempt, r.generation,
    r.outcome, r.error_code, r.error, r.external_id, r.reversible, r.late, r.source, r.at,
    r.request_metadata, r.response_metadata, r.reversal
  FROM r CROSS JOIN LATERAL (
    SELECT * FROM push WHERE tenant = r.tenant AND id = r.push_id AND action_id = r.action_id OFFSET 0
  ) h
  RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $19 THEN 0 ELSE gatehouse_refuse('GH002') END`)

// InsertReceipt stores a receipt. Its push must exist.
func (t *tx) InsertReceipt(c *gatehouse.Receipt) error {
	if err := t.Owns(c.Tenant); err != nil {
		return err
	}
	reversal, err := shared.EncodeJSON(c.Reversal)
	if err != nil {
		return err
	}
	return insertReceipts.write(t, receiptRow{
		c.Tenant, c.ID, c.ActionID, c.PushID, c.IdempotencyKey, c.Attempt, c.Generation, c.Outcome,
		c.ErrorCode, c.Error, c.ExternalID, c.Reversible, c.Late, c.Source, c.At,
		c.RequestMetadata, c.ResponseMetadata, reversal,
	})
}

// keyRow is an idempotency key of a tenant.
type keyRow struct{ Tenant, Key string }

// findSuccesses finds the first receipts with outcome applied.
var findSuccesses = reads[keyRow](`
SELECT r.n, c.tenant, c.id, c.action_id, c.push_id, c.idempotency_key, c.attempt, c.generation, c.outcome,
  c.error_code, c.error, c.external_id, c.reversible, c.late, c.source, c.at,
  c.request_metadata, c.response_metadata, c.reversal
FROM (
  SELECT tenant, ($2::text[])[n] AS key, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT * FROM receipt WHERE tenant = r.tenant AND idempotency_key = r.key AND outcome = 'applied'
  ORDER BY seq LIMIT 1
) c`)

// SuccessReceipt finds the first receipt with outcome applied for a key.
func (t *readTx) SuccessReceipt(idempotencyKey string) (c *gatehouse.Receipt, err error) {
	scan := func(r *row) (err error) { c = shared.ScanReceipt(r, &err); return err }
	err = t.read(findSuccesses.ask(scan, keyRow{t.tenant, idempotencyKey}))
	if err == nil && c == nil {
		err = gatehouse.ErrNotFound
	}
	return c, err
}

const receiptsOfAction = `SELECT c.tenant, c.id, c.action_id, c.push_id, c.idempotency_key, c.attempt, c.generation,
  c.outcome, c.error_code, c.error, c.external_id, c.reversible, c.late, c.source, c.at,
  c.request_metadata, c.response_metadata, c.reversal
FROM receipt c WHERE c.action_seq = (SELECT seq FROM action WHERE tenant = $1 AND id = $2) ORDER BY c.seq`

// ListReceipts lists the receipts of an action, oldest first.
func (t *readTx) ListReceipts(actionID string) (list []*gatehouse.Receipt, err error) {
	err = t.each(receiptsOfAction,
		func(r *row) (err error) { list = append(list, shared.ScanReceipt(r, &err)); return err }, t.tenant, actionID)
	return list, err
}

// mirrorRow is the effect of an applied change.
type mirrorRow struct {
	Tenant, ActionID, ActionType, Connector, Operation, Target string
	Digest                                                     gatehouse.Digest
	ExternalID, ReceiptID                                      string
	AppliedAt                                                  time.Time
	Before, After                                              gatehouse.JSON
}

var insertMirrors = writes[mirrorRow](rankMirror, "", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS action_id, ($3::text[])[n] AS action_type, ($4::text[])[n] AS connector,
    ($5::text[])[n] AS operation, ($6::text[])[n] AS target, ($7::text[])[n] AS digest,
    ($8::text[])[n] AS external_id, ($9::text[])[n] AS receipt_id, ($10::bigint[])[n] AS applied_at,
    ($11::text[])[n] AS before, ($12::text[])[n] AS after, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $13
),
w AS (
  INSERT INTO mirror (tenant, action_seq, action_id, action_type, connector, operation, target, digest,
    external_id, receipt_id, applied_at, before_state, after_state)
  SELECT a.tenant, a.seq, a.id, r.action_type, r.connector, r.operation, r.target, r.digest,
    r.external_id, r.receipt_id, r.applied_at, r.before, r.after
  FROM r CROSS JOIN LATERAL (
    SELECT * FROM action WHERE tenant = r.tenant AND id = r.action_id OFFSET 0
  ) a
  RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $13 THEN 0 ELSE gatehouse_refuse('GH002') END`)

// InsertMirror stores the effect of an applied change, once per action.
func (t *tx) InsertMirror(m *gatehouse.AppliedMirror) error {
	if err := t.Owns(m.Tenant); err != nil {
		return err
	}
	target, err := shared.EncodeJSON(&m.Target)
	if err != nil {
		return err
	}
	return insertMirrors.write(t, mirrorRow{
		m.Tenant, m.ActionID, m.ActionType, m.Connector, m.Operation, target, m.Digest,
		m.ExternalID, m.ReceiptID, m.AppliedAt, m.Before, m.After,
	})
}

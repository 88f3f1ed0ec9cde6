package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const receiptColumns = `r.tenant, r.id, r.action_id, r.push_id, r.idempotency_key, r.attempt, r.generation, r.outcome, r.error_code, r.error,
  r.external_id, r.reversible, r.late, r.source, r.at, r.request_metadata, r.response_metadata, r.reversal`

const (
	receiptInserted = `INSERT INTO receipt (tenant, id, action_seq, action_id, push_id, idempotency_key, attempt, generation, outcome,
error_code, error, external_id, reversible, late, source, at, request_metadata, response_metadata, reversal)
SELECT tenant, $4, action_seq, action_id, id, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18 FROM `
	receiptOf = `push
WHERE tenant = $1 AND id = $2 AND action_id = $3`
	insertReceipt  = guarded + receiptInserted + receiptOf + orMissing
	insertReceipts = receiptInserted + ofEach + receiptOf + once
)

// InsertReceipt stores the result of a call. The push must exist.
func (t *tx) InsertReceipt(c *gatehouse.Receipt) error {
	if err := t.checkTenant(c.Tenant); err != nil {
		return err
	}
	reversal, err := shared.EncodeJSON(c.Reversal)
	if err != nil {
		return err
	}
	return t.write(insertReceipt,
		c.Tenant, c.PushID, c.ActionID,
		c.ID, c.IdempotencyKey, c.Attempt, c.Generation, string(c.Outcome), c.ErrorCode, c.Error, c.ExternalID, c.Reversible, c.Late,
		c.Source, c.At, c.RequestMetadata, c.ResponseMetadata, reversal)
}

const findSuccess = `SELECT ` + receiptColumns + ` FROM receipt r WHERE tenant = $1 AND idempotency_key = $2 AND outcome = 'applied'
ORDER BY seq LIMIT 1`

// SuccessReceipt finds the first receipt with outcome applied for a key.
func (t *readTx) SuccessReceipt(idempotencyKey string) (c *gatehouse.Receipt, err error) {
	err = t.one(
		findSuccess,
		func(r *row) (err error) { c = shared.ScanReceipt(r, &err); return err },
		t.tenant,
		idempotencyKey,
	)
	return c, err
}

// ListReceipts lists the receipts of an action, oldest first.
func (t *readTx) ListReceipts(actionID string) (list []*gatehouse.Receipt, err error) {
	err = t.each(`SELECT `+receiptColumns+` FROM receipt r
WHERE action_seq = (SELECT seq FROM action WHERE tenant = $1 AND id = $2) ORDER BY seq`,
		func(r *row) (err error) { list = append(list, shared.ScanReceipt(r, &err)); return err }, t.tenant, actionID)
	return list, err
}

const (
	mirrorInserted = `INSERT INTO mirror (tenant, action_seq, action_id, action_type, connector, operation, target, digest, external_id,
receipt_id, applied_at, before_state, after_state)
SELECT tenant, seq, id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 FROM `
	mirrorOf      = `action WHERE tenant = $1 AND id = $2`
	insertMirror  = guarded + mirrorInserted + mirrorOf + orMissing
	insertMirrors = mirrorInserted + ofEach + mirrorOf + once
)

// InsertMirror stores the effect of an applied change, once per action.
func (t *tx) InsertMirror(m *gatehouse.AppliedMirror) error {
	if err := t.checkTenant(m.Tenant); err != nil {
		return err
	}
	target, err := shared.EncodeJSON(&m.Target)
	if err != nil {
		return err
	}
	return t.write(insertMirror,
		m.Tenant, m.ActionID,
		m.ActionType, m.Connector, m.Operation, target, string(m.Digest), m.ExternalID, m.ReceiptID, m.AppliedAt, m.Before, m.After)
}

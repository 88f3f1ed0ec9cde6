package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const receiptColumns = `tenant, id, action_id, push_id, idempotency_key, attempt, generation, outcome, error_code,
  error, external_id, reversible, late, source, at, request_metadata, response_metadata, reversal`

// InsertReceipt stores the outcome of a call. Its push must exist.
func (t *tx) InsertReceipt(c *gatehouse.Receipt) error {
	if err := t.Owns(c.Tenant); err != nil {
		return err
	}
	reversal, err := shared.EncodeJSON(c.Reversal)
	if err != nil {
		return err
	}
	if t.knownPush == (knownPush{c.Tenant, c.PushID, c.ActionID}) {
		// The push is known to exist, so an INSERT of plain values is enough.
		seq, err := t.rowOf(c.Tenant, c.ActionID)
		if err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO receipt (tenant, id, action_seq, action_id, push_id, idempotency_key, attempt,
  generation, outcome,
error_code, error, external_id, reversible, late, source, at, request_metadata, response_metadata,
  reversal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			c.Tenant, c.ID, seq, c.ActionID, c.PushID, c.IdempotencyKey, c.Attempt, c.Generation, string(c.Outcome), c.ErrorCode,
			c.Error, c.ExternalID, c.Reversible, c.Late, c.Source, c.At, c.RequestMetadata, c.ResponseMetadata, reversal)
		return err
	}
	return t.execOrNotFound(`INSERT INTO receipt (tenant, id, action_seq, action_id, push_id, idempotency_key, attempt,
  generation, outcome,
error_code, error, external_id, reversible, late, source, at, request_metadata, response_metadata,
  reversal) SELECT tenant, ?, action_seq, action_id, id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
  ? FROM push
WHERE tenant = ? AND id = ? AND action_id = ?`,
		c.ID, c.IdempotencyKey, c.Attempt, c.Generation, string(c.Outcome), c.ErrorCode, c.Error, c.ExternalID, c.Reversible,
		c.Late, c.Source, c.At, c.RequestMetadata, c.ResponseMetadata, reversal, c.Tenant, c.PushID, c.ActionID)
}

// SuccessReceipt finds the first applied receipt of an idempotency key.
func (t *readTx) SuccessReceipt(idempotencyKey string) (c *gatehouse.Receipt, err error) {
	err = t.one(`SELECT `+receiptColumns+
		` FROM receipt WHERE tenant = ? AND idempotency_key = ? AND outcome = 'applied' ORDER BY seq LIMIT 1`,
		func(r *stmt) (err error) { c = shared.ScanReceipt(r, &err); return err }, t.tenant, idempotencyKey)
	return c, err
}

// ListReceipts lists an action's receipts, oldest first.
func (t *readTx) ListReceipts(actionID string) (list []*gatehouse.Receipt, err error) {
	err = t.each(`SELECT `+receiptColumns+` FROM receipt
WHERE action_seq = (SELECT seq FROM action WHERE tenant = ? AND id = ?) ORDER BY seq`,
		func(r *stmt) error {
			var err error
			c := shared.ScanReceipt(r, &err)
			list = append(list, c)
			return err
		}, t.tenant, actionID)
	return list, err
}

// InsertMirror stores the effect of an applied action, once per action.
func (t *tx) InsertMirror(m *gatehouse.AppliedMirror) error {
	if err := t.Owns(m.Tenant); err != nil {
		return err
	}
	target, err := shared.EncodeJSON(&m.Target)
	if err != nil {
		return err
	}
	seq, err := t.rowOf(m.Tenant, m.ActionID)
	switch {
	case err != nil:
		return err
	case seq == 0:
		return gatehouse.ErrNotFound
	}
	_, err = t.exec(
		`INSERT INTO mirror (tenant, action_seq, action_id, action_type, connector, operation, target, digest, external_id,
receipt_id, applied_at, before_state, after_state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.Tenant, seq, m.ActionID, m.ActionType, m.Connector, m.Operation, target, string(m.Digest), m.ExternalID,
		m.ReceiptID, m.AppliedAt, m.Before, m.After)
	return err
}

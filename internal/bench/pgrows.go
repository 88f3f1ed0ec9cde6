package bench

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// The statements for the rows of a proposal and of a decision in the gate's own tables, with their
// indexes, checks and triggers: one statement each.
const (
	pgPropose = `WITH a AS (INSERT INTO action (tenant, id, status, action_type, risk, proposer_id, idempotency_key, proposed_at, expires_at,
    decided_by, decided_via) VALUES ($1, 'act' || $2, 'pending', $3, 3, $4, $5, $6, $7, '', '') RETURNING seq),
p AS (INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
    target_version, claimed_risk, on_behalf_of, expires_in, hold, digest, fingerprint, content_hash,
    policy_outcome, policy_version, policy_rules, policy_reasons, proposed_by, rationale,
    proposed_change, current_state, context, metadata, extra)
  SELECT seq, $1, 1, $8, $9, $10, $11, '', $12, 3, '', 0, 0, $13, $14, $15, 'needs_approval', 1, '', '', 'agent',
    $16, $17, $18, $19, '', '' FROM a),
o AS (INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at)
  SELECT seq, $1, 'apr' || $2, 'requested', 1, '["approver"]', '', $20, $7, $6 FROM a)
INSERT INTO audit_leaf (seq, tenant, action_id, body) VALUES (nextval('audit_leaf_row'), $1, 'act' || $2, $21)`

	pgDecide = `WITH o AS (UPDATE approval SET status = 'approved'
		WHERE tenant = $1 AND id = 'apr' || $2 AND status = 'requested' RETURNING seq),
v AS (INSERT INTO vote (seq, tenant, person, principal_id, name, decision, notes, via, digest, at)
  SELECT seq, $1, $3, $3, $4, 'approved', $5, 'api', $6, $7 FROM o),
a AS (UPDATE action SET status = 'approved', decided_by = $4, decided_via = 'api', decided_at = $7
  WHERE tenant = $1 AND id = 'act' || $2 AND status = 'pending' RETURNING seq, id),
p AS (INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts, attempt_base,
    last_error, error_code, not_before, created_at, next_attempt, generation, lease_owner, replays)
  SELECT $1, 'psh' || $2, seq, id, 'shop', 'bench-' || $2, $6, 'queued', 0, 0, '', '', $7, $7, $7, 0, '', 0 FROM a)
INSERT INTO audit_leaf (seq, tenant, action_id, body) SELECT nextval('audit_leaf_row'), $1, id, $8 FROM a`
)

// pgRows is proposer and decider on PostgreSQL.
type pgRows struct {
	pool     *pgxpool.Pool
	template *gatehouse.Action
	made     int
}

func (b *pgRows) close() error { b.pool.Close(); return nil }

func (b *pgRows) insert(id string, p *bareProposal) error {
	args, err := b.proposal(id, p)
	if err != nil {
		return err
	}
	return execPG(b.pool, pgPropose, args...)
}

func (b *pgRows) proposal(id string, p *bareProposal) ([]any, error) {
	a, now := b.template, time.Now()
	excluded, err := json.Marshal(a.Approval.Excluded)
	return []any{
		a.Tenant, id[len("act"):], p.ActionType, a.ProposerID, p.IdempotencyKey, now.UnixMicro(),
		now.Add(24 * time.Hour).UnixMicro(),
		p.Connector, p.Operation, p.Target.EntityType, p.Target.EntityRef, p.Target.Version, string(a.Digest), a.Fingerprint,
		a.ContentHash[:],
		p.Rationale, string(p.ProposedChange), string(p.CurrentState),
		string(p.Context), string(excluded), proposedLeaf(a, id),
	}, err
}

func (b *pgRows) pending(n int) ([]string, error) {
	ctx := context.Background()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = gate.NewID("act")
	}
	for from := 0; from < n; from += fillBatch {
		var batch pgx.Batch
		for _, id := range ids[from:min(n, from+fillBatch)] {
			args, err := b.proposal(id, barely(proposal(b.made)))
			if err != nil {
				return nil, err
			}
			b.made++
			batch.Queue(pgPropose, args...)
		}
		if err := b.pool.SendBatch(ctx, &batch).Close(); err != nil { // one transaction
			return nil, err
		}
	}
	return ids, nil
}

func (b *pgRows) decide(id string, in *bareDecision) error {
	return execPG(b.pool, pgDecide, b.template.Tenant, id[len("act"):], whoDecides, nameDecides, whyDecided, in.Digest,
		time.Now().UnixMicro(), decidedLeaf(id, in.Digest))
}

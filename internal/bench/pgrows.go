package bench

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// The statements for the rows of a proposal and of a decision in the gate's own tables, with their
// indexes, checks and triggers: one statement each.
const (
	// $1 to $12 have an element for each proposal.
	pgPropose = `WITH r AS MATERIALIZED (
  SELECT nextval(pg_get_serial_sequence('action', 'seq')) AS seq, u.*
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[], $12::text[]) AS u (id, action_type, idempotency_key, connector,
    operation, entity_type, entity_ref, target_version, rationale, proposed_change, current_state, context)),
a AS (INSERT INTO action (seq, tenant, id, status, action_type, risk, proposer_id, idempotency_key, proposed_at,
    expires_at, decided_by, decided_via)
  SELECT seq, $13, 'act' || id, 'pending', action_type, 3, $14, idempotency_key, $15, $16, '', '' FROM r),
p AS (INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
    target_version, claimed_risk, on_behalf_of, expires_in, hold, digest, fingerprint, content_hash,
    policy_outcome, policy_version, policy_rules, policy_reasons, proposed_by, rationale,
    proposed_change, current_state, context, metadata, extra)
  SELECT seq, $13, 1, connector, operation, entity_type, entity_ref, '', target_version, 3, '', 0, 0, $17, $18, $19,
    'needs_approval', 1, $20, $21, 'agent', rationale, proposed_change, current_state, context, '', '' FROM r),
o AS (INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at)
  SELECT seq, $13, 'apr' || id, 'requested', 1, '["approver"]', '', $22, $16, $15 FROM r)
INSERT INTO audit_leaf (seq, tenant, action_id, body)
SELECT nextval('audit_leaf_row'), $13, 'act' || id, replace($23, '$id', id) FROM r`

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

// pgRows is the proposer on PostgreSQL.
type pgRows struct {
	pool     *pgxpool.Pool
	template *gatehouse.Action
	group    *group[*pgProposal]
	made     int
}

type pgProposal struct {
	*bareProposal
	id string
}

func (b *pgRows) close() error {
	b.group.close()
	b.pool.Close()
	return nil
}

func (b *pgRows) ways() []way[bareProposal] {
	return []way[bareProposal]{
		{proposalIs + pgBatched, func(id string, p *bareProposal) error { return b.group.do(&pgProposal{p, id}) }},
		{proposalIs + pgAlone, func(id string, p *bareProposal) error { return b.insert(&pgProposal{p, id}) }},
	}
}

func (b *pgRows) insert(list ...*pgProposal) error {
	var columns [12][]string
	for _, p := range list {
		for i, text := range [len(columns)]string{
			p.id[len("act"):], p.ActionType, p.IdempotencyKey, p.Connector, p.Operation, p.Target.EntityType,
			p.Target.EntityRef, p.Target.Version, p.Rationale, string(p.ProposedChange), string(p.CurrentState),
			string(p.Context),
		} {
			columns[i] = append(columns[i], text)
		}
	}
	var args []any
	for _, c := range columns {
		args = append(args, c)
	}
	a, now := b.template, time.Now()
	rows := rowsOf(a)
	return execPG(b.pool, len(list), pgPropose, append(args, a.Tenant, a.ProposerID, now.UnixMicro(),
		now.Add(24*time.Hour).UnixMicro(), string(a.Digest), a.Fingerprint, a.ContentHash[:], rows.rules, rows.reasons,
		rows.excluded, proposedLeaf(a, "act$id"))...)
}

// pgDecisions is the decider on PostgreSQL that writes all rows.
type pgDecisions struct{ *pgRows }

func (b *pgDecisions) pending(n int) ([]string, error) {
	ids := make([]string, n)
	for from := 0; from < n; from += fillBatch {
		var list []*pgProposal
		for i := from; i < min(n, from+fillBatch); i++ {
			ids[i] = gate.NewID("act")
			list = append(list, &pgProposal{bareRequest(proposal(b.made)), ids[i]})
			b.made++
		}
		if err := b.insert(list...); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (b *pgDecisions) ways() []way[bareDecision] {
	return []way[bareDecision]{{sameRowsIs + pgAlone, func(id string, in *bareDecision) error {
		return execPG(b.pool, 1, pgDecide, b.template.Tenant, id[len("act"):], whoDecides, nameDecides, whyDecided,
			in.Digest, time.Now().UnixMicro(), decidedLeaf(id, in.Digest))
	}}}
}

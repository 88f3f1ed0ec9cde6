package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// actionRow is a proposed action with its proposal and, if somebody is asked, its approval.
type actionRow struct {
	Tenant                                         string
	ID                                             string
	Status                                         gatehouse.Status
	ActionType                                     string
	Risk                                           gatehouse.RiskLevel
	ProposerID                                     string
	IdempotencyKey                                 *string
	ProposedAt                                     time.Time
	ExpiresAt                                      *time.Time
	DecidedBy                                      string
	DecidedVia                                     gatehouse.Channel
	DecidedAt, FinishedAt                          *time.Time
	Failure                                        *failure
	Supersedes, SupersededBy, Reverses, ReversedBy *string

	Revision                                         int
	Connector, Operation                             string
	EntityType, EntityRef, EntityRefs, TargetVersion string
	ClaimedRisk                                      gatehouse.RiskLevel
	Magnitude                                        *gatehouse.Magnitude
	OnBehalfOf                                       string
	ExpiresIn                                        gatehouse.Span
	Hold                                             gatehouse.Duration
	Digest                                           gatehouse.Digest
	Fingerprint                                      string
	ContentHash                                      [32]byte
	PolicyOutcome                                    gatehouse.Outcome
	PolicyVersion                                    int
	PolicyRules, PolicyReasons                       string
	ProposedBy, Rationale                            string
	ProposedChange, CurrentState, Context, Metadata  gatehouse.JSON
	Extra                                            string

	Approval *approvalRow
}

type approvalRow struct {
	ID                      string
	Status                  gatehouse.ApprovalStatus
	Required                int
	Roles, People, Excluded string
	ExpiresAt, CreatedAt    time.Time
	Confirm                 *gatehouse.Confirm
	Groups, Timing          string
	Told                    int
	NextAt                  *time.Time
	About                   string
}

// insertActions takes the seq of each action from the sequence first, because the rows of its approval and its
// proposal have the same seq.
var insertActions = writes[actionRow](rankAction, "ID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, ($3::text[])[n] AS status, ($4::text[])[n] AS action_type,
    ($5::bigint[])[n] AS risk, ($6::text[])[n] AS proposer_id, ($7::text[])[n] AS idempotency_key,
    ($8::bigint[])[n] AS proposed_at, ($9::bigint[])[n] AS expires_at, ($10::text[])[n] AS decided_by,
    ($11::text[])[n] AS decided_via, ($12::bigint[])[n] AS decided_at, ($13::bigint[])[n] AS finished_at,
    ($14::text[])[n] AS failure_code, ($15::text[])[n] AS failure_detail, ($16::text[])[n] AS supersedes,
    ($17::text[])[n] AS superseded_by, ($18::text[])[n] AS reverses, ($19::text[])[n] AS reversed_by,
    ($20::bigint[])[n] AS revision, ($21::text[])[n] AS connector, ($22::text[])[n] AS operation,
    ($23::text[])[n] AS entity_type, ($24::text[])[n] AS entity_ref, ($25::text[])[n] AS entity_refs,
    ($26::text[])[n] AS target_version, ($27::bigint[])[n] AS claimed_risk,
    ($28::text[])[n] AS magnitude_amount, ($29::text[])[n] AS magnitude_currency,
    ($30::text[])[n] AS on_behalf_of, ($31::bigint[])[n] AS expires_in, ($32::bigint[])[n] AS hold,
    ($33::text[])[n] AS digest, ($34::text[])[n] AS fingerprint, ($35::bytea[])[n] AS content_hash,
    ($36::text[])[n] AS policy_outcome, ($37::bigint[])[n] AS policy_version, ($38::text[])[n] AS policy_rules,
    ($39::text[])[n] AS policy_reasons, ($40::text[])[n] AS proposed_by, ($41::text[])[n] AS rationale,
    ($42::text[])[n] AS proposed_change, ($43::text[])[n] AS current_state, ($44::text[])[n] AS context,
    ($45::text[])[n] AS metadata, ($46::text[])[n] AS extra, ($47::text[])[n] AS approval_id,
    ($48::text[])[n] AS approval_status, ($49::bigint[])[n] AS approval_required,
    ($50::text[])[n] AS approval_roles, ($51::text[])[n] AS approval_people,
    ($52::text[])[n] AS approval_excluded, ($53::bigint[])[n] AS approval_expires_at,
    ($54::bigint[])[n] AS approval_created_at, ($55::text[])[n] AS approval_confirm_prompt,
    ($56::text[])[n] AS approval_confirm_value, ($57::text[])[n] AS approval_groups,
    ($58::text[])[n] AS approval_timing, ($59::bigint[])[n] AS approval_told,
    ($60::bigint[])[n] AS approval_next_at, ($61::text[])[n] AS approval_about, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $62
),
s AS (
  SELECT nextval('action_seq_seq') AS seq, r.* FROM r
),
a AS (
  INSERT INTO action (seq, tenant, id, status, action_type, risk, proposer_id, idempotency_key,
    proposed_at, expires_at, decided_by, decided_via, decided_at, finished_at,
    failure_code, failure_detail, supersedes, superseded_by, reverses, reversed_by)
  SELECT seq, tenant, id, status, action_type, risk, proposer_id, idempotency_key,
    proposed_at, expires_at, decided_by, decided_via, decided_at, finished_at,
    failure_code, failure_detail, supersedes, superseded_by, reverses, reversed_by
  FROM s
),
o AS (
  INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at,
    confirm_prompt, confirm_value, groups, timing, told, next_at, about)
  SELECT seq, tenant, approval_id, approval_status, approval_required,
    approval_roles, approval_people, approval_excluded, approval_expires_at, approval_created_at,
    approval_confirm_prompt, approval_confirm_value, approval_groups, approval_timing,
    approval_told, approval_next_at, approval_about
  FROM s WHERE approval_id IS NOT NULL
)
INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
  target_version, claimed_risk, amount, currency, on_behalf_of, expires_in, hold,
  digest, fingerprint, content_hash, policy_outcome, policy_version, policy_rules, policy_reasons,
  proposed_by, rationale, proposed_change, current_state, context, metadata, extra)
SELECT seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
  target_version, claimed_risk, magnitude_amount, magnitude_currency, on_behalf_of, expires_in, hold,
  digest, fingerprint, content_hash, policy_outcome, policy_version, policy_rules, policy_reasons,
  proposed_by, rationale, proposed_change, current_state, context, metadata, extra
FROM s`).withSingle(`
WITH r AS (
  SELECT $1::text AS tenant, $2::text AS id, $3::text AS status, $4::text AS action_type, $5::bigint AS risk,
    $6::text AS proposer_id, $7::text AS idempotency_key, $8::bigint AS proposed_at, $9::bigint AS expires_at,
    $10::text AS decided_by, $11::text AS decided_via, $12::bigint AS decided_at, $13::bigint AS finished_at,
    $14::text AS failure_code, $15::text AS failure_detail, $16::text AS supersedes, $17::text AS superseded_by,
    $18::text AS reverses, $19::text AS reversed_by, $20::bigint AS revision, $21::text AS connector,
    $22::text AS operation, $23::text AS entity_type, $24::text AS entity_ref, $25::text AS entity_refs,
    $26::text AS target_version, $27::bigint AS claimed_risk, $28::text AS magnitude_amount,
    $29::text AS magnitude_currency, $30::text AS on_behalf_of, $31::bigint AS expires_in, $32::bigint AS hold,
    $33::text AS digest, $34::text AS fingerprint, $35::bytea AS content_hash, $36::text AS policy_outcome,
    $37::bigint AS policy_version, $38::text AS policy_rules, $39::text AS policy_reasons,
    $40::text AS proposed_by, $41::text AS rationale, $42::text AS proposed_change, $43::text AS current_state,
    $44::text AS context, $45::text AS metadata, $46::text AS extra, $47::text AS approval_id,
    $48::text AS approval_status, $49::bigint AS approval_required, $50::text AS approval_roles,
    $51::text AS approval_people, $52::text AS approval_excluded, $53::bigint AS approval_expires_at,
    $54::bigint AS approval_created_at, $55::text AS approval_confirm_prompt,
    $56::text AS approval_confirm_value, $57::text AS approval_groups, $58::text AS approval_timing,
    $59::bigint AS approval_told, $60::bigint AS approval_next_at, $61::text AS approval_about
),
s AS (
  SELECT nextval('action_seq_seq') AS seq, r.* FROM r
),
a AS (
  INSERT INTO action (seq, tenant, id, status, action_type, risk, proposer_id, idempotency_key,
    proposed_at, expires_at, decided_by, decided_via, decided_at, finished_at,
    failure_code, failure_detail, supersedes, superseded_by, reverses, reversed_by)
  SELECT seq, tenant, id, status, action_type, risk, proposer_id, idempotency_key,
    proposed_at, expires_at, decided_by, decided_via, decided_at, finished_at,
    failure_code, failure_detail, supersedes, superseded_by, reverses, reversed_by
  FROM s
),
o AS (
  INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at,
    confirm_prompt, confirm_value, groups, timing, told, next_at, about)
  SELECT seq, tenant, approval_id, approval_status, approval_required,
    approval_roles, approval_people, approval_excluded, approval_expires_at, approval_created_at,
    approval_confirm_prompt, approval_confirm_value, approval_groups, approval_timing,
    approval_told, approval_next_at, approval_about
  FROM s WHERE approval_id IS NOT NULL
)
INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
  target_version, claimed_risk, amount, currency, on_behalf_of, expires_in, hold,
  digest, fingerprint, content_hash, policy_outcome, policy_version, policy_rules, policy_reasons,
  proposed_by, rationale, proposed_change, current_state, context, metadata, extra)
SELECT seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
  target_version, claimed_risk, magnitude_amount, magnitude_currency, on_behalf_of, expires_in, hold,
  digest, fingerprint, content_hash, policy_outcome, policy_version, policy_rules, policy_reasons,
  proposed_by, rationale, proposed_change, current_state, context, metadata, extra
FROM s`)

// InsertAction stores a proposed action and its approval.
func (t *tx) InsertAction(a *gatehouse.Action) error {
	if err := t.Owns(a.Tenant); err != nil {
		return err
	}
	if !gatehouse.Status("").CanMove(a.Status) {
		return gatehouse.ErrConflict
	}
	if a.IdempotencyKey != "" && !shared.HasDerivedKey(a) && t.freeKey != (keyRow{a.Tenant, a.IdempotencyKey}) {
		if err := t.Write(keyIsFree, a.Tenant, a.IdempotencyKey); err != nil {
			return err
		}
	}
	extra, err := shared.EncodeExtra(a)
	if err != nil {
		return err
	}
	r := actionRow{
		Tenant: a.Tenant, ID: a.ID, Status: a.Status, ActionType: a.ActionType, Risk: a.RiskLevel,
		ProposerID: a.ProposerID, IdempotencyKey: orNull(a.IdempotencyKey), ProposedAt: a.ProposedAt,
		DecidedBy: a.DecidedBy, DecidedVia: a.DecidedVia, DecidedAt: a.DecidedAt, FinishedAt: a.FinishedAt,
		Failure: failureOf(a.Failure), Supersedes: orNull(a.Supersedes), SupersededBy: orNull(a.Superseded),
		Reverses: orNull(a.Reverses), ReversedBy: orNull(a.ReversedBy),

		Revision: a.Revision, Connector: a.Connector, Operation: a.Operation,
		EntityType: a.Target.EntityType, EntityRef: a.Target.EntityRef,
		EntityRefs: shared.EncodeList(a.Target.EntityRefs), TargetVersion: a.Target.Version,
		ClaimedRisk: a.ClaimedRisk, Magnitude: a.Magnitude, OnBehalfOf: a.OnBehalfOf,
		ExpiresIn: a.ExpiresIn, Hold: a.HoldFor, Digest: a.Digest, Fingerprint: a.Fingerprint,
		ContentHash: a.ContentHash, PolicyOutcome: a.Policy.Outcome, PolicyVersion: a.Policy.Version,
		PolicyRules: shared.EncodeList(a.Policy.Rules), PolicyReasons: shared.EncodeList(a.Policy.Reasons),
		ProposedBy: a.ProposedBy, Rationale: a.Rationale, ProposedChange: a.ProposedChange,
		CurrentState: a.CurrentState, Context: a.Context, Metadata: a.Metadata, Extra: extra,
	}
	if a.Approval == nil {
		return insertActions.write(t, r)
	}
	if r.Approval, err = approvalOf(a.Approval); err != nil {
		return err
	}
	r.ExpiresAt = &r.Approval.ExpiresAt
	if err := insertActions.write(t, r); err != nil {
		return err
	}
	for _, v := range a.Approval.Votes {
		if err := t.PutVote(a.Approval.ID, v); err != nil {
			return err
		}
	}
	return nil
}

func approvalOf(o *gatehouse.Approval) (*approvalRow, error) {
	if !gatehouse.ApprovalStatus("").CanMove(o.Status) {
		return nil, gatehouse.ErrConflict
	}
	timing, err := shared.EncodeTiming(o)
	return &approvalRow{
		ID: o.ID, Status: o.Status, Required: o.Required, Roles: shared.EncodeList(o.Roles),
		People: shared.EncodeList(o.People), Excluded: shared.EncodeList(o.Excluded),
		ExpiresAt: o.End(), CreatedAt: o.CreatedAt, Confirm: o.Confirm, Groups: shared.EncodeList(o.Groups),
		Timing: timing, Told: o.MomentsDone, NextAt: o.NextMoment(o.MomentsDone), About: shared.EncodeAbout(o.About),
	}, err
}

package invariants

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// actionRows is one action with all its rows. Times are in microseconds since 1970.
type actionRows struct {
	seq        int64
	tenant, id string
	status     gatehouse.Status
	key        string
	proposerID string
	actionType string
	risk       gatehouse.RiskLevel
	decidedBy  string
	decidedVia gatehouse.Channel
	proposer   bool // is a principal of the tenant
	superseded string
	decidedAt  sql.NullInt64
	expiresAt  sql.NullInt64

	proposal *proposal
	approval *approval
	votes    []vote
	pushes   []push
	receipts []receipt
	claims   []claim
	mirrors  []child
	leaves   []leaf
	comments []comment
	// counts and assignee are the approval's.
	counts   gatehouse.Conversation
	assignee string
}

// child identifies the action that a row belongs to.
type child struct{ tenant, actionID string }

type proposal struct {
	tenant           string
	outcome          gatehouse.Outcome
	digest, computed gatehouse.Digest
	ceilings         []gatehouse.CeilingClaim
}

type approval struct {
	tenant, id string
	status     gatehouse.ApprovalStatus
	required   int
	excluded   []string
	expiresAt  int64
	question   string // digest of the frozen fields
	timedOut   bool   // the policy rejects when nobody answers in time
	rejectsAt  sql.NullInt64
}

type vote struct {
	tenant, person, principalID, name, delegator, grant, notes string

	decision gatehouse.DecisionKind
	via      gatehouse.Channel
	digest   gatehouse.Digest
	at       int64
	kind     string // of the principal; "" for none
}

type push struct {
	child
	id, key     string
	digest      gatehouse.Digest
	status      gatehouse.PushStatus
	attempts    int
	generation  int
	nextAttempt sql.NullInt64
	leaseUntil  sql.NullInt64
	leaseOwner  string
	sentAt      sql.NullInt64
}

type receipt struct {
	child
	id, pushID, key     string
	attempt, generation int
	outcome             gatehouse.ReceiptOutcome
	late                bool
	source              string
	at                  int64
}

type claim struct {
	tenant, ceiling, scope string
	amount, reservedAt     int64
	released               bool
	// others is the sum of other held claims on the same account, in the
	// ceiling's window that ends when this claim was reserved.
	others int64
}

type leaf struct {
	tenant string
	body   string
	gatehouse.Leaf
}

// load reads the next page of actions.
func (c *checker) load(ctx context.Context, tx *sql.Tx, after int64) ([]*actionRows, error) {
	actions, err := c.loadActions(ctx, tx, after)
	if err != nil || len(actions) == 0 {
		return nil, err
	}
	bySeq := make(map[int64]*actionRows, len(actions))
	for _, f := range actions {
		bySeq[f.seq] = f
	}
	last := actions[len(actions)-1].seq
	within := func(column string) string {
		return fmt.Sprintf("%[1]s > %[2]d AND %[1]s <= %[3]d", column, after, last)
	}
	for _, load := range []func(context.Context, *sql.Tx, map[int64]*actionRows, func(string) string) error{
		loadVotes, loadPushes, loadReceipts, c.loadClaims, loadMirrors, loadComments, c.loadLeaves,
	} {
		if err := load(ctx, tx, bySeq, within); err != nil {
			return nil, err
		}
	}
	return actions, c.sumClaims(ctx, tx, actions)
}

// loadActions reads actions with their proposals and approvals. It computes a proposal's digest and does not
// keep its content, which may have a megabyte.
func (c *checker) loadActions(ctx context.Context, tx *sql.Tx, after int64) (actions []*actionRows, err error) {
	query := fmt.Sprintf(`SELECT a.seq, a.tenant, a.id, a.status, coalesce(a.idempotency_key, ''), a.proposer_id,
(SELECT count(*) FROM principal x
WHERE x.tenant = a.tenant AND x.id = a.proposer_id), coalesce(a.superseded_by, ''), a.decided_at, a.expires_at,
a.action_type, a.risk, a.decided_by, a.decided_via,
p.tenant, p.revision, p.connector, p.operation, p.entity_type, p.entity_ref, p.entity_refs, p.target_version,
p.amount, p.currency, p.digest, p.fingerprint, p.policy_outcome, p.proposed_change, p.current_state, p.extra,
o.tenant, o.id, o.status, o.required, o.roles, o.people, o.excluded, o.expires_at, o.created_at, o.confirm_prompt,
o.confirm_value, o.groups, o.timing, o.about, o.rejects_at
FROM action a LEFT JOIN proposal p ON p.seq = a.seq LEFT JOIN approval o ON o.seq = a.seq
WHERE a.seq > %d ORDER BY a.seq LIMIT %d`, after, c.o.Page)
	err = each(ctx, tx, query, func(rows *sql.Rows) error {
		f := &actionRows{}
		var proposers, revision int64
		var p [13]sql.NullString // of the proposal, in the query's order
		var change, state sql.NullString
		var rev sql.NullInt64
		var o approvalRow
		err := rows.Scan(&f.seq, &f.tenant, &f.id, &f.status, &f.key, &f.proposerID, &proposers, &f.superseded, &f.decidedAt,
			&f.expiresAt, &f.actionType, &f.risk, &f.decidedBy, &f.decidedVia,
			&p[0], &rev, &p[1], &p[2], &p[3], &p[4], &p[5], &p[6], &p[7], &p[8], &p[9], &p[10], &p[11], &change, &state, &p[12],
			&o.tenant, &o.id, &o.status, &o.required, &o.roles, &o.people, &o.excluded, &o.expiresAt, &o.createdAt,
			&o.prompt, &o.value, &o.groups, &o.timing,
			&o.about, &o.rejectsAt)
		if err != nil {
			return err
		}
		f.proposer, revision = proposers > 0, rev.Int64
		if p[0].Valid {
			if f.proposal, err = f.readProposal(p, revision, change.String, state.String); err != nil {
				return fmt.Errorf("%s: %w", f.id, err)
			}
		}
		if f.approval, err = o.read(); err != nil {
			return fmt.Errorf("%s: %w", f.id, err)
		}
		actions = append(actions, f)
		return nil
	})
	return actions, err
}

// approvalRow is the row of an approval; all NULL when there is none.
type approvalRow struct {
	tenant, id, status             sql.NullString
	required, expiresAt, createdAt sql.NullInt64
	roles, people, excluded        sql.NullString
	prompt, value, groups, timing  sql.NullString
	about                          sql.NullString
	rejectsAt                      sql.NullInt64
}

func (o *approvalRow) read() (*approval, error) {
	if !o.tenant.Valid {
		return nil, nil
	}
	a := gatehouse.Approval{
		ID: o.id.String, Required: int(o.required.Int64),
		ExpiresAt: time.UnixMicro(o.expiresAt.Int64), CreatedAt: time.UnixMicro(o.createdAt.Int64),
	}
	if o.prompt.Valid {
		a.Confirm = &gatehouse.Confirm{Prompt: o.prompt.String, Value: o.value.String}
	}
	var err [4]error
	a.Roles, err[0] = shared.DecodeList[gatehouse.Role](o.roles.String)
	a.People, err[1] = shared.DecodeList[string](o.people.String)
	a.Groups, err[3] = shared.DecodeList[string](o.groups.String)
	a.Excluded, err[2] = shared.DecodeList[string](o.excluded.String)
	timing, bad := shared.DecodeJSON[gatehouse.Timing](o.timing.String)
	if timing != nil {
		a.Timing = *timing
		a.ExpiresAt = a.ExpiresAt.Add(-a.ExtendBy.D())
	}
	about, worse := shared.DecodeJSON[gatehouse.About](o.about.String)
	a.About = about
	err[0] = errors.Join(err[0], bad, worse)
	return &approval{
		timedOut: a.OnTimeout == gatehouse.TimeoutReject, tenant: o.tenant.String, id: o.id.String,
		status: gatehouse.ApprovalStatus(o.status.String), required: a.Required,
		excluded: a.Excluded, expiresAt: o.expiresAt.Int64, question: string(a.Question()),
		rejectsAt: o.rejectsAt,
	}, errors.Join(err[:]...)
}

func (f *actionRows) readProposal(p [13]sql.NullString, revision int64, change, state string) (*proposal, error) {
	refs, err := shared.DecodeList[string](p[5].String)
	if err != nil {
		return nil, err
	}
	extra, err := shared.DecodeJSON[struct {
		Ceilings []gatehouse.CeilingClaim `json:"ceilings"`
	}](p[12].String)
	if err != nil {
		return nil, err
	}
	what := &gatehouse.Proposal{
		Operation: p[2].String,
		Target: gatehouse.Target{EntityType: p[3].String, EntityRef: p[4].String, EntityRefs: refs,
			Version: p[6].String},
		ProposedChange: gatehouse.JSON(change), CurrentState: gatehouse.JSON(state), IdempotencyKey: f.key,
	}
	if p[7].Valid {
		what.Magnitude = &gatehouse.Magnitude{Amount: gatehouse.Decimal(p[7].String), Currency: p[8].String}
	}
	out := &proposal{
		tenant: p[0].String, outcome: gatehouse.Outcome(p[11].String), digest: gatehouse.Digest(p[9].String),
		computed: gatehouse.ComputeDigest(f.tenant, int(revision), p[1].String, p[10].String, what),
	}
	if extra != nil {
		out.ceilings = extra.Ceilings
	}
	return out, nil
}

func loadVotes(ctx context.Context, tx *sql.Tx, actions map[int64]*actionRows, within func(string) string) error {
	return each(ctx, tx, `SELECT v.seq, v.tenant, v.person, v.principal_id, v.name, v.decision, v.digest, v.at,
		v.notes, v.via, v.for_id, v.grant_id, coalesce(x.kind, '')
FROM vote v LEFT JOIN principal x ON x.tenant = v.tenant AND x.id = v.principal_id WHERE `+within("v.seq"),
		func(rows *sql.Rows) error {
			var seq int64
			var v vote
			err := rows.Scan(&seq, &v.tenant, &v.person, &v.principalID, &v.name, &v.decision, &v.digest, &v.at,
				&v.notes, &v.via, &v.delegator, &v.grant, &v.kind)
			if f := actions[seq]; f != nil {
				f.votes = append(f.votes, v)
			}
			return err
		})
}

func loadPushes(ctx context.Context, tx *sql.Tx, actions map[int64]*actionRows, within func(string) string) error {
	return each(ctx, tx,
		`SELECT action_seq, tenant, action_id, id, idempotency_key, digest, status, attempts, generation, next_attempt,
lease_until, lease_owner, sent_at FROM push WHERE `+within("action_seq"), func(rows *sql.Rows) error {
			var seq int64
			var p push
			err := rows.Scan(&seq, &p.tenant, &p.actionID, &p.id, &p.key, &p.digest, &p.status, &p.attempts, &p.generation,
				&p.nextAttempt,
				&p.leaseUntil, &p.leaseOwner, &p.sentAt)
			if f := actions[seq]; f != nil {
				f.pushes = append(f.pushes, p)
			}
			return err
		})
}

func loadReceipts(ctx context.Context, tx *sql.Tx, actions map[int64]*actionRows, within func(string) string) error {
	return each(ctx, tx,
		`SELECT action_seq, tenant, action_id, id, push_id, idempotency_key, attempt, generation, outcome, late, source, at
FROM receipt WHERE `+within("action_seq")+` ORDER BY action_seq, seq`, func(rows *sql.Rows) error {
			var seq int64
			var r receipt
			err := rows.Scan(&seq, &r.tenant, &r.actionID, &r.id, &r.pushID, &r.key, &r.attempt, &r.generation, &r.outcome,
				&r.late, &r.source, &r.at)
			if f := actions[seq]; f != nil {
				f.receipts = append(f.receipts, r)
			}
			return err
		})
}

func (c *checker) loadClaims(
	ctx context.Context, tx *sql.Tx, actions map[int64]*actionRows, within func(string) string,
) error {
	return each(ctx, tx, c.claimsWhere(within("action_seq")), func(rows *sql.Rows) error {
		var seq int64
		var released sql.NullInt64
		var l claim
		err := rows.Scan(&seq, &l.tenant, &l.ceiling, &l.scope, &l.amount, &l.reservedAt, &released)
		l.released = released.Valid
		if f := actions[seq]; f != nil {
			f.claims = append(f.claims, l)
		}
		return err
	})
}

func loadMirrors(ctx context.Context, tx *sql.Tx, actions map[int64]*actionRows, within func(string) string) error {
	return each(ctx, tx, `SELECT action_seq, tenant, action_id FROM mirror WHERE `+within("action_seq"),
		func(rows *sql.Rows) error {
			var seq int64
			var m child
			err := rows.Scan(&seq, &m.tenant, &m.actionID)
			if f := actions[seq]; f != nil {
				f.mirrors = append(f.mirrors, m)
			}
			return err
		})
}

// loadLeaves reads each action's leaves in the order of writing, with and without a
// number in the log. The leaves are of the same snapshot as the rows, so the two must agree.
func (c *checker) loadLeaves(
	ctx context.Context, tx *sql.Tx, actions map[int64]*actionRows, within func(string) string,
) error {
	const columns = `SELECT a.seq AS action_seq, l.seq AS leaf_seq, l.tenant, l.body FROM action a
		JOIN audit_leaf l ON l.tenant = a.tenant AND l.action_id = a.id WHERE `
	return each(ctx, tx, columns+within("a.seq")+` AND l.action_id <> '' ORDER BY 1, 2`, func(rows *sql.Rows) error {
		var seq, row int64
		var l leaf
		if err := rows.Scan(&seq, &row, &l.tenant, &l.body); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(l.body), &l.Leaf); err != nil {
			l.Leaf = gatehouse.Leaf{Type: "(unreadable)"}
		}
		if f := actions[seq]; f != nil {
			f.leaves = append(f.leaves, l)
		}
		return nil
	})
}

// ceiling returns the limit under which a claim was made.
func (f *actionRows) ceiling(l *claim) *gatehouse.CeilingClaim {
	if f.proposal == nil {
		return nil
	}
	for i := range f.proposal.ceilings {
		if c := &f.proposal.ceilings[i]; c.Ceiling == l.ceiling && c.Scope == l.scope {
			return c
		}
	}
	return nil
}

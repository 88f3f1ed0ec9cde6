package postgres

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// The columns of a page's actions, as in findActions.
const (
	actionColumns = `a.tenant, a.id, a.status, a.action_type, a.risk, a.proposer_id, coalesce(a.idempotency_key, ''),
  a.proposed_at, a.decided_by, a.decided_via, a.decided_at, a.finished_at, a.failure_code, a.failure_detail,
  coalesce(a.supersedes, ''), coalesce(a.superseded_by, ''), coalesce(a.reverses, ''), coalesce(a.reversed_by, ''),
  p.revision, p.connector, p.operation, p.entity_type, p.entity_ref, p.entity_refs, p.target_version, p.claimed_risk,
  p.amount, p.currency, p.on_behalf_of, p.expires_in, p.hold, p.digest, p.fingerprint, p.content_hash,
  p.policy_outcome, p.policy_version, p.policy_rules, p.policy_reasons, p.proposed_by, p.rationale,
  p.proposed_change, p.current_state, p.context, p.metadata, p.extra,
  o.id, o.status, o.required, o.roles, o.people, o.excluded, o.expires_at, o.created_at, o.confirm_prompt,
  o.confirm_value, o.groups, o.timing, o.told, o.changed_at, o.changed_version, o.changed_by, o.about,
  o.comments, o.asked, o.answered, o.assignee_id, o.assignee, o.evaluated`
	receiptColumns = `r.tenant, r.id, r.action_id, r.push_id, r.idempotency_key, r.attempt, r.generation, r.outcome,
  r.error_code, r.error, r.external_id, r.reversible, r.late, r.source, r.at, r.request_metadata, r.response_metadata,
  r.reversal`
)

// pageScan finds the actions of a page, in page order. positions is a query for up to limit
// rows (at, bucket, large, place); place is the ctid of the action's row.
type pageScan struct {
	condition
	positions string
	limit     int
	// allPending says that all actions are pending: none has a push.
	allPending bool
	// before reports whether p comes before q in the order of the page.
	before func(p, q pagePosition) bool
}

// pagePosition is the position of an action in a list.
type pagePosition struct {
	// at is, in the order by urgency, the time to which the due buckets of a first page are relative.
	at           int64
	bucket, risk int
	large        bool // see walkCells
	id, approval string
	size         int64
}

// A page is one statement, so it shows one snapshot: the statement scans for positions, and looks up the rows of the
// action at each position. A proposal that is too large for its share of a page is left out. In that case the page is
// read again, with a running sum of sizes that ends the page once it is full. The sum makes a page a tenth slower. The
// server knows the length of a large value without reading it.
const (
	pageHead       = `SELECT * FROM (SELECT p.size, x.at, x.bucket, x.large, o.votes, ` + actionColumns
	pageSizeBefore = `, row_number() OVER (ROWS UNBOUNDED PRECEDING) AS number,
  sum(p.size) OVER (ROWS UNBOUNDED PRECEDING) - p.size AS before`
	pageFrom = ` FROM (`
	// The query of the positions is between these two.
	pageJoins = `) x
CROSS JOIN LATERAL (SELECT * FROM action WHERE action.ctid = x.place OFFSET 0) a
LEFT JOIN LATERAL (SELECT *, octet_length(proposed_change) + octet_length(current_state) + octet_length(context) + octet_length(metadata)
  + octet_length(extra) + octet_length(rationale) + octet_length(entity_refs) AS size FROM proposal
  WHERE proposal.seq = a.seq OFFSET 0) p ON p.size <= `
	pageApproval = `
LEFT JOIN LATERAL (SELECT *, (SELECT json_agg(json_build_object('person', v.person, 'principal_id', v.principal_id,
  'name', v.name, 'decision', v.decision, 'notes', v.notes, 'via', v.via, 'digest', v.digest, 'micros', v.at, 'for',
  v.for_id, 'for_name', v.for_name, 'grant', v.grant_id))
    FROM vote v WHERE v.seq = approval.seq) AS votes FROM approval WHERE approval.seq = a.seq OFFSET 0) o ON true`
	pagePush = `
LEFT JOIN LATERAL (SELECT * FROM push WHERE push.action_seq = a.seq OFFSET 0) h ON true
LEFT JOIN LATERAL (SELECT * FROM receipt l WHERE l.action_seq = h.action_seq AND NOT l.late
  ORDER BY l.seq DESC LIMIT 1) r ON true`
	pageEnd   = `) y`
	pageUntil = ` WHERE y.number <= 2 OR y.before <= `
)

// storedVote is a vote in the JSON list that pageApproval selects.
type storedVote struct {
	gatehouse.Vote
	Micros int64 `json:"micros"`
}

// pageRows reads the actions of a page.
func (t *readTx) pageRows(w *pageScan) (rows []pagePosition, items []*gatehouse.Action, err error) {
	rows, items, large, err := t.pageRowsUpTo(w, shared.MaxPageBytes/int64(w.limit), false)
	if err != nil || !large {
		return rows, items, err
	}
	t.allowSecondRead()
	rows, items, missing, err := t.pageRowsUpTo(w, math.MaxInt32, true)
	if err == nil && missing {
		err = errors.New("postgres: an action in a list has no proposal")
	}
	return rows, items, err
}

// pageRowsUpTo reads the actions of a page up to the first proposal of more than maxSize bytes; large reports
// whether there was such a proposal. If bounded is true, the page ends after the proposal with which the sum
// of the sizes exceeds shared.MaxPageBytes, but not before the second proposal.
func (t *readTx) pageRowsUpTo(
	w *pageScan,
	maxSize int64,
	bounded bool,
) (rows []pagePosition, items []*gatehouse.Action, large bool, err error) {
	args := append(slices.Clip(w.args), maxSize)
	pushColumnsSQL, pushJoin, sum, end := `, `+pushColumns+`, `+receiptColumns, pagePush, "", pageEnd
	if w.allPending {
		pushColumnsSQL, pushJoin = `, NULL::text`, ""
	}
	if bounded {
		sum, end = pageSizeBefore, pageEnd+pageUntil+strconv.Itoa(shared.MaxPageBytes)
	}
	sql := pageHead + pushColumnsSQL + sum + pageFrom + w.positions + pageJoins + `$` + strconv.Itoa(
		len(args),
	) + pageApproval + pushJoin + end
	items, rows = make([]*gatehouse.Action, 0, w.limit), make([]pagePosition, 0, w.limit)
	var kept []string
	err = t.each(sql, func(r *row) error {
		if large = large || r.Null(); large {
			return nil
		}
		kept = r.keep(kept)
		p := pagePosition{size: r.Int(), at: r.Int(), bucket: int(r.Int()), large: r.Bool()}
		var err error
		votes := shared.JSONAt[[]storedVote](r, &err)
		if err != nil {
			return err
		}
		a, err := scanAction(r)
		if err != nil {
			return err
		}
		p.id, p.risk = a.ID, int(a.RiskLevel)
		if o := a.Approval; o != nil {
			p.approval = o.ID
			if votes != nil {
				for _, v := range *votes {
					v.At = time.UnixMicro(v.Micros).UTC()
					o.Votes = append(o.Votes, v.Vote)
				}
				shared.SortVotes(o.Votes)
			}
		}
		if n := len(rows); n > 0 && !w.before(rows[n-1], p) {
			return fmt.Errorf("postgres: a list returned %v after %v", p, rows[n-1])
		}
		rows, items = append(rows, p), append(items, a)
		return nil
	}, args...)
	if err != nil {
		return nil, nil, false, err
	}
	for _, a := range items {
		t.applyExpiry(a)
	}
	return rows, items, large, nil
}

// cut returns how many of the rows make the page, and whether more rows may follow. If the first row alone
// exceeds shared.MaxPageBytes, the page has only that row.
func (w *pageScan) cut(rows []pagePosition) (n int, more bool) {
	n = shared.Fit(min(w.limit-1, len(rows)), func(i int) int64 { return rows[i].size })
	return n, n < len(rows)
}

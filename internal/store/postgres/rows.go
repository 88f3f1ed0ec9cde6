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

// walk is where the actions of a page stand, in its order: places is a query for
// (at, bucket, large, place) of up to limit rows, in which place is the ctid of
// the action's row.
type walk struct {
	condition
	places string
	limit  int
	// pending says that all of them are: nothing was sent yet.
	pending bool
	// before is the order.
	before func(p, q place) bool
}

// place is where an action stands in a list.
type place struct {
	// at is the time that the due buckets are relative to.
	at           int64
	bucket, risk int
	large        bool // see walkCells
	id, approval string
	size         int64
}

// A page is one statement, and so of one snapshot: the walk, and for each of its
// places what belongs to that action, row by row, each looked for by the one
// before. A proposal that is large for its share of a page does not come with it:
// then the page is asked for anew, with a sum that stops it where those before are
// a page by their size. The sum costs a tenth of the page; and the server knows a
// large value's length without reading it.
const (
	rowsOf     = `SELECT * FROM (SELECT p.size, x.at, x.bucket, x.large, o.votes, ` + actionColumns
	sentBefore = `, sum(p.size) OVER (ROWS UNBOUNDED PRECEDING) - p.size AS before`
	rowsFrom   = ` FROM (`
	// The places stand between these.
	rowsBeside = `) x
CROSS JOIN LATERAL (SELECT * FROM action WHERE action.ctid = x.place` + kept + ` a
LEFT JOIN LATERAL (SELECT *, octet_length(proposed_change) + octet_length(current_state) + octet_length(context) + octet_length(metadata)
  + octet_length(extra) + octet_length(rationale) + octet_length(entity_refs) AS size FROM proposal WHERE proposal.seq = a.seq` + kept + ` p ON p.size <= `
	rowsAsked = `
LEFT JOIN LATERAL (SELECT *, (SELECT json_agg(json_build_object('person', v.person, 'principal_id', v.principal_id, 'name', v.name,
    'decision', v.decision, 'notes', v.notes, 'via', v.via, 'digest', v.digest, 'micros', v.at, 'for', v.for_id,
    'for_name', v.for_name))
    FROM vote v WHERE v.seq = approval.seq) AS votes FROM approval WHERE approval.seq = a.seq` + kept + ` o ON true`
	rowsSent = `
LEFT JOIN LATERAL (SELECT * FROM push WHERE push.action_seq = a.seq` + kept + ` h ON true
LEFT JOIN LATERAL (SELECT * FROM receipt l WHERE l.action_seq = h.action_seq AND NOT l.late ORDER BY l.seq DESC LIMIT 1) r ON true`
	rowsEnd   = `) y`
	rowsUntil = ` WHERE y.before <= `
)

// storedVote is a vote as its action's row has it.
type storedVote struct {
	gatehouse.Vote
	Micros int64 `json:"micros"`
}

// rows reads the actions of a page.
func (t *readTx) rows(w *walk) (rows []place, items []*gatehouse.Action, err error) {
	rows, items, large, err := t.rowsUpTo(w, shared.MaxPageBytes/int64(w.limit), false)
	if err != nil || !large {
		return rows, items, err
	}
	t.later()
	rows, items, missing, err := t.rowsUpTo(w, math.MaxInt32, true)
	if err == nil && missing {
		err = errors.New("postgres: an action in a list has no proposal")
	}
	return rows, items, err
}

// rowsUpTo reads them, and tells whether there were proposals of more than most
// bytes, which it leaves out.
func (t *readTx) rowsUpTo(w *walk, most int64, bounded bool) (rows []place, items []*gatehouse.Action, large bool, err error) {
	args := append(slices.Clip(w.args), most)
	sent, of, sum, end := `, `+pushColumns+`, `+receiptColumns, rowsSent, "", rowsEnd
	if w.pending {
		sent, of = `, NULL::text`, ""
	}
	if bounded {
		sum, end = sentBefore, rowsEnd+rowsUntil+strconv.Itoa(shared.MaxPageBytes)
	}
	sql := rowsOf + sent + sum + rowsFrom + w.places + rowsBeside + `$` + strconv.Itoa(len(args)) + rowsAsked + of + end
	items, rows = make([]*gatehouse.Action, 0, w.limit), make([]place, 0, w.limit)
	var kept []string
	err = t.each(sql, func(r *row) error {
		if large = large || r.null(); large {
			return nil
		}
		kept = r.keep(kept)
		p := place{size: r.int(), at: r.int(), bucket: int(r.int()), large: r.bool()}
		var err error
		votes := jsonAt[[]storedVote](r, &err)
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
				sortVotes(o.Votes)
			}
		}
		if n := len(rows); n > 0 && !w.before(rows[n-1], p) {
			return fmt.Errorf("postgres: a list came to %v after %v", p, rows[n-1])
		}
		rows, items = append(rows, p), append(items, a)
		return nil
	}, args...)
	if err != nil {
		return nil, nil, false, err
	}
	for _, a := range items {
		t.show(a)
	}
	return rows, items, large, nil
}

// cut tells how many of the rows that were found make the page, and whether
// there are more. A first row that is a page by itself comes alone.
func (w *walk) cut(rows []place) (n int, more bool) {
	n = shared.Fit(min(w.limit-1, len(rows)), func(i int) int64 { return rows[i].size })
	return n, n < len(rows) || n == 1 && rows[0].size > shared.MaxPageBytes
}

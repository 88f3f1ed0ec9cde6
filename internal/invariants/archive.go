package invariants

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// archive checks rule 22 and applies the rules about actions to archived actions, as
// their documents describe them. The sums of claims on a ceiling leave them out.
func (c *checker) archive(ctx context.Context) error {
	people, err := c.people(ctx)
	if err != nil {
		return err
	}
	var tenant, id string
	for {
		var actions []*actionRows
		seen := 0
		err := c.in(ctx, func(tx *sql.Tx) (err error) {
			actions, seen, err = c.loadArchived(ctx, tx, &tenant, &id, people)
			return err
		})
		if err != nil {
			return err
		}
		for _, f := range actions {
			f.check(c.r)
		}
		if seen == 0 {
			return c.archiveLeaves(ctx)
		}
	}
}

// people returns the kind of every principal, by tenant and id.
func (c *checker) people(ctx context.Context) (map[[2]string]string, error) {
	kinds := map[[2]string]string{}
	err := c.in(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, `SELECT tenant, id, kind FROM principal`, func(rows *sql.Rows) error {
			var tenant, id, kind string
			err := rows.Scan(&tenant, &id, &kind)
			kinds[[2]string{tenant, id}] = kind
			return err
		})
	})
	return kinds, err
}

// loadArchived reads the next page of the archive, checks each document, and
// returns the readable ones. seen counts the rows.
func (c *checker) loadArchived(
	ctx context.Context, tx *sql.Tx, tenant, id *string, people map[[2]string]string,
) (actions []*actionRows, seen int, err error) {
	query := `SELECT r.tenant, r.id, coalesce(r.approval_id, ''), coalesce(r.push_id, ''), coalesce(r.idempotency_key, ''), r.status, r.action_type,
r.risk, r.proposer_id, r.proposed_at, r.ended_at, r.archived_at, r.batch, r.sha256, r.document,
(SELECT count(*) FROM action a WHERE a.tenant = r.tenant AND a.id = r.id)
FROM action_archive r WHERE (r.tenant, r.id) > (?, ?) ORDER BY r.tenant, r.id LIMIT ?`
	if !c.t.sqlite {
		query = numbered(query)
	}
	rows, err := tx.QueryContext(ctx, query, *tenant, *id, c.o.Page)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", query, err)
	}
	var whole []*actionRows
	for rows.Next() {
		var a gatehouse.Archived
		var hash, packed []byte
		var proposed, ended, archived, living int64
		err := rows.Scan(&a.Tenant, &a.ID, &a.ApprovalID, &a.PushID, &a.IdempotencyKey, &a.Status, &a.ActionType,
			&a.RiskLevel, &a.ProposerID,
			&proposed, &ended, &archived, &a.Batch, &hash, &packed, &living)
		if err != nil {
			return nil, 0, joined(err, rows)
		}
		seen++
		*tenant, *id = a.Tenant, a.ID
		copy(a.SHA256[:], hash)
		a.ProposedAt, a.EndedAt, a.ArchivedAt = time.UnixMicro(proposed).UTC(), time.UnixMicro(ended).UTC(),
			time.UnixMicro(archived).UTC()
		c.r.examined(22, 1)
		if living > 0 {
			c.r.violated(22, a.Tenant, a.ID, "it is in the archive and in the live tables")
		}
		record, err := readArchived(&a, packed)
		if err != nil {
			c.r.violated(22, a.Tenant, a.ID, "%v", err)
			continue
		}
		whole = append(whole, archivedRows(record, people))
	}
	if err := joined(rows.Err(), rows); err != nil {
		return nil, 0, err
	}
	for _, f := range whole {
		if err := c.archivedLeaves(ctx, tx, f); err != nil {
			return nil, 0, err
		}
	}
	return whole, seen, nil
}

func joined(err error, rows *sql.Rows) error {
	if e := rows.Close(); err == nil {
		err = e
	}
	return err
}

// numbered rewrites a query's ? parameters as $1, $2, … for PostgreSQL.
func numbered(query string) string {
	out, n := "", 0
	for _, r := range query {
		if r == '?' {
			n++
			out += fmt.Sprintf("$%d", n)
			continue
		}
		out += string(r)
	}
	return out
}

// readArchived unpacks a document and compares it with its row.
func readArchived(a *gatehouse.Archived, packed []byte) (*gatehouse.Record, error) {
	var err error
	if a.Document, err = shared.Unpack(packed); err != nil {
		return nil, err
	}
	record, err := a.Record()
	if err != nil {
		return nil, err
	}
	again, err := gatehouse.NewArchived(record, a.Batch, a.ArchivedAt)
	if err != nil {
		return nil, err
	}
	if *again != *a {
		return nil, fmt.Errorf("%w: the row differs from its document", gatehouse.ErrArchiveDamaged)
	}
	return record, nil
}

// archivedRows converts a record to the form that load returns.
func archivedRows(r *gatehouse.Record, people map[[2]string]string) *actionRows {
	a := r.Action
	_, known := people[[2]string{a.Tenant, a.ProposerID}]
	f := &actionRows{
		tenant: a.Tenant, id: a.ID, status: a.Status, key: a.IdempotencyKey, proposerID: a.ProposerID, proposer: known,
		superseded: a.Superseded, actionType: a.ActionType, risk: a.RiskLevel,
		decidedBy: a.DecidedBy, decidedVia: a.DecidedVia, decidedAt: micros(a.DecidedAt),
		proposal: &proposal{
			tenant: a.Tenant, outcome: a.Policy.Outcome, digest: a.Digest, computed: a.ComputeDigest(), ceilings: a.Ceilings,
		},
	}
	if o := a.Approval; o != nil {
		end := o.End()
		f.approval = &approval{
			a.Tenant, o.ID, o.Status, o.Required, o.Excluded, end.UnixMicro(), string(o.Question()),
			o.OnTimeout == gatehouse.TimeoutReject, sql.NullInt64{},
		}
		f.expiresAt = micros(&end)
		f.archivedConversation(a)
		for _, v := range o.Votes {
			f.votes = append(f.votes, vote{
				a.Tenant, v.Person, v.PrincipalID, v.Name, v.For, v.Grant, v.Notes, v.Decision, v.Via, v.Digest,
				v.At.UnixMicro(), people[[2]string{a.Tenant, v.PrincipalID}],
			})
		}
	}
	if p := r.Push; p != nil {
		f.pushes = []push{{
			child: child{p.Tenant, p.ActionID}, id: p.ID, key: p.IdempotencyKey, digest: p.Digest, status: p.Status,
			attempts:   p.Attempts,
			generation: p.Generation, nextAttempt: micros(p.NextAttempt), leaseUntil: micros(p.LeaseUntil),
			leaseOwner: p.LeaseOwner, sentAt: micros(p.SentAt),
		}}
	}
	for _, c := range r.Receipts {
		f.receipts = append(f.receipts, receipt{
			child{c.Tenant, c.ActionID}, c.ID, c.PushID, c.IdempotencyKey, c.Attempt, c.Generation, c.Outcome, c.Late, c.Source,
			c.At.UnixMicro(),
		})
	}
	for _, l := range r.Claims {
		f.claims = append(f.claims,
			claim{a.Tenant, l.Ceiling, l.Scope, l.Amount, l.ReservedAt.UnixMicro(), l.ReleasedAt != nil, 0})
	}
	if m := r.Mirror; m != nil {
		f.mirrors = []child{{m.Tenant, m.ActionID}}
	}
	return f
}

func micros(t *time.Time) (n sql.NullInt64) {
	if t != nil {
		n = sql.NullInt64{Int64: t.UnixMicro(), Valid: true}
	}
	return n
}

// archivedLeaves reads the log entries of an archived action.
func (c *checker) archivedLeaves(ctx context.Context, tx *sql.Tx, f *actionRows) error {
	query := `SELECT tenant, body FROM audit_leaf WHERE tenant = ? AND action_id = ? AND action_id <> '' ORDER BY seq`
	if !c.t.sqlite {
		query = numbered(query)
	}
	rows, err := tx.QueryContext(ctx, query, f.tenant, f.id)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	for rows.Next() {
		var l leaf
		if err := rows.Scan(&l.tenant, &l.body); err != nil {
			return joined(err, rows)
		}
		if err := json.Unmarshal([]byte(l.body), &l.Leaf); err != nil {
			l.Leaf = gatehouse.Leaf{Type: "(unreadable)"}
		}
		f.leaves = append(f.leaves, l)
	}
	return joined(rows.Err(), rows)
}

// named is what a leaf says about an archived action.
type named struct {
	ID     string         `json:"id"`
	SHA256 gatehouse.Hash `json:"sha256"`
}

// archiveLeaves compares log and archive in one snapshot: each action that a
// leaf names is in the archive with that hash, and every archived action is
// named.
func (c *checker) archiveLeaves(ctx context.Context) error {
	return c.in(ctx, func(tx *sql.Tx) error {
		type batch struct {
			tenant, id string
			actions    []named
		}
		counts := map[string]int64{}
		for after, more := int64(0), true; more; {
			var batches []batch
			more = false
			query := fmt.Sprintf(`SELECT seq, tenant, action_id, CASE WHEN action_id = '' THEN body ELSE '' END FROM audit_leaf
				WHERE seq > %d ORDER BY seq LIMIT %d`,
				after, 50*c.o.Page)
			err := each(ctx, tx, query, func(rows *sql.Rows) error {
				var tenant, action, body string
				if err := rows.Scan(&after, &tenant, &action, &body); err != nil {
					return err
				}
				more = true
				var l gatehouse.Leaf
				var d struct {
					Actions []named `json:"actions"`
				}
				switch {
				case body == "" || !reads(body, &l) || l.Type != gatehouse.EventArchived:
				case !reads(string(l.Data), &d):
					c.r.violated(22, tenant, l.Subject, "its entry in the log cannot be read")
				default:
					batches = append(batches, batch{tenant, l.Subject, d.Actions})
				}
				return nil
			})
			if err != nil {
				return err
			}
			for _, b := range batches {
				for _, n := range b.actions {
					counts[b.tenant]++
					there, err := c.isArchived(ctx, tx, b.tenant, b.id, n)
					if err != nil {
						return err
					}
					if !there {
						c.r.violated(22, b.tenant, n.ID, "the log says that it was archived in %s, but its hash differs or it is missing",
							b.id)
					}
				}
			}
		}
		return each(ctx, tx, `SELECT tenant, count(*) FROM action_archive GROUP BY tenant`, func(rows *sql.Rows) error {
			var tenant string
			var n int64
			if err := rows.Scan(&tenant, &n); err != nil {
				return err
			}
			if n != counts[tenant] {
				c.r.violated(22, tenant, tenant, "%d actions are archived, the log names %d", n, counts[tenant])
			}
			return nil
		})
	})
}

// reads reports whether a text is JSON that decodes into the value.
func reads(text string, into any) bool { return json.Unmarshal([]byte(text), into) == nil }

func (c *checker) isArchived(ctx context.Context, tx *sql.Tx, tenant, batch string, n named) (bool, error) {
	query := `SELECT count(*) FROM action_archive WHERE tenant = ? AND id = ? AND batch = ? AND sha256 = ?`
	if !c.t.sqlite {
		query = numbered(query)
	}
	var count int
	err := tx.QueryRowContext(ctx, query, tenant, n.ID, batch, n.SHA256[:]).Scan(&count)
	return count == 1, err
}

package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/app"
)

// sameRows is a second baseline of a decision: all the rows that the gate
// writes, in its own tables with their indexes and checks, by bare statements
// that are told what to write. What the gate takes beyond it are its reads and
// checks, the answer, and the numbering of the log.
type sameRows struct {
	db     *bareDB
	rows   *rows
	group  *group
	server *bareServer
	st     []*sql.Stmt
	made   int
}

var sameStatements = []string{
	`INSERT INTO vote (seq, tenant, person, principal_id, name, decision, notes, via, digest, at)
SELECT seq, tenant, ?, ?, ?, 'approved', ?, 'api', ?, ? FROM approval WHERE tenant = ? AND id = ?`,
	`UPDATE approval SET status = 'approved' WHERE tenant = ? AND id = ? AND status = 'requested'`,
	`UPDATE action SET status = 'approved', decided_by = ?, decided_via = 'api', decided_at = ?
WHERE tenant = ? AND id = ? AND status = 'pending' RETURNING seq`,
	`INSERT INTO corpus (tenant, id, action_seq, action_id, action_type, outcome, decided_by, notes, at, features)
VALUES (?, ?, ?, ?, 'price_change', 'approved', ?, ?, ?, ?)`,
	`INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts, attempt_base,
last_error, error_code, not_before, created_at, next_attempt, generation, lease_owner, replays)
VALUES (?, ?, ?, ?, 'shop', ?, ?, 'queued', 0, 0, '', '', ?, ?, ?, 0, '', 0)`,
	rowLeaf,
}

func openSameRows(ctx context.Context, dir string, template *gatehouse.Action) (b *sameRows, err error) {
	b = &sameRows{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	path := filepath.Join(dir, "rows.db")
	if err := makeSchema(ctx, path); err != nil {
		return b, err
	}
	if b.db, err = openBare(ctx, path, `PRAGMA foreign_keys = ON`); err != nil {
		return b, err
	}
	b.rows = &rows{db: b.db, template: template}
	if err := b.rows.prepare(ctx); err != nil {
		return b, err
	}
	if b.st, err = b.db.prepare(ctx, sameStatements...); err != nil {
		return b, err
	}
	if b.group, err = newGroup(b.db); err != nil {
		return b, err
	}
	b.server, err = serveBare(ctx, "POST /decide/{id}", bareJSON(func(r *http.Request, in *bareDecision) (bareAnswer, error) {
		id := r.PathValue("id")
		err := b.group.do(func() error { return b.decide(id, in) })
		return bareAnswer{id, in.Decision}, err
	}))
	return b, err
}

// pending stores n more pending actions and returns their ids.
func (b *sameRows) pending(n int) ([]string, error) {
	ids := make([]string, n)
	err := b.db.whole(func() error {
		for i := range ids {
			ids[i] = app.NewID("act")
			p := proposal(b.made)
			b.made++
			in := &bareProposal{
				ActionType: p.ActionType, Connector: p.Connector, Operation: p.Operation, Rationale: p.Rationale, IdempotencyKey: p.IdempotencyKey,
				CurrentState: []byte(p.CurrentState), ProposedChange: []byte(p.ProposedChange), Context: []byte(p.Context),
			}
			in.Target.EntityType, in.Target.EntityRef, in.Target.Version = p.Target.EntityType, p.Target.EntityRef, p.Target.Version
			if err := b.rows.insert(ids[i], in); err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err
}

// decide writes what an approval writes.
func (b *sameRows) decide(id string, in *bareDecision) error {
	const who, name, notes = "prn_01968f6e3a5b7c1d9e2f4a6b8c0d1e2f", "approver-0", "checked against the supplier's list"
	a, ctx := b.rows.template, context.Background()
	now := b.rows.now()
	rest := id[len("act"):]
	if err := execStmt(b.st[0], who, who, name, notes, in.Digest, now, a.Tenant, "apr"+rest); err != nil {
		return err
	}
	if err := execStmt(b.st[1], a.Tenant, "apr"+rest); err != nil {
		return err
	}
	var seq int64
	if err := b.st[2].QueryRowContext(ctx, name, now, a.Tenant, id).Scan(&seq); err != nil {
		return fmt.Errorf("claim %s: %w", id, err)
	}
	if err := execStmt(b.st[3], a.Tenant, "cor"+rest, seq, id, name, notes, now,
		`{"connector":"shop","entity_ref":"SKU-000000001","entity_type":"item","fields":["currency","price"],"operation":"update",`+
			`"proposed_by":"agent","risk_level":3,"rules":[]}`); err != nil {
		return err
	}
	if err := execStmt(b.st[4], a.Tenant, "psh"+rest, seq, id, "bench-"+rest, in.Digest, now, now, now); err != nil {
		return err
	}
	return execStmt(b.st[5], a.Tenant, id, `{"action_id":"`+id+`","actor":"`+who+`","at":"2026-11-20T12:00:00.000000Z","data":{"approval":"apr`+rest+
		`","decision":"approved","not_before":"2026-11-20T13:00:00.000000Z","notes":"`+notes+`","push":"psh`+rest+
		`","required":1,"via":"api","votes":1},"digest":"`+in.Digest+`","from":"pending","id":"evt`+rest+
		`","subject":"`+id+`","tenant":"default","to":"approved","type":"hitl.approved"}`)
}

func (b *sameRows) close() error {
	var err error
	if b.server != nil {
		err = b.server.close()
	}
	if b.group != nil {
		b.group.close()
	}
	if b.db != nil {
		err = errors.Join(err, b.db.Close())
	}
	return err
}

// decideSame measures this side of one round.
func (r *runner) decideSame(ctx context.Context, b *sameRows, n, round int, last *outcome) (*outcome, error) {
	d := r.slice(3)
	ids, err := b.pending(expected(last, d))
	if err != nil {
		return nil, err
	}
	return r.profiled(fmt.Sprintf("decide-rows-%d", n), round, func() (*outcome, error) {
		return driveHTTP(ctx, b.server.addr, n, d, len(ids), http.StatusOK, bareDecide(ids))
	})
}

func bareDecide(ids []string) func([]byte, int, int) []byte {
	return func(b []byte, _, item int) []byte {
		return post(b, "/decide/"+ids[item], "", []byte(`{"decision":"approved","digest":"`+bareDigest+`","notes":"checked against the supplier's list"}`))
	}
}

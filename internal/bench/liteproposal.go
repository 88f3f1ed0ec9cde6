package bench

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
)

// liteProposals is the baseline for proposals: their rows in the store's own tables, with the tables'
// checks and indexes except audit_action, by bare statements.
type liteProposals struct {
	db                               *bareDB
	group                            *group[func() error]
	action, proposal, approval, leaf *sql.Stmt
	template                         *gatehouse.Action
}

const (
	rowAction = `INSERT INTO action (tenant, id, status, action_type, risk, proposer_id, idempotency_key, proposed_at, expires_at,
decided_by, decided_via) VALUES (?, ?, 'pending', ?, 3, ?, ?, ?, ?, '', '')`
	rowProposal = `INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
target_version, claimed_risk, on_behalf_of, expires_in, hold, digest, fingerprint, content_hash,
policy_outcome, policy_version, policy_rules, policy_reasons, proposed_by, rationale,
proposed_change, current_state, context, metadata, extra)
VALUES (?, ?, 1, ?, ?, ?, ?, '', ?, 3, '', 0, 0, ?, ?, ?, 'needs_approval', 1, ?, ?, 'agent', ?, ?, ?, ?, '', '')`
	rowApproval = `INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at)
VALUES (?, ?, ?, 'requested', 1, '["approver"]', '', ?, ?, ?)`
	// The baseline drops the index audit_action, because only lookups of leaves need it.
	rowsSetup = `PRAGMA foreign_keys = ON; DROP INDEX audit_action`
	rowLeaf   = `INSERT INTO audit_leaf (tenant, action_id, body) VALUES (?, ?, ?)`
)

func openProposals(ctx context.Context, dir string, template *gatehouse.Action) (b *liteProposals, err error) {
	b = &liteProposals{template: template}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	path := filepath.Join(dir, "rows.db")
	if err := makeSchema(ctx, path); err != nil {
		return b, err
	}
	if b.db, err = openBare(ctx, path, rowsSetup); err != nil {
		return b, err
	}
	if err := b.prepare(ctx); err != nil {
		return b, err
	}
	b.group = newLiteGroup(b.db)
	return b, nil
}

func (b *liteProposals) prepare(ctx context.Context) error {
	st, err := b.db.prepare(ctx, rowAction, rowProposal, rowApproval, rowLeaf)
	if err == nil {
		b.action, b.proposal, b.approval, b.leaf = st[0], st[1], st[2], st[3]
	}
	return err
}

// makeSchema creates the store's tables in an empty file.
func makeSchema(ctx context.Context, path string) error {
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path})
	if err != nil {
		return err
	}
	err = s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		if _, err := tx.FindTenant(); err == nil {
			return nil
		}
		return tx.InsertTenant(&gatehouse.Tenant{ID: gatehouse.DefaultTenant, CreatedAt: tx.Now()})
	})
	return errors.Join(err, s.Close())
}

func (b *liteProposals) ways() []way[bareProposal] {
	return []way[bareProposal]{{proposalIs + liteHow, func(id string, p *bareProposal) error {
		return b.group.do(func() error { return b.write(id, p) })
	}}}
}

func (b *liteProposals) write(id string, p *bareProposal) error {
	now := time.Now().UnixMicro()
	end := now + int64(24*time.Hour/time.Microsecond)
	a, rows := b.template, rowsOf(b.template)
	done, err := b.action.ExecContext(context.Background(), a.Tenant, id, p.ActionType, a.ProposerID, p.IdempotencyKey,
		now, end)
	if err != nil {
		return err
	}
	seq, err := done.LastInsertId()
	if err != nil {
		return err
	}
	if err := execStmt(b.proposal, seq, a.Tenant, p.Connector, p.Operation, p.Target.EntityType, p.Target.EntityRef,
		p.Target.Version,
		string(a.Digest), a.Fingerprint, a.ContentHash[:], rows.rules, rows.reasons, p.Rationale,
		string(p.ProposedChange), string(p.CurrentState), string(p.Context)); err != nil {
		return err
	}
	if err := execStmt(b.approval, seq, a.Tenant, "apr"+id[3:], rows.excluded, end, now); err != nil {
		return err
	}
	return execStmt(b.leaf, a.Tenant, id, proposedLeaf(a, id))
}

func (b *liteProposals) close() error {
	if b.group != nil {
		b.group.close()
	}
	if b.db != nil {
		return b.db.Close()
	}
	return nil
}

package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/app"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
)

// proposeClients is how many clients propose at a time.
const proposeClients = 64

// propose measures proposals, beside the bare insertion of the same rows.
func (r *runner) propose(ctx context.Context) (err error) {
	dir, remove, err := r.folder("propose")
	if err != nil {
		return err
	}
	defer remove()
	w, err := r.open(ctx, Setup{Dir: dir, Targets: noopTargets(), Hold: time.Hour}, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.propose(ctx); err != nil {
		return err
	}
	b, err := openRows(ctx, dir, w.template)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	d := r.slice(2)
	var rate, p50, p99, cpu values
	next := 1
	for round := range r.Rounds {
		r.say("propose, round %d of %d", round+1, r.Rounds)
		if err := w.settle(ctx); err != nil {
			return err
		}
		from := next
		ours, err := r.profiled("propose", round, func() (*outcome, error) {
			return driveHTTP(ctx, w.Addr, proposeClients, d, -1, http.StatusCreated, func(b []byte, _, item int) []byte {
				return post(b, "/api/v1/proposed-actions", w.agentLine, proposalBody(from+item))
			})
		})
		if err != nil {
			return err
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
		runtime.GC()
		bare, err := driveHTTP(ctx, b.server.addr, proposeClients, d, -1, http.StatusOK, func(b []byte, _, item int) []byte {
			return post(b, "/propose", "", proposalBody(from+item))
		})
		if err != nil {
			return err
		}
		next += max(ours.done, bare.done) + proposeClients
		cpu.add(ours.cpuEach(), bare.cpuEach())
		rate.add(ours.perSecond(), bare.perSecond())
		p50.add(ours.p50(), bare.p50())
		p99.add(ours.p99(), bare.p99())
	}
	const is = "bare HTTP endpoint and the same rows, group commit"
	r.report(Line{Figure: "propose", Name: "proposals, 64 clients", Unit: "/s", Baseline: is, Target: 0.5}, rate)
	r.report(Line{Figure: "propose", Name: "propose p50, 64 clients", Unit: "ms", Baseline: is, Lower: true}, p50)
	r.report(Line{Figure: "propose", Name: "propose p99, 64 clients", Unit: "ms", Baseline: is, Lower: true}, p99)
	r.reportCPU(Line{Figure: "propose", Name: "CPU a proposal, 64 clients", Baseline: is}, cpu)
	return nil
}

func proposalBody(n int) []byte {
	b, err := json.Marshal(proposal(n))
	if err != nil {
		panic(err) // a constant shape
	}
	return b
}

// rows is the baseline of a proposal: its rows in the store's own tables, with
// their indexes and checks, by bare statements.
type rows struct {
	db                               *bareDB
	group                            *group
	server                           *bareServer
	action, proposal, approval, leaf *sql.Stmt
	template                         *gatehouse.Action
}

const (
	rowAction = `INSERT INTO action (tenant, id, status, action_type, risk, proposer_id, idempotency_key, proposed_at, expires_at,
decided_by, decided_via) VALUES (?, ?, 'pending', ?, 3, ?, ?, ?, ?, '', '')`
	rowProposal = `INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
target_version, claimed_risk, on_behalf_of, expires_in, hold, digest, fingerprint, content_hash,
policy_outcome, policy_version, policy_rules, policy_reasons, proposed_by, rationale, search,
proposed_change, current_state, context, metadata, extra)
VALUES (?, ?, 1, ?, ?, ?, ?, '', ?, 3, '', 0, 0, ?, ?, ?, 'needs_approval', 1, '', '', 'agent', ?, ?, ?, ?, ?, '', '')`
	rowApproval = `INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at)
VALUES (?, ?, ?, 'requested', 1, '["approver"]', '', ?, ?, ?)`
	rowLeaf = `INSERT INTO audit_leaf (tenant, action_id, body) VALUES (?, ?, ?)`
)

func openRows(ctx context.Context, dir string, template *gatehouse.Action) (b *rows, err error) {
	b = &rows{template: template}
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
	if err := b.prepare(ctx); err != nil {
		return b, err
	}
	if b.group, err = newGroup(b.db); err != nil {
		return b, err
	}
	b.server, err = serveBare(ctx, "POST /propose", bareJSON(func(_ *http.Request, in *bareProposal) (bareAnswer, error) {
		id := app.NewID("act")
		err := b.group.do(func() error { return b.insert(id, in) })
		return bareAnswer{id, "pending"}, err
	}))
	return b, err
}

func (b *rows) prepare(ctx context.Context) error {
	st, err := b.db.prepare(ctx, rowAction, rowProposal, rowApproval, rowLeaf)
	if err == nil {
		b.action, b.proposal, b.approval, b.leaf = st[0], st[1], st[2], st[3]
	}
	return err
}

// now is the time as the store keeps it, in microseconds.
func (b *rows) now() int64 { return time.Now().UnixMicro() }

// makeSchema makes the store's tables in an empty file.
func makeSchema(ctx context.Context, path string) error {
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path})
	if err != nil {
		return err
	}
	err = s.Update(ctx, func(tx gatehouse.Tx) error {
		if _, err := tx.FindTenant(gatehouse.DefaultTenant); err == nil {
			return nil
		}
		return tx.InsertTenant(&gatehouse.Tenant{ID: gatehouse.DefaultTenant, CreatedAt: tx.Now()})
	})
	return errors.Join(err, s.Close())
}

// bareProposal is what the bare endpoint reads: the values that it stores.
type bareProposal struct {
	ActionType string `json:"action_type"`
	Connector  string `json:"connector"`
	Operation  string `json:"operation"`
	Target     struct {
		EntityType string `json:"entity_type"`
		EntityRef  string `json:"entity_ref"`
		Version    string `json:"version"`
	} `json:"target"`
	CurrentState   json.RawMessage `json:"current_state"`
	ProposedChange json.RawMessage `json:"proposed_change"`
	Context        json.RawMessage `json:"context"`
	Rationale      string          `json:"rationale"`
	IdempotencyKey string          `json:"idempotency_key"`
}

func (b *rows) insert(id string, p *bareProposal) error {
	now := b.now()
	end := now + int64(24*time.Hour/time.Microsecond)
	a := b.template
	done, err := b.action.ExecContext(context.Background(), a.Tenant, id, p.ActionType, a.ProposerID, p.IdempotencyKey, now, end)
	if err != nil {
		return err
	}
	seq, err := done.LastInsertId()
	if err != nil {
		return err
	}
	if err := execStmt(b.proposal, seq, a.Tenant, p.Connector, p.Operation, p.Target.EntityType, p.Target.EntityRef, p.Target.Version,
		string(a.Digest), a.Fingerprint, a.ContentHash[:], p.Rationale, p.ActionType+"\n"+p.Target.EntityRef+"\n"+p.Rationale,
		string(p.ProposedChange), string(p.CurrentState), string(p.Context)); err != nil {
		return err
	}
	excluded, err := json.Marshal(a.Approval.Excluded)
	if err != nil {
		return err
	}
	if err := execStmt(b.approval, seq, a.Tenant, "apr"+id[3:], string(excluded), end, now); err != nil {
		return err
	}
	return execStmt(b.leaf, a.Tenant, id, `{"action_id":"`+id+`","actor":"`+a.ProposerID+`","at":"2026-11-20T12:00:00.000000Z","data":{`+
		`"action_type":"price_change","approval":"apr`+id[3:]+`","expires_at":"2026-11-21T12:00:00.000000Z","outcome":"needs_approval",`+
		`"policy_version":1,"required":1,"revision":1,"risk_level":3,"rules":[]},"digest":"`+string(a.Digest)+`","id":"evt`+id[3:]+
		`","subject":"`+id+`","tenant":"default","to":"pending","type":"hitl.proposed"}`)
}

func (b *rows) close() error {
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

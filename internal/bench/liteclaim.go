package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// The bare claim writes the minimum for a decision and its push, in a schema that has only what they need. It claims
// the action for one decision; the lease of the push is a later step.
const (
	claimSchema = `
CREATE TABLE action (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, status TEXT NOT NULL, body TEXT NOT NULL,
  decided_by TEXT, decided_at INTEGER) STRICT;
CREATE INDEX action_status ON action (tenant, status, id);
CREATE TABLE push (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, action_id TEXT NOT NULL UNIQUE, status TEXT NOT NULL, due INTEGER NOT NULL) STRICT;
CREATE INDEX push_due ON push (due) WHERE status = 'queued';
CREATE TABLE event (seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE receipt (id TEXT PRIMARY KEY, push_id TEXT NOT NULL, outcome TEXT NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE mirror (seq INTEGER PRIMARY KEY, action_id TEXT NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;`
	claimUpdate = `UPDATE action SET status = 'approved', decided_by = ?, decided_at = ?
		WHERE tenant = ? AND id = ? AND status = 'pending' RETURNING id`
	claimPush  = `INSERT INTO push VALUES (?, ?, ?, 'queued', ?)`
	claimEvent = `INSERT INTO event (tenant, body) VALUES (?, ?)`
	claimFill  = `INSERT INTO action VALUES (?, 'default', 'pending', ?, NULL, NULL)`

	stepLease      = `UPDATE push SET status = 'picking' WHERE id = ? AND status = 'queued'`
	stepSent       = `UPDATE push SET status = 'sent' WHERE id = ? AND status = 'picking'`
	stepMoving     = `UPDATE action SET status = 'pushing' WHERE tenant = 'default' AND id = ? AND status = 'approved'`
	stepPushDone   = `UPDATE push SET status = 'applied' WHERE id = ? AND status = 'sent'`
	stepActionDone = `UPDATE action SET status = 'applied' WHERE tenant = 'default' AND id = ? AND status = 'pushing'`
	stepReceipt    = `INSERT INTO receipt VALUES (?, ?, 'applied', '{}')`
	stepMirror     = `INSERT INTO mirror (action_id, body) VALUES (?, ?)`
	mirrorBody     = `{"after":{"currency":"EUR","price":"12.50"}}`
)

// liteClaims is the claimer on SQLite.
type liteClaims struct {
	db                        *bareDB
	group                     *group[func() error]
	update, push, event, fill *sql.Stmt
	steps                     []*sql.Stmt
	made                      int
}

func openClaims(ctx context.Context, dir string) (_ *liteClaims, err error) {
	c := &liteClaims{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.db, err = openBare(ctx, filepath.Join(dir, "bare.db"), claimSchema); err != nil {
		return nil, err
	}
	st, err := c.db.prepare(ctx, claimUpdate, claimPush, claimEvent, claimFill)
	if err != nil {
		return nil, err
	}
	c.update, c.push, c.event, c.fill = st[0], st[1], st[2], st[3]
	if c.steps, err = c.db.prepare(ctx, stepLease, stepSent, stepMoving, stepPushDone, stepActionDone, stepReceipt,
		stepMirror); err != nil {
		return nil, err
	}
	c.group = newLiteGroup(c.db)
	return c, nil
}

func (c *liteClaims) close() error {
	if c.group != nil {
		c.group.close()
	}
	if c.db != nil {
		return c.db.Close()
	}
	return nil
}

func (c *liteClaims) claim(id string) error { return c.group.do(func() error { return c.write(id) }) }

func (c *liteClaims) ways() []way[bareDecision] {
	return []way[bareDecision]{{claimIs + liteHow, func(id string, _ *bareDecision) error { return c.claim(id) }}}
}

// write executes the three statements of a claim in the caller's transaction.
func (c *liteClaims) write(id string) error {
	ctx := context.Background()
	now := time.Now().UnixMicro()
	var got string
	if err := c.update.QueryRowContext(ctx, "ana", now, "default", id).Scan(&got); err != nil {
		return err
	}
	if err := execStmt(c.push, "psh_"+id, "default", id, now); err != nil {
		return err
	}
	return execStmt(c.event, "default", approvedEvent(id))
}

var bareDigest = "sha256:" + strings.Repeat("0", 64)

func approvedEvent(id string) string {
	return `{"type":"hitl.approved","subject":"` + id + `","actor":"ana","digest":"` + bareDigest + `"}`
}

func (c *liteClaims) single(id string) error { return c.db.inTx(func() error { return c.write(id) }) }

func (c *liteClaims) pending(n int) ([]string, error) {
	ids := make([]string, n)
	body := strings.Repeat("x", 400)
	err := c.db.inTx(func() error {
		for i := range ids {
			ids[i] = fmt.Sprintf("act_%032d", c.made)
			c.made++
			if err := execStmt(c.fill, ids[i], body); err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err
}

func (c *liteClaims) approved(n int) ([]string, error) {
	ids, err := c.pending(n)
	if err != nil {
		return nil, err
	}
	return ids, c.db.inTx(func() error {
		for _, id := range ids {
			if err := c.write(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *liteClaims) lease(ids []string) error {
	return c.group.do(func() error {
		for _, id := range ids {
			if err := execStmt(c.steps[0], "psh_"+id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *liteClaims) intent(id string) error {
	return c.group.do(func() error {
		return errors.Join(execStmt(c.steps[1], "psh_"+id), execStmt(c.steps[2], id),
			execStmt(c.event, "default", `{"type":"push.sent","subject":"`+id+`"}`))
	})
}

func (c *liteClaims) complete(id string) error {
	return c.group.do(func() error {
		return errors.Join(execStmt(c.steps[3], "psh_"+id), execStmt(c.steps[4], id),
			execStmt(c.steps[5], "rcp_"+id, "psh_"+id),
			execStmt(c.steps[6], id, mirrorBody), execStmt(c.event, "default", `{"type":"push.applied","subject":"`+id+`"}`))
	})
}

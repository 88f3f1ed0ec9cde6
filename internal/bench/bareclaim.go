package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"
)

// The bare claim: what a decision cannot do without, over tables that have
// nothing but that.
const (
	claimSchema = `
CREATE TABLE action (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, status TEXT NOT NULL, body TEXT NOT NULL,
  decided_by TEXT, decided_at INTEGER) STRICT;
CREATE INDEX action_status ON action (tenant, status, id);
CREATE TABLE push (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, action_id TEXT NOT NULL UNIQUE, status TEXT NOT NULL, due INTEGER NOT NULL) STRICT;
CREATE INDEX push_due ON push (due) WHERE status = 'queued';
CREATE TABLE event (seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, body TEXT NOT NULL) STRICT;`
	claimUpdate = `UPDATE action SET status = 'approved', decided_by = ?, decided_at = ? WHERE tenant = ? AND id = ? AND status = 'pending' RETURNING id`
	claimPush   = `INSERT INTO push VALUES (?, ?, ?, 'queued', ?)`
	claimEvent  = `INSERT INTO event (tenant, body) VALUES (?, ?)`
	claimFill   = `INSERT INTO action VALUES (?, 'default', 'pending', ?, NULL, NULL)`
)

// claims is the baseline of a decision.
type claims struct {
	db                        *bareDB
	group                     *group
	server                    *bareServer
	update, push, event, fill *sql.Stmt
	begin, commit             *sql.Stmt
	made                      int
}

type bareDecision struct {
	Decision string `json:"decision"`
	Digest   string `json:"digest"`
}

type bareAnswer struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

func openClaims(ctx context.Context, dir string) (c *claims, err error) {
	c = &claims{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.db, err = openBare(ctx, filepath.Join(dir, "bare.db"), claimSchema); err != nil {
		return c, err
	}
	st, err := c.db.prepare(ctx, claimUpdate, claimPush, claimEvent, claimFill, `BEGIN IMMEDIATE`, `COMMIT`)
	if err != nil {
		return c, err
	}
	c.update, c.push, c.event, c.fill, c.begin, c.commit = st[0], st[1], st[2], st[3], st[4], st[5]
	if c.group, err = newGroup(c.db); err != nil {
		return c, err
	}
	c.server, err = serveBare(ctx, "POST /decide/{id}", bareJSON(func(r *http.Request, in *bareDecision) (bareAnswer, error) {
		id := r.PathValue("id")
		err := c.group.do(func() error { return c.claim(id) })
		return bareAnswer{id, in.Decision}, err
	}))
	return c, err
}

func (c *claims) close() error {
	var err error
	if c.server != nil {
		err = c.server.close()
	}
	if c.group != nil {
		c.group.close()
	}
	if c.db != nil {
		err = errors.Join(err, c.db.Close())
	}
	return err
}

// claim is the three statements, within a transaction.
func (c *claims) claim(id string) error {
	ctx := context.Background()
	now := time.Now().UnixMicro()
	var got string
	if err := c.update.QueryRowContext(ctx, "ana", now, "default", id).Scan(&got); err != nil {
		return err
	}
	if err := execStmt(c.push, "psh_"+id, "default", id, now); err != nil {
		return err
	}
	return execStmt(c.event, "default", `{"type":"hitl.approved","subject":"`+id+`","actor":"ana","digest":"`+bareDigest+`"}`)
}

var bareDigest = "sha256:" + strings.Repeat("0", 64)

// single is one claim in a transaction of its own.
func (c *claims) single(id string) error {
	if err := execStmt(c.begin); err != nil {
		return err
	}
	if err := c.claim(id); err != nil {
		return err
	}
	return execStmt(c.commit)
}

// pending stores n more rows and returns their ids.
func (c *claims) pending(n int) ([]string, error) {
	ids := make([]string, n)
	body := strings.Repeat("x", 400)
	err := c.db.whole(func() error {
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

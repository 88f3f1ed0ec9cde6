package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// fail makes the error of a call.
func fail(kind connector.Kind, code, detail string, cause error) *connector.Error {
	return &connector.Error{Kind: kind, Code: code, Detail: detail, Err: cause}
}

// failure makes the error of a statement that the database has answered.
func (v verdict) failure(cause error) *connector.Error {
	return &connector.Error{Kind: v.kind, Code: v.code, Detail: v.detail, Says: v.says, Err: cause}
}

// refusal is a reason, found within the transaction, not to apply the change; the transaction is
// rolled back.
type refusal struct{ code, detail string }

func (r *refusal) Error() string { return r.code + ": " + r.detail }

// Execute carries out the call in one transaction; see the package comment.
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	p, cerr := c.prepare(ctx, call)
	if cerr != nil {
		return connector.Result{}, cerr
	}
	conn, cerr := c.begin(ctx)
	if cerr != nil {
		return connector.Result{}, cerr
	}
	defer conn.Close()

	res, replayed, err := c.apply(ctx, conn, call, p)
	if err == nil && replayed {
		c.dialect.rollback(ctx, conn) // nothing was written
		return res, nil
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return connector.Result{}, c.abandon(ctx, conn, call, p, err)
	}
	rolledBack, err := c.dialect.commit(ctx, conn)
	switch {
	case err == nil:
		c.recordReady.Store(true)
		return res, nil
	case !rolledBack:
		return connector.Result{}, fail(connector.Ambiguous, "commit_unclear",
			"the connection failed at COMMIT: the change may or may not be committed", err)
	}
	v := c.dialect.classify(err)
	if v.kind == connector.Ambiguous {
		v.kind, v.code, v.detail = connector.Transient, "rolled_back", "the server rolled the transaction back"
	}
	return connector.Result{}, v.failure(err)
}

// prepare reads the catalogue and checks the call against it.
func (c *Connector) prepare(ctx context.Context, call connector.Call) (*plan, *connector.Error) {
	if err := c.Validate(call); err != nil {
		return nil, fail(connector.Terminal, string(gatehouse.CodeInvalid), err.Error(), err)
	}
	t, err := c.table(ctx, call.Target.EntityType, false)
	if err != nil {
		if isSchemaError(err) {
			return nil, fail(connector.Terminal, string(gatehouse.CodeInvalid), err.Error(), err)
		}
		return nil, c.unreachable(err)
	}
	p, err := newPlan(call, c.cfg, t)
	if err != nil {
		return nil, fail(connector.Terminal, string(gatehouse.CodeInvalid), err.Error(), err)
	}
	return p, nil
}

// refused is the error of a refusal or of a duplicate key; nil for any other cause.
func refused(cause error) *connector.Error {
	var r *refusal
	var duplicate *duplicateKeyError
	switch {
	case errors.As(cause, &r):
		return fail(connector.Terminal, r.code, r.detail, nil)
	case errors.As(cause, &duplicate):
		return fail(connector.Terminal, "duplicate_key", duplicate.Error(), nil)
	}
	return nil
}

// unreachable is the error of a failure before any change was sent.
func (c *Connector) unreachable(err error) *connector.Error {
	if failed := refused(err); failed != nil {
		return failed
	}
	v := c.dialect.classify(err)
	switch {
	case v.answered && v.code == "busy":
		v.kind = connector.Transient
		return v.failure(err)
	case v.answered:
		// The tables may have changed: read the catalogue again next time.
		c.forget()
		v.kind = connector.NotSent
		if v.missing {
			v.code, v.detail = "schema_changed", "the target's tables have changed: "+v.detail
		}
		return v.failure(err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fail(connector.NotSent, "timeout", "the time ran out before the change was sent", err)
	}
	detail := "the database cannot be reached"
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		detail += ": " + op.Err.Error()
	}
	return fail(connector.NotSent, "unreachable", detail, err)
}

// begin takes a connection and opens a transaction. A pooled connection may be broken. BEGIN
// changes nothing, so it is retried on another connection.
func (c *Connector) begin(ctx context.Context) (*sql.Conn, *connector.Error) {
	for tries := 0; ; tries++ {
		conn, err := c.db.Conn(ctx)
		if err != nil {
			return nil, c.unreachable(err)
		}
		if err = c.dialect.begin(ctx, conn); err == nil {
			return conn, nil
		}
		discard(conn)
		if !errors.Is(err, driver.ErrBadConn) || tries >= 8 {
			return nil, c.unreachable(err)
		}
	}
}

// abandon rolls back and classifies the failure, which is ambiguous if the rollback is not
// confirmed.
func (c *Connector) abandon(
	ctx context.Context, conn *sql.Conn, call connector.Call, p *plan, cause error,
) *connector.Error {
	rolledBack := c.dialect.rollback(ctx, conn)
	failed := refused(cause)
	switch {
	case !rolledBack:
		// No COMMIT was sent, so the server will drop the transaction, but it has not confirmed
		// that yet.
		return fail(connector.Ambiguous, "connection_lost", "the connection failed before the change was confirmed or undone",
			cause)
	case failed != nil:
		return failed
	case ctx.Err() != nil:
		return fail(connector.Transient, "timeout", "the time ran out; the change was rolled back", cause)
	}
	v := c.dialect.classify(cause)
	if v.missing {
		// The table has changed since its catalogue was read.
		c.recordReady.Store(false)
		if _, err := c.table(ctx, call.Target.EntityType, true); err == nil {
			v.kind = connector.Transient
			return v.failure(cause)
		}
	}
	if v.unique && p.op == opInsert && c.anyExists(ctx, p) {
		v.kind, v.code, v.detail = connector.Terminal, p.existing(), "a row with this key exists"
		return v.failure(cause)
	}
	if v.kind == connector.Ambiguous { // the rollback has resolved the ambiguity
		v.kind, v.code, v.detail = connector.Transient, "rolled_back", "the transaction failed and was rolled back"
	}
	return v.failure(cause)
}

func (c *Connector) anyExists(ctx context.Context, p *plan) bool {
	rows, err := readRows(ctx, c.reader, c.dialect, p.table, p.refs, false)
	return err == nil && len(rows) > 0
}

// apply performs the work of the transaction. replayed is true if the idempotency record shows that an
// earlier call has made the change.
func (c *Connector) apply(
	ctx context.Context, conn *sql.Conn, call connector.Call, p *plan,
) (res connector.Result, replayed bool, err error) {
	claimed, err := c.claim(ctx, conn, call)
	if err != nil {
		return res, false, err
	}
	if !claimed {
		res, found, err := c.recorded(ctx, conn, call)
		if err == nil && !found {
			err = errors.New("sqlconn: the idempotency record disappeared")
		}
		return res, err == nil, err
	}
	before, err := c.lockRows(ctx, conn, p)
	if err != nil {
		return res, false, err
	}
	if err := p.guard(before); err != nil {
		return res, false, err
	}
	after, err := c.carryOut(ctx, conn, p)
	if err != nil {
		return res, false, err
	}
	if err := p.verify(before, after); err != nil {
		return res, false, err
	}
	res = p.result(before, after)
	return res, false, c.complete(ctx, conn, call, res)
}

// carryOut makes the change and reads the rows as COMMIT would leave them.
func (c *Connector) carryOut(ctx context.Context, conn *sql.Conn, p *plan) (after map[string]row, err error) {
	if err := c.write(ctx, conn, p); err != nil {
		return nil, err
	}
	if s := c.dialect.runDeferred(); s != "" {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return nil, err
		}
	}
	if after, err = readRows(ctx, conn, c.dialect, p.table, p.refs, false); err != nil {
		return nil, err
	}
	return after, c.spell(ctx, conn, p, after)
}

// lockRows reads and locks the rows of a plan. For an update_where, it first finds them by the condition.
func (c *Connector) lockRows(ctx context.Context, conn *sql.Conn, p *plan) (map[string]row, error) {
	if p.where != nil {
		var err error
		if p.refs, err = c.match(ctx, conn, p, true); err != nil {
			return nil, err
		}
		if err := p.where.checkCount(len(p.refs)); err != nil {
			return nil, err
		}
	}
	return readRows(ctx, conn, c.dialect, p.table, p.refs, true)
}

// guard compares the locked rows with the proposal.
func (p *plan) guard(rows map[string]row) error {
	for _, ref := range p.refs {
		r := rows[ref]
		if p.op == opInsert {
			if r != nil {
				return &refusal{p.existing(), "a row with the key " + gatehouse.Quote(ref) + " exists"}
			}
			continue
		}
		if p.where != nil && r != nil {
			if err := p.where.checkRow(p.table, ref, r); err != nil {
				return err
			}
		}
		d := p.table.compare(r, p.version, p.pre[ref])
		switch {
		case r == nil:
			return &refusal{string(gatehouse.CodeTargetChanged), "there is no row with the key " + gatehouse.Quote(ref)}
		case d != nil:
			return &refusal{string(gatehouse.CodeTargetChanged),
				fmt.Sprintf("row %s: expected %s, found %s", gatehouse.Quote(ref), clip(d.expected), clip(d.actual))}
		}
	}
	return nil
}

// existing is the error code of an insert whose row exists. For an upsert, the row has appeared since
// the proposal, so the code is target_changed.
func (p *plan) existing() string {
	if p.upsert {
		return string(gatehouse.CodeTargetChanged)
	}
	return string(gatehouse.CodeAlreadyExists)
}

// clip shortens a value for an error's detail.
func clip(j gatehouse.JSON) string {
	if r := []rune(string(j)); len(r) > 300 {
		return string(r[:300]) + "…"
	}
	return string(j)
}

// write executes the statements. Each of them must affect exactly its rows.
func (c *Connector) write(ctx context.Context, conn *sql.Conn, p *plan) error {
	if p.makesKey {
		return c.insertRow(ctx, conn, p)
	}
	if p.op == opInsert || p.change != nil {
		for _, ref := range p.refs {
			if err := c.writePart(ctx, conn, p, []string{ref}, p.changeOf(ref)); err != nil {
				return err
			}
		}
		return nil
	}
	for start := 0; start < len(p.refs); start += chunk {
		part := p.refs[start:min(start+chunk, len(p.refs))]
		if err := c.writePart(ctx, conn, p, part, p.common); err != nil {
			return err
		}
	}
	return nil
}

func (c *Connector) writePart(
	ctx context.Context, conn *sql.Conn, p *plan, refs []string, change []gatehouse.Member,
) error {
	s := &statement{dialect: c.dialect}
	switch p.op {
	case opInsert:
		s.insert(p.table, refs[0], change)
	case opUpdate:
		s.update(p.table, refs, change)
	case opDelete:
		s.add("DELETE FROM ", p.table.sqlName, " WHERE ").keys(p.table, refs)
	}
	n, err := c.dialect.execute(ctx, conn, s)
	if err != nil {
		return err
	}
	if n != int64(len(refs)) {
		return &refusal{string(gatehouse.CodeTargetChanged),
			fmt.Sprintf("%d rows would be changed instead of %d", n, len(refs))}
	}
	return nil
}

// insertRow inserts a row whose key the database makes, and gives the plan that key.
func (c *Connector) insertRow(ctx context.Context, conn *sql.Conn, p *plan) error {
	s := &statement{dialect: c.dialect}
	s.insert(p.table, "", p.common)
	key := p.table.columns[p.table.key]
	raw, err := c.dialect.insertReturning(ctx, conn, s, key)
	if errors.Is(err, sql.ErrNoRows) {
		return &refusal{string(gatehouse.CodeTargetChanged), "no row was inserted: a trigger has prevented it"}
	}
	if err != nil {
		return err
	}
	made, err := c.dialect.decode(key, raw)
	switch {
	case err != nil:
		return err
	case isNull(made.json):
		return &refusal{"not_as_approved", "the database made no key: column " + key.name + " would be null"}
	}
	p.refs = []string{text(made.json)}
	return nil
}

// insert adds an INSERT of one row. Without a ref, the database makes the key.
func (s *statement) insert(t *table, ref string, change []gatehouse.Member) {
	s.add("INSERT INTO ", t.sqlName, " (")
	values := &statement{dialect: s.dialect}
	add := func(col column, v gatehouse.JSON) {
		if len(values.args) > 0 {
			s.add(", ")
			values.add(", ")
		}
		s.add(s.dialect.quote(col.name))
		values.param(s.dialect.bind(col, v))
	}
	if ref != "" {
		key := t.columns[t.key]
		if key.identity {
			s.identity = t.sqlName
		}
		add(key, gatehouse.StringJSON(ref))
	}
	versioned := !t.raisesVersion()
	for _, f := range change {
		i := t.byName[f.Name]
		if i == t.key {
			continue
		}
		versioned = versioned || i == t.version
		add(t.columns[i], f.Value)
	}
	if !versioned {
		add(t.columns[t.version], "1")
	}
	s.args = values.args
	s.add(") VALUES (", values.text.String(), ")")
}

func (s *statement) update(t *table, refs []string, change []gatehouse.Member) {
	s.add("UPDATE ", t.sqlName, " SET ")
	first := true
	for _, f := range change {
		i := t.byName[f.Name]
		if i == t.key {
			continue // equal to entity_ref
		}
		if !first {
			s.add(", ")
		}
		first = false
		s.add(s.dialect.quote(t.columns[i].name), " = ").param(s.dialect.bind(t.columns[i], f.Value))
	}
	if t.raisesVersion() {
		if !first {
			s.add(", ")
		}
		name := s.dialect.quote(t.columns[t.version].name)
		s.add(name, " = COALESCE(", name, ", 0) + 1")
	}
	s.add(" WHERE ").keys(t, refs)
}

package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// brief is how long an Update waits for a lock at first. It is far longer than
// those take that are not stuck, and far shorter than what an operator allows.
const brief = 100 * time.Millisecond

// thing is what one Update at a time locks or inserts.
type thing struct{ kind, tenant, id string }

// named is the kind of what lockFor locks. There is nothing to be had of it by
// waiting outside but for who was refused it: those who have it are soon through.
const named = "name"

func (a thing) compare(b thing) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.id, b.id))
}

// wanted is what a transaction's locks are about, where they are about one thing
// that nobody shares.
func wanted(locks []query) (thing, bool) {
	for _, q := range locks {
		switch len(q.args) {
		case 1:
			if name, ok := q.args[0].(int64); ok { // see lockFor
				return thing{kind: named, id: strconv.FormatInt(name, 10)}, true
			}
		case 2:
			tenant, _ := q.args[0].(string)
			if id, ok := q.args[1].(string); ok {
				return thing{"id", tenant, id}, true
			}
		}
	}
	return thing{}, false
}

// tickets are the lines in which Updates that go alone wait for those that want
// the same: outside, without a place or a connection.
type tickets struct {
	mu    sync.Mutex
	lines map[thing]waiters
	// stuck counts those in ticket.
	stuck atomic.Int64
}

// waiters are who has a thing, and who comes next, in the order in which they came.
type waiters struct {
	first *ticket
	rest  []*ticket
}

// ticket is an Update's place in the lines for all that it wants. It takes all of
// them at one moment, before it locks anything, so that no two wait for each other.
type ticket struct {
	things []thing
	// before counts the lines in which others are before it; called is closed
	// when it is 0, where it was not.
	before int
	called chan struct{}
	// stuck says that it was refused what it wants.
	stuck bool
}

// take gets in line, and reports whether others are before it.
func (l *tickets) take(k *ticket, things []thing, stuck bool) (waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.things = things
	l.mark(k, stuck)
	for _, what := range things {
		w, there := l.lines[what]
		switch {
		case !there:
			w.first = k
		case w.first == k || len(w.rest) > 0 && w.rest[len(w.rest)-1] == k:
			continue // it was named twice
		default:
			w.rest = append(w.rest, k)
			k.before++
		}
		l.lines[what] = w
	}
	if k.before > 0 {
		k.called = make(chan struct{})
	}
	return k.before > 0
}

// leave leaves all lines, whether one's turn has come or not; nil is nobody.
func (l *tickets) leave(k *ticket) {
	if k == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark(k, false)
	for _, what := range k.things {
		w := l.lines[what]
		switch {
		case w.first != k:
			if i := slices.Index(w.rest, k); i >= 0 {
				w.rest = slices.Delete(w.rest, i, i+1)
				l.lines[what] = w
			}
		case len(w.rest) == 0:
			delete(l.lines, what)
		default:
			next := w.rest[0]
			w.first, w.rest = next, slices.Delete(w.rest, 0, 1)
			l.lines[what] = w
			if next.before--; next.before == 0 {
				close(next.called)
			}
		}
	}
	k.things = nil
}

// refuse notes that what a ticket is for is not to be had soon.
func (l *tickets) refuse(k *ticket) {
	if k == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark(k, true)
}

// mark is called under the lock.
func (l *tickets) mark(k *ticket, stuck bool) {
	if stuck == k.stuck {
		return
	}
	k.stuck = stuck
	if stuck {
		l.stuck.Add(1)
	} else {
		l.stuck.Add(-1)
	}
}

// blocked reports whether one of these things was refused to who is to have it next.
func (l *tickets) blocked(things []thing) bool {
	if len(things) == 0 || l.stuck.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(things, func(what thing) bool {
		w := l.lines[what]
		return w.first != nil && w.first.stuck
	})
}

// course is how an Update goes about its next run.
type course struct {
	// alone keeps it out of groups, and wave is what counts on it.
	alone bool
	wave  *wave
	// patient says that it was refused a lock. It then waits for as long as the
	// server lets it, for which there are fewer places; first for its ticket, if
	// it is known what it wants.
	patient bool
	things  []thing
	ticket  *ticket
	// away says that it gave its place among the callers back.
	away bool
}

// next is the course of the run after one that may succeed when it is run again.
func (t *tx) next(err error) course {
	c := t.course
	switch {
	case errors.Is(err, errApart):
		c.alone = true
	case refused(err):
		c.alone, c.patient = true, true
		if t.denied == (thing{}) || slices.Contains(c.things, t.denied) {
			t.s.tickets.refuse(c.ticket)
			break
		}
		// What it wants besides, it gets in line for anew.
		t.s.tickets.leave(c.ticket)
		c.ticket, c.things = nil, append(slices.Clone(c.things), t.denied)
	}
	return c
}

// refused reports whether a lock was not to be had in the time that there was.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "55P03"
}

// wants keeps what an Update wants, as far as that is known when it asks its
// first question.
func (t *tx) wants(locks []query) {
	if t.course.things != nil {
		return
	}
	t.course.things = t.ahead.keys
	if what, ok := wanted(locks); ok && len(t.ahead.keys) == 0 && what.kind != named {
		t.sole[0] = what
		t.course.things = t.sole[:]
	}
}

// lineUp waits until nobody is before an Update that is about to go alone.
func (t *tx) lineUp() error {
	s, c := t.s, &t.course
	if c.ticket == nil && len(c.things) > 0 {
		c.ticket = &t.ticket
		if s.tickets.take(c.ticket, c.things, c.patient) {
			if err := t.aside(c.ticket.called, nil); err != nil {
				return err
			}
		}
	}
	if !c.patient {
		return nil
	}
	select {
	case s.patience <- struct{}{}:
		t.waits = true
		return nil
	default:
		return t.aside(nil, s.patience)
	}
}

// aside waits, until it is called or has got a place, in nobody's way.
func (t *tx) aside(called <-chan struct{}, places chan<- struct{}) (err error) {
	s := t.s
	if t.pass != nil {
		t.pass()
	}
	<-s.callers
	select {
	case <-called:
	case places <- struct{}{}:
		t.waits = true
	case <-t.ctx.Done():
		err = t.ctx.Err()
	case <-s.closing:
		err = errClosed
	}
	if err == nil {
		err = s.take(t.ctx, s.callers)
	}
	t.course.away = err != nil
	return err
}

// shorten has a new connection's transactions wait briefly for each lock, where
// they would for longer.
func shorten(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, `SELECT set_config('lock_timeout', `+briefly+`, false) FROM pg_settings
WHERE name = 'lock_timeout' AND setting::bigint NOT BETWEEN 1 AND `+briefly+`::bigint`)
	return err
}

// briefly is brief in milliseconds, as SQL.
var briefly = "'" + strconv.FormatInt(brief.Milliseconds(), 10) + "'"

// patiently is setTenant that has the transaction wait for locks for as long as
// the connections are made to, whose waits [shorten] has cut.
func patiently(ctx context.Context, pool *pgxpool.Pool) (string, error) {
	var timeout int64 // in milliseconds; 0 is for ever
	err := pool.QueryRow(ctx, `SELECT reset_val::bigint FROM pg_settings WHERE name = 'lock_timeout'`).Scan(&timeout)
	if err != nil || timeout > 0 && timeout <= brief.Milliseconds() {
		return setTenant, err
	}
	return setTenant + `, set_config('lock_timeout', '` + strconv.FormatInt(timeout, 10) + `', true)`, nil
}

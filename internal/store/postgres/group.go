package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// maxGroups bounds the groups, and Updates that might be in one, that are
	// under way at a time; the others wait, and form the next group.
	maxGroups = 2
	// worthwhile is how many have to wait, at the least, for another to start
	// beside those under way: two small groups cost more than one.
	worthwhile = 4
	// maxHold is how long one counts as under way. Who waits for a lock longer
	// than that goes on, but keeps nobody waiting.
	maxHold = 25 * time.Millisecond
	// maxMembers bounds a group.
	maxMembers = 64
	// maxCallers bounds the Updates whose closures run or wait in the line.
	maxCallers = 1024
	// maxThought is how long a group waits for its members' closures. Who takes
	// longer runs alone.
	maxThought = 100 * time.Millisecond
)

// errApart says that a member has left its group, or that the group was undone:
// its closure is run again, alone.
var errApart = errors.New("postgres: runs alone")

// line is where Updates wait while others are under way.
type line struct {
	mu      sync.Mutex
	running int
	under   int // members of those that are running
	waiting []*member
	// crowd is about how many there are at a time, in 16ths: the most of late,
	// fading with each group.
	crowd int
}

// enough reports whether those who wait may go on. Beside another group they are
// nearly half of all there are: a group that is much smaller costs nearly as
// much, and of equal ones the commit of one goes beside the work of the other.
func (l *line) enough() bool {
	l.crowd = max(l.crowd, 16*(len(l.waiting)+l.under))
	return l.running == 0 || l.running < maxGroups && 16*len(l.waiting) >= max(16*worthwhile, l.crowd*7/16)
}

// member is an Update on its way into a group and through it. Its closure runs
// where it was called; the group runs beside it.
type member struct {
	t *tx
	// asked is what it asks first, locks before the rest, and answers what came
	// of it, in rows, by statement.
	locks, asked []query
	answers      [][][][]byte
	keys         []thing
	// called says what has become of its waiting: nil is an answer, errApart
	// that it goes by itself; without a group, with a place in the line, which
	// it has to give back.
	called chan error
	group  *group
	wave   *wave
	writes []query
	over   bool
	// done is told the outcome.
	done chan error
}

// group is several Updates in one transaction. It locks and reads for all of
// them, in one round trip; lets each closure run on its answers; and writes and
// commits for all, in another.
type group struct {
	s       *Store
	members []*member
	at      time.Time // the reading of the clock

	mu sync.Mutex
	// pending counts the closures that run, sealed ends them, and quiet is
	// closed when the last has ended.
	pending int
	sealed  bool
	quiet   chan struct{}
	// owners are who locks or writes what.
	owners map[string]*member
}

// join takes an Update that asks its first question to a group, or connects it.
// grouped is false when it goes on alone.
func (t *tx) join(locks, queries []query) (grouped bool, err error) {
	if t.member != nil {
		t.err = errApart // what was not foreseen
		return true, t.err
	}
	foreseen := t.ahead.tenant != "" && t.tenant == t.ahead.tenant
	clock := len(locks)+len(queries) == 0
	t.wants(locks)
	if t.course.alone || len(t.queue) > 0 || !foreseen && !clock || !t.s.known(locks, queries) || t.s.tickets.blocked(t.ahead.keys) {
		return false, t.connect()
	}
	m := &member{
		t: t, locks: locks, asked: slices.Concat(queries, t.ahead.queries), keys: t.ahead.keys,
		called: make(chan error, 1), done: make(chan error, 1),
	}
	for _, list := range [][]query{m.locks, m.asked} {
		for i := range list {
			list[i].tenant = t.tenant
		}
	}
	err = t.s.wait(t.ctx, m)
	switch {
	case errors.Is(err, errApart):
		if m.group == nil {
			t.pass = t.s.hold(1)
		}
		return false, t.connect()
	case err != nil:
		t.err = err
		return true, err
	}
	t.member, t.begun, t.ahead.queries = m, true, nil
	t.at = m.group.at
	return true, m.read()
}

// known reports whether a group can ask all of it.
func (s *Store) known(locks, queries []query) bool {
	for _, q := range slices.Concat(locks, queries) {
		if s.sets[q.sql] == nil {
			return false
		}
	}
	return true
}

// wait waits in the line. It returns nil with an answer, errApart with a place
// in the line for who goes alone.
func (s *Store) wait(ctx context.Context, m *member) error {
	s.enter(m)
	var gone error
	select {
	case err := <-m.called:
		return err
	case <-ctx.Done():
		gone = ctx.Err()
	case <-s.closing:
		gone = errClosed
	}
	if !s.quit(m) { // called meanwhile
		if m.group != nil { // which may be long in coming to its answers
			m.group.ended(m, nil)
		} else {
			s.pass(1)
		}
	}
	return gone
}

// hold returns what gives the place of some members in the line back, once;
// after maxHold it is given back anyway.
func (s *Store) hold(members int) (pass func()) {
	once := sync.OnceFunc(func() { s.pass(members) })
	timer := time.AfterFunc(maxHold, once)
	return func() {
		timer.Stop()
		once()
	}
}

// pass gives the place of some members in the line back.
func (s *Store) pass(members int) {
	l := &s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.under -= members
	if len(l.waiting) > 0 && l.enough() {
		s.next()
	}
}

// next gives a place to those who wait: as many as fit, and have nothing in
// common. The line is locked.
func (s *Store) next() {
	l := &s.line
	taken := make(map[thing]bool)
	var members, rest []*member
	for _, m := range l.waiting {
		if len(members) == maxMembers || slices.ContainsFunc(m.keys, func(k thing) bool { return taken[k] }) {
			rest = append(rest, m)
			continue
		}
		for _, k := range m.keys {
			taken[k] = true
		}
		members = append(members, m)
	}
	l.waiting = rest
	l.running++
	l.under += len(members)
	l.crowd -= l.crowd / 16
	if len(members) == 1 {
		members[0].called <- errApart
		return
	}
	// Where two groups wait for the same keys, they do so in one order.
	slices.SortFunc(members, func(a, b *member) int { return slices.CompareFunc(a.keys, b.keys, thing.compare) })
	g := &group{s: s, members: members, pending: len(members), quiet: make(chan struct{}), owners: make(map[string]*member)}
	for _, m := range members {
		m.group = g
	}
	go g.run()
}

// read lets the functions of what was asked read the answers.
func (m *member) read() (err error) {
	for i, q := range slices.Concat(m.locks, m.asked) {
		for _, raw := range m.answers[i] {
			if q.row == nil || err != nil {
				break
			}
			m.t.r = row{raw: raw}
			err = q.row(&m.t.r)
		}
	}
	return err
}

// own makes a thing the member's; it reports false when it is another one's.
func (m *member) own(things ...string) bool {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, what := range things {
		if o := g.owners[what]; o != nil && o != m {
			return false
		}
		g.owners[what] = m
	}
	return true
}

// claim makes an action that was locked a member's own.
func (t *tx) claim(a *gatehouse.Action) error {
	if t.member == nil {
		return nil
	}
	things := []string{a.ID}
	if a.Approval != nil {
		things = append(things, a.Approval.ID)
	}
	if a.Push != nil {
		things = append(things, a.Push.ID)
	}
	if !t.member.own(things...) {
		t.err = errApart
	}
	return t.err
}

// may returns errApart for a write that is not for groups.
func (m *member) may(q query) error {
	s := m.t.s.sets[q.sql]
	if s == nil || s.rank == 0 || len(m.t.queue) >= maxQueue {
		return errApart
	}
	if s.subject > 0 {
		if id, ok := q.args[s.subject-1].(string); !ok || !m.own(id) {
			return errApart
		}
	}
	if s.key > 0 {
		if key, ok := q.args[s.key-1].(string); ok && !m.own("key "+q.tenant+" "+key) {
			return errApart
		}
	}
	return nil
}

// settle hands a member's writes to its group, and waits for the outcome.
func (m *member) settle(ctx context.Context) error {
	if !m.group.ended(m, m.t.queue) {
		return errApart
	}
	select {
	case err := <-m.done:
		return err
	case <-ctx.Done():
	}
	if m.group.withdraw(m) {
		return ctx.Err()
	}
	return <-m.done
}

// ended tells that a member's closure has, and what it writes. It reports false
// when the group went on without it.
func (g *group) ended(m *member, writes []query) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sealed || m.over {
		return false
	}
	m.writes, m.over = writes, true
	if g.pending--; g.pending == 0 {
		close(g.quiet)
	}
	return true
}

// withdraw takes a member's writes back, if they have not been sent.
func (g *group) withdraw(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sealed {
		return false
	}
	m.writes = nil
	return true
}

// seal waits until all closures have ended, or were given their time, and
// returns those that write.
func (g *group) seal() (writers []*member) {
	timer := time.NewTimer(maxThought)
	select {
	case <-g.quiet:
	case <-timer.C:
	}
	timer.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sealed = true
	for _, m := range g.members {
		if m.writes != nil {
			writers = append(writers, m)
		}
	}
	return writers
}

// run carries a group. Any failure of the server undoes all of it, and each
// member runs again, alone: so no member's failure is another one's.
func (g *group) run() {
	s := g.s
	defer s.hold(len(g.members))()
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Patience)
	defer cancel()
	t := &tx{readTx: readTx{s: s, ctx: ctx}}
	err := t.connect()
	defer t.release()
	if err == nil {
		err = g.read(t)
	}
	if err != nil {
		s.log.DebugContext(ctx, "postgres: a group was undone", "members", len(g.members), "error", err)
		for _, m := range g.members {
			m.called <- errApart
		}
		return
	}
	g.at = t.at
	for _, m := range g.members {
		if s.missed(m) {
			g.ended(m, nil)
			m.called <- errApart
			continue
		}
		m.called <- nil
	}
	writers := g.seal()
	if len(writers) == 0 {
		return
	}
	t.queue, t.wrote = g.merge(t, writers), true
	undone, err := t.commit()
	if err != nil && !t.unclear {
		s.log.DebugContext(ctx, "postgres: a group was undone", "members", len(writers), "again", undone, "error", err)
		err = errApart
	}
	for _, m := range writers {
		m.done <- err
	}
}

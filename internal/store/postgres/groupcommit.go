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
	// maxGroups bounds the groups under way at a time. A single Update that a group could have
	// taken counts as a group. Further Updates wait and form the next group.
	maxGroups = 2
	// minSecondGroup is the least number of waiting Updates that starts a second group beside
	// the first: two small groups cost more than one.
	minSecondGroup = 4
	// maxHold is how long a group counts as under way. A group that waits longer for a lock
	// continues, but no longer delays others.
	maxHold = 25 * time.Millisecond
	// companionWait is how long the first of several companions waits in an idle queue for the others.
	companionWait = time.Millisecond
	// maxMembers bounds a group.
	maxMembers = 64
	// maxCallers bounds the Updates whose closures run or wait in the group queue.
	maxCallers = 1024
	// maxClosureTime is how long a group waits for its members' closures. A slower member runs
	// alone.
	maxClosureTime = 100 * time.Millisecond
)

// errRunAlone says that a member left its group, or that the group was undone: its closure runs
// again, alone.
var errRunAlone = errors.New("postgres: runs alone")

// groupQueue is where Updates wait while others are under way.
type groupQueue struct {
	mu      sync.Mutex
	running int
	members int // members of the running groups
	waiting []*member
	// held is the end of the wait for companions; nil without one.
	held *time.Timer
	// concurrency estimates the number of concurrent Updates, in 16ths: the recent maximum,
	// decaying with each group.
	concurrency int
}

// canStart reports whether the waiting Updates may start. While a group runs, they must be
// nearly half of all concurrent Updates: a much smaller group costs nearly as much, and with
// equal groups the commit of one overlaps the work of the other.
func (l *groupQueue) canStart() bool {
	l.concurrency = max(l.concurrency, 16*(len(l.waiting)+l.members))
	if l.held != nil {
		return false
	}
	return l.running == 0 || l.running < maxGroups && 16*len(l.waiting) >= max(16*minSecondGroup, l.concurrency*7/16)
}

// member is an Update on its way into and through a group. Its closure runs in the caller's
// goroutine; the group runs in its own.
type member struct {
	t *tx
	// locks and reads are its first statements, locks first. answers holds their rows, by
	// statement.
	locks, reads []query
	answers      [][][][]byte
	keys         []lockKey
	// admitted tells the outcome of the wait in the queue: nil means that answers are there;
	// errRunAlone that the Update runs alone. Without a group, it then holds a group slot,
	// which it must return.
	admitted chan error
	group    *group
	writes   []query
	ended    bool
	// done receives the outcome.
	done chan error
}

// group is several Updates in one transaction. The first round trip locks and reads for all of
// them; each closure then runs on its answers; the second round trip writes and commits for
// all.
type group struct {
	s       *Store
	members []*member
	at      time.Time // the clock reading

	mu sync.Mutex
	// pending counts the running closures, sealed says that the group waits for no more of
	// them, and allEnded is closed when the last one ends.
	pending  int
	sealed   bool
	allEnded chan struct{}
	// owners maps ids and keys to the member that locks or writes them.
	owners map[string]*member
}

// join brings an Update that sends its first statements into a group. Otherwise it connects the
// Update, and grouped is false: the Update runs alone.
func (t *tx) join(locks, queries []query) (grouped bool, err error) {
	if t.member != nil {
		t.err = errRunAlone // a second read
		return true, t.err
	}
	clock := len(locks)+len(queries) == 0
	t.noteKeys(locks)
	if t.mode.alone || len(t.queue) > 0 || !t.opening.groups && !clock || !groupable(locks, queries, t.opening.queries) ||
		t.s.lockQueue.blocked(t.opening.keys) {
		return false, t.connect()
	}
	m := &member{
		t: t, locks: locks, reads: slices.Concat(queries, t.opening.queries), keys: t.opening.keys,
		admitted: make(chan error, 1), done: make(chan error, 1),
	}
	t.nameTenant(m.locks, m.reads)
	err = t.s.waitForGroup(t.ctx, m)
	switch {
	case errors.Is(err, errRunAlone):
		if m.group == nil {
			t.releaseGroupSlot = t.s.holdGroupSlot(1)
		}
		return false, t.connect()
	case err != nil:
		t.err = err
		return true, err
	}
	t.member, t.begun, t.opening.queries = m, true, nil
	t.at = m.group.at
	return true, m.read()
}

// groupable reports whether a group can send all these statements.
func groupable(lists ...[]query) bool {
	for _, q := range slices.Concat(lists...) {
		if q.statement == nil {
			return false
		}
	}
	return true
}

// waitForGroup waits in the group queue. It returns nil when the answers are there. With
// errRunAlone, the Update holds a group slot unless it has a group.
func (s *Store) waitForGroup(ctx context.Context, m *member) error {
	s.enqueue(m, gatehouse.Companions(ctx))
	var gone error
	select {
	case err := <-m.admitted:
		return err
	case <-ctx.Done():
		gone = ctx.Err()
	case <-s.closing:
		gone = errClosed
	}
	if !s.dequeue(m) { // admitted meanwhile
		if m.group != nil { // its answers may take long
			m.group.memberEnded(m, nil)
		} else {
			s.releaseGroupSlot(1)
		}
	}
	return gone
}

// enqueue puts a member in the group queue. The queue holds companions until they are all there, companionWait has
// passed, or any other Update comes.
func (s *Store) enqueue(m *member, companions int) {
	l := &s.groupQueue
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, m)
	switch {
	case len(l.waiting) >= min(companions, maxMembers):
		l.held = nil
	case l.held == nil:
		var held *time.Timer
		held = time.AfterFunc(s.config.companionWait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.held == held {
				l.held = nil
				s.startIfReady()
			}
		})
		l.held = held
	}
	s.startIfReady()
}

// startIfReady starts the next group if it may start. The caller holds the queue's mutex.
func (s *Store) startIfReady() {
	if l := &s.groupQueue; len(l.waiting) > 0 && l.canStart() {
		s.startGroup()
	}
}

// dequeue removes a member from the queue. It reports false if the member was already admitted.
func (s *Store) dequeue(m *member) bool {
	l := &s.groupQueue
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, m)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	return i >= 0
}

// holdGroupSlot returns a function that returns the group slot of some members, once. After
// maxHold the slot is returned anyway.
func (s *Store) holdGroupSlot(members int) (pass func()) {
	once := sync.OnceFunc(func() { s.releaseGroupSlot(members) })
	timer := time.AfterFunc(maxHold, once)
	return func() {
		timer.Stop()
		once()
	}
}

// releaseGroupSlot returns the group slot of some members.
func (s *Store) releaseGroupSlot(members int) {
	l := &s.groupQueue
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.members -= members
	s.startIfReady()
}

// startGroup starts a group of the waiting Updates: as many as fit and share no key. The caller
// holds the queue's mutex.
func (s *Store) startGroup() {
	l := &s.groupQueue
	taken := make(map[lockKey]bool)
	var members, rest []*member
	for _, m := range l.waiting {
		if len(members) == maxMembers || slices.ContainsFunc(m.keys, func(k lockKey) bool { return taken[k] }) {
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
	l.members += len(members)
	l.concurrency -= l.concurrency / 16
	if len(members) == 1 {
		members[0].admitted <- errRunAlone
		return
	}
	// Two groups that want the same keys lock them in the same order.
	slices.SortFunc(members, func(a, b *member) int { return slices.CompareFunc(a.keys, b.keys, lockKey.compare) })
	g := &group{
		s: s, members: members, pending: len(members), allEnded: make(chan struct{}), owners: make(map[string]*member),
	}
	for _, m := range members {
		m.group = g
	}
	go g.run()
}

// read passes the answers to the row functions of its queries.
func (m *member) read() error { return m.t.replay(slices.Concat(m.locks, m.reads), m.answers) }

// takeOwnership makes the member the owner of ids and keys. It reports false if one of them
// belongs to another member.
func (m *member) takeOwnership(ids ...string) bool {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if o := g.owners[id]; o != nil && o != m {
			return false
		}
		g.owners[id] = m
	}
	return true
}

// claimLocked makes the member the owner of an action that it locked.
func (t *tx) claimLocked(a *gatehouse.Action) error {
	if t.member == nil {
		return nil
	}
	ids := []string{a.ID}
	if a.Approval != nil {
		ids = append(ids, a.Approval.ID)
	}
	if a.Push != nil {
		ids = append(ids, a.Push.ID)
	}
	if !t.member.takeOwnership(ids...) {
		t.err = errRunAlone
	}
	return t.err
}

// checkWrite returns errRunAlone for a write that groups do not send.
func (m *member) checkWrite(q query) error {
	s := q.statement
	if s == nil || len(m.t.queue) >= maxQueue {
		return errRunAlone
	}
	if s.subject >= 0 && !m.takeOwnership(q.subject()) {
		return errRunAlone
	}
	if key := s.textAt(q.rows[0], s.key); key != "" && !m.takeOwnership("key "+q.tenant+" "+key) {
		return errRunAlone
	}
	return nil
}

// submit hands the member's writes to its group and waits for the outcome.
func (m *member) submit(ctx context.Context) error {
	if !m.group.memberEnded(m, m.t.queue) {
		return errRunAlone
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

// memberEnded records the end of a member's closure, and its writes. It reports false if the group
// has continued without the member.
func (g *group) memberEnded(m *member, writes []query) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sealed || m.ended {
		return false
	}
	m.writes, m.ended = writes, true
	if g.pending--; g.pending == 0 {
		close(g.allEnded)
	}
	return true
}

// withdraw removes a member's writes if they were not sent yet.
func (g *group) withdraw(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sealed {
		return false
	}
	m.writes = nil
	return true
}

// seal waits until all closures have ended or maxClosureTime has passed, and returns the
// members that write.
func (g *group) seal() (writers []*member) {
	timer := time.NewTimer(maxClosureTime)
	select {
	case <-g.allEnded:
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

// run carries out the group. Any server error undoes all of it, and each member runs again,
// alone, so that no member gets the error of another.
func (g *group) run() {
	s := g.s
	defer s.holdGroupSlot(len(g.members))()
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Patience)
	defer cancel()
	t := &tx{readTx: readTx{s: s, ctx: ctx}}
	err := t.connect()
	defer t.release()
	if err == nil {
		err = g.read(t)
	}
	if err != nil {
		s.log.DebugContext(ctx, "postgres: a group was rolled back", "members", len(g.members), "error", err)
		for _, m := range g.members {
			m.admitted <- errRunAlone
		}
		return
	}
	g.at = t.at
	for _, m := range g.members {
		if m.missesLock() {
			g.memberEnded(m, nil)
			m.admitted <- errRunAlone
			continue
		}
		m.admitted <- nil
	}
	writers := g.seal()
	if len(writers) == 0 {
		return
	}
	t.queue, t.wrote = g.merge(t, writers), true
	undone, err := t.commit()
	if err != nil && !t.unclear {
		s.log.DebugContext(ctx, "postgres: a group was rolled back", "members", len(writers), "again", undone, "error", err)
		err = errRunAlone
	}
	for _, m := range writers {
		m.done <- err
	}
}

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
	// maxGroups bounds the groups under way at a time. An Update that takes a group slot and runs
	// alone counts as a group. Further Updates wait and form the next group.
	maxGroups = 2
	// minSecondGroup is the smallest number of waiting Updates for which a second group starts
	// beside the first: two small groups cost more than one.
	minSecondGroup = 4
	// maxBusy is how long a group, or a batch of Reads, can delay the next one. A group that waits
	// longer for a lock continues, but no longer counts as under way.
	maxBusy = 25 * time.Millisecond
	// companionWait is how long the first of several companions waits in an idle queue for the
	// others; see [gatehouse.WithCompanions].
	companionWait = time.Millisecond
	// maxMembers bounds a group.
	maxMembers = 64
	// maxCallers bounds the Updates whose closures run or wait in the group queue.
	maxCallers = 1024
	// maxClosureTime is how long a group waits for its members' closures. A slower member runs
	// alone.
	maxClosureTime = 100 * time.Millisecond
)

// errRunAlone says that an Update or a Read runs alone: a group or batch could not take it, or it
// left its group, or its group was undone.
var errRunAlone = errors.New("postgres: runs alone")

// groupQueue is where Updates wait while others are under way.
type groupQueue struct {
	mu      sync.Mutex
	running int
	members int // members of the running groups
	waiting []*member
	// companionTimer ends the wait for companions; nil if nobody waits for companions.
	companionTimer *time.Timer
	// concurrency estimates the number of concurrent Updates, in 16ths. It rises to each new
	// maximum at once, and falls by a sixteenth with each group.
	concurrency int
}

// canStart reports whether the waiting Updates may start. A second group starts only if it has
// nearly half of all concurrent Updates: a much smaller group costs nearly as much as a large one,
// and with two equal groups the commit of one overlaps the work of the other.
func (q *groupQueue) canStart() bool {
	q.concurrency = max(q.concurrency, 16*(len(q.waiting)+q.members))
	switch {
	case q.companionTimer != nil:
		return false
	case q.running == 0:
		return true
	}
	nearlyHalf := q.concurrency * 7 / 16
	return q.running < maxGroups && 16*len(q.waiting) >= max(16*minSecondGroup, nearlyHalf)
}

// member is an Update that waits for a group or belongs to one. The closure of the Update runs in
// the caller's goroutine; the group has a goroutine of its own.
type member struct {
	t *tx
	// locks and reads are the first statements of the Update. answers holds their rows: those of
	// each lock, then those of each read.
	locks, reads []query
	answers      [][][][]byte
	keys         []lockKey
	// admitted receives the end of the wait in the queue. nil means that the answers have arrived.
	// errRunAlone means that the Update runs alone; if it has no group, it then holds a group slot
	// and must return the slot.
	admitted chan error
	group    *group
	writes   []query
	// ended says that the closure has ended.
	ended bool
	// done receives the outcome of the group.
	done chan error
}

// group is a transaction that several Updates share. The first round trip locks and reads for all
// members; each closure then runs on its answers; the second round trip writes and commits for all
// members.
type group struct {
	s       *Store
	members []*member
	at      time.Time // the clock reading

	mu sync.Mutex
	// pending counts the running closures. allEnded is closed when the last closure ends. sealed
	// says that the group no longer waits for closures.
	pending  int
	sealed   bool
	allEnded chan struct{}
	// owners maps ids and keys to the member that locks or writes them.
	owners map[string]*member
}

// join sends the first statements of an Update through a group. If no group can take the Update, it
// runs alone: join connects it, and grouped is false.
func (t *tx) join(locks, queries []query) (grouped bool, err error) {
	if t.member != nil {
		t.err = errRunAlone // a second read
		return true, t.err
	}
	t.noteKeys(locks)
	onlyClock := len(locks)+len(queries) == 0
	mayJoin := !t.mode.alone && len(t.queue) == 0 && (t.opening.groups || onlyClock)
	if !mayJoin || !groupable(locks, queries, t.opening.queries) || t.s.lockQueue.blocked(t.opening.keys) {
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

// waitForGroup waits in the group queue. It returns nil when the answers have arrived. If it returns
// errRunAlone to an Update without a group, the Update holds a group slot.
func (s *Store) waitForGroup(ctx context.Context, m *member) error {
	s.enqueue(m, gatehouse.Companions(ctx))
	var gaveUp error
	select {
	case err := <-m.admitted:
		return err
	case <-ctx.Done():
		gaveUp = ctx.Err()
	case <-s.closing:
		gaveUp = errClosed
	}
	if !s.dequeue(m) { // the member was admitted meanwhile
		if m.group != nil { // the group must not wait for this closure
			m.group.memberEnded(m, nil)
		} else {
			s.releaseGroupSlot(1)
		}
	}
	return gaveUp
}

// enqueue puts a member in the group queue. companions is the number of Updates that begin together, 0
// for a member without companions. The queue does not start before that number of Updates waits,
// companionWait has passed, or an Update without companions arrives.
func (s *Store) enqueue(m *member, companions int) {
	q := &s.groupQueue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, m)
	switch {
	case len(q.waiting) >= min(companions, maxMembers):
		q.companionTimer = nil
	case q.companionTimer == nil:
		var timer *time.Timer
		timer = time.AfterFunc(s.config.companionWait, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			if q.companionTimer == timer {
				q.companionTimer = nil
				s.startIfReady()
			}
		})
		q.companionTimer = timer
	}
	s.startIfReady()
}

// startIfReady starts the next group if it may start. The caller holds the queue's mutex.
func (s *Store) startIfReady() {
	if q := &s.groupQueue; len(q.waiting) > 0 && q.canStart() {
		s.startGroup()
	}
}

// dequeue removes a member from the queue. It reports false if the member was already admitted.
func (s *Store) dequeue(m *member) bool {
	q := &s.groupQueue
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, m)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// holdGroupSlot holds the group slot of some members until the caller calls release, at most for
// maxBusy.
func (s *Store) holdGroupSlot(members int) (release func()) {
	once := sync.OnceFunc(func() { s.releaseGroupSlot(members) })
	timer := time.AfterFunc(maxBusy, once)
	return func() {
		timer.Stop()
		once()
	}
}

// releaseGroupSlot frees the group slot of some members, and starts the next group if it may start.
func (s *Store) releaseGroupSlot(members int) {
	q := &s.groupQueue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	q.members -= members
	s.startIfReady()
}

// startGroup starts a group of waiting Updates, of which no two have the same key. A single Update
// runs alone. The caller holds the queue's mutex.
func (s *Store) startGroup() {
	q := &s.groupQueue
	taken := make(map[lockKey]bool)
	var members, rest []*member
	for _, m := range q.waiting {
		if len(members) == maxMembers || slices.ContainsFunc(m.keys, func(k lockKey) bool { return taken[k] }) {
			rest = append(rest, m)
			continue
		}
		for _, k := range m.keys {
			taken[k] = true
		}
		members = append(members, m)
	}
	q.waiting = rest
	q.running++
	q.members += len(members)
	q.concurrency -= q.concurrency / 16
	if len(members) == 1 {
		members[0].admitted <- errRunAlone
		return
	}
	// All groups lock keys in the same order, so two groups cannot deadlock on them.
	slices.SortFunc(members, func(a, b *member) int { return slices.CompareFunc(a.keys, b.keys, lockKey.compare) })
	g := &group{
		s: s, members: members, pending: len(members), allEnded: make(chan struct{}), owners: make(map[string]*member),
	}
	for _, m := range members {
		m.group = g
	}
	go g.run()
}

// read passes the answers to the row functions of the member's queries.
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

// claimLocked makes the member the owner of an action that it locked, and of the action's approval
// and push.
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

// checkWrite returns errRunAlone for a write that groups do not send, or whose object or key belongs
// to another member.
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
// has continued without the member, or the end is recorded already.
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
	timer := time.NewTimer(g.s.config.maxClosureTime)
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

// run carries out the group. Any server error undoes the whole group, and each member runs again,
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

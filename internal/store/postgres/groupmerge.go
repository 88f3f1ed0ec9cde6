package postgres

import "slices"

// mergedRead is one statement that members of a group send, with the distinct argument lists
// and the requesters of each.
type mergedRead struct {
	sql, tenant string
	args        [][]any
	argIndex    map[string]int
	requesters  [][]requester
}

// requester is one statement of a member.
type requester struct {
	m *member
	i int
}

// mergedReads are the statements of all members, in order of first occurrence.
type mergedReads []*mergedRead

func (list *mergedReads) add(q query, by requester) {
	at := slices.IndexFunc(*list, func(o *mergedRead) bool { return o.sql == q.sql && o.tenant == q.tenant })
	if at < 0 {
		at = len(*list)
		*list = append(*list, &mergedRead{sql: q.sql, tenant: q.tenant, argIndex: make(map[string]int)})
	}
	o := (*list)[at]
	var b [128]byte
	key := sameArgs(b[:0], q.args)
	slot, known := o.argIndex[string(key)]
	if !known {
		slot = len(o.args)
		o.argIndex[string(key)] = slot
		o.args, o.requesters = append(o.args, q.args), append(o.requesters, nil)
	}
	o.requesters[slot] = append(o.requesters[slot], by)
}

// deliver copies a row to all its requesters.
func (o *mergedRead) deliver(slot int, raw [][]byte) {
	size := 0
	for _, b := range raw {
		size += len(b)
	}
	all, kept := make([]byte, 0, size), make([][]byte, len(raw))
	for i, b := range raw {
		if b != nil {
			from := len(all)
			all = append(all, b...)
			kept[i] = all[from:len(all):len(all)]
		}
	}
	for _, t := range o.requesters[slot] {
		t.m.answers[t.i] = append(t.m.answers[t.i], kept)
	}
}

// queries returns the statements to send: one for all argument lists if s can take them.
func (o *mergedRead) queries(s *set) []query {
	if s != nil && (s.locks || len(o.args) > 1) {
		if columns, ok := s.columns(o.args); ok {
			return []query{{sql: s.sql, args: columns, row: func(r *row) error {
				o.deliver(int(r.Int())-1, r.raw[1:])
				return nil
			}}}
		}
	}
	list := make([]query, len(o.args))
	for slot, args := range o.args {
		list[slot] = query{sql: o.sql, args: args, row: func(r *row) error { o.deliver(slot, r.raw); return nil }}
	}
	return list
}

// readClockOfGroup is readClock, and limits how long the group's writes wait for a lock. After
// that, each member runs alone, and only the one that needs the lock waits, such as for a key
// that a disconnected replica has inserted and not committed. The limit exceeds the server's
// deadlock_timeout, so that a deadlock of two groups is found first.
const readClockOfGroup = readClock + `, set_config('lock_timeout', '2s', true)`

// read locks and reads for all members, in one round trip.
func (g *group) read(t *tx) error {
	var locks, rest mergedReads
	for _, m := range g.members {
		m.answers = make([][][][]byte, len(m.locks)+len(m.reads))
		for i, q := range m.locks {
			locks.add(q, requester{m, i})
		}
		for i, q := range m.reads {
			rest.add(q, requester{m, len(m.locks) + i})
		}
	}
	batch := t.pendingBatch(8)
	ask := func(list mergedReads) {
		for _, o := range list {
			t.useTenant(o.tenant)
			batch = append(t.withTenant(batch), o.queries(g.s.sets[o.sql])...)
		}
	}
	ask(locks)
	batch = append(batch, query{sql: readClockOfGroup, row: t.setClock})
	ask(rest)
	t.begun = true
	err, own := t.send(t.ctx, batch)
	if err != nil {
		t.err = explain(err)
		return t.err
	}
	return own
}

// missesLock reports whether a row that a member must lock does not exist or is locked by
// somebody else.
func (s *Store) missesLock(m *member) bool {
	var asked [needs]bool
	var found [needs]int
	for i, q := range slices.Concat(m.locks, m.reads) {
		if set := s.sets[q.sql]; set != nil && set.need > 0 {
			asked[set.need] = true
			found[set.need] += len(m.answers[i])
		}
	}
	for need := range asked {
		if asked[need] && found[need] == 0 {
			return true
		}
	}
	return false
}

// merge combines the writes of all members into few statements. The order of each member's
// writes is kept.
func (g *group) merge(t *tx, writers []*member) (batch []query) {
	s := g.s
	left := make([][]query, len(writers))
	for i, m := range writers {
		left[i] = s.sortByRank(m.writes)
	}
	for {
		var next *query
		rank := 0
		for _, list := range left {
			if len(list) > 0 && (next == nil || s.sets[list[0].sql].rank < rank) {
				next, rank = &list[0], s.sets[list[0].sql].rank
			}
		}
		if next == nil {
			return batch
		}
		sql, tenant := next.sql, next.tenant
		var args [][]any
		for i, list := range left {
			n := 0
			for n < len(list) && list[n].sql == sql && list[n].tenant == tenant && (n == 0 || s.sets[sql].compatible(list[:n], list[n])) {
				args = append(args, list[n].args)
				n++
			}
			left[i] = list[n:]
		}
		t.useTenant(tenant)
		batch = t.withTenant(batch)
		if len(args) > 1 {
			if columns, ok := s.sets[sql].columns(args); ok {
				batch = append(batch, query{sql: s.sets[sql].sql, args: columns})
				continue
			}
		}
		for _, a := range args {
			batch = append(batch, query{sql: sql, args: a})
		}
	}
}

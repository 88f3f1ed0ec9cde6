package postgres

import "slices"

// question is a statement that members of a group ask, with the arguments that
// they ask it with, each once, and who asked with which.
type question struct {
	sql, tenant string
	args        [][]any
	slots       map[string]int
	takers      [][]taker
}

// taker is one statement of a member.
type taker struct {
	m *member
	i int
}

// questions are what all members ask, in the order in which it first occurs.
type questions []*question

func (list *questions) add(q query, by taker) {
	at := slices.IndexFunc(*list, func(o *question) bool { return o.sql == q.sql && o.tenant == q.tenant })
	if at < 0 {
		at = len(*list)
		*list = append(*list, &question{sql: q.sql, tenant: q.tenant, slots: make(map[string]int)})
	}
	o := (*list)[at]
	var b [128]byte
	key := sameArgs(b[:0], q.args)
	slot, known := o.slots[string(key)]
	if !known {
		slot = len(o.args)
		o.slots[string(key)] = slot
		o.args, o.takers = append(o.args, q.args), append(o.takers, nil)
	}
	o.takers[slot] = append(o.takers[slot], by)
}

// take hands a row to those who asked for it.
func (o *question) take(slot int, raw [][]byte) {
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
	for _, t := range o.takers[slot] {
		t.m.answers[t.i] = append(t.m.answers[t.i], kept)
	}
}

// queries are the statements for a question: one, where it has a set.
func (o *question) queries(s *set) []query {
	if s != nil && (s.locks || len(o.args) > 1) {
		if columns, ok := s.columns(o.args); ok {
			return []query{{sql: s.sql, args: columns, row: func(r *row) error {
				o.take(int(r.int())-1, r.raw[1:])
				return nil
			}}}
		}
	}
	list := make([]query, len(o.args))
	for slot, args := range o.args {
		list[slot] = query{sql: o.sql, args: args, row: func(r *row) error { o.take(slot, r.raw); return nil }}
	}
	return list
}

// readClockOfGroup is readClock, and bounds how long the writes that follow wait
// for a lock. What somebody else has inserted and not yet stored, such as a replica
// that was cut off, only the member waits for that needs it, alone. It is longer
// than a server takes to find two groups that wait for each other.
const readClockOfGroup = readClock + `, set_config('lock_timeout', '2s', true)`

// read locks and reads for all members, in one round trip.
func (g *group) read(t *tx) error {
	var locks, rest questions
	for _, m := range g.members {
		m.answers = make([][][][]byte, len(m.locks)+len(m.asked))
		for i, q := range m.locks {
			locks.add(q, taker{m, i})
		}
		for i, q := range m.asked {
			rest.add(q, taker{m, len(m.locks) + i})
		}
	}
	batch := t.waiting(8)
	ask := func(list questions) {
		for _, o := range list {
			t.turn(o.tenant)
			batch = append(t.turned(batch), o.queries(g.s.sets[o.sql])...)
		}
	}
	ask(locks)
	batch = append(batch, query{sql: readClockOfGroup, row: t.state})
	ask(rest)
	t.begun = true
	err, own := t.send(t.ctx, batch)
	if err != nil {
		t.err = explain(err)
		return t.err
	}
	return own
}

// missed reports whether something that a member was to lock is not there, or
// somebody else has it.
func (s *Store) missed(m *member) bool {
	var asked [needs]bool
	var found [needs]int
	for i, q := range slices.Concat(m.locks, m.asked) {
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

// merge is what members write, each in its own order, as few statements.
func (g *group) merge(t *tx, writers []*member) (batch []query) {
	s := g.s
	left := make([][]query, len(writers))
	for i, m := range writers {
		left[i] = s.ordered(m.writes)
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
			for n < len(list) && list[n].sql == sql && list[n].tenant == tenant && (n == 0 || s.sets[sql].apart(list[:n], list[n])) {
				args = append(args, list[n].args)
				n++
			}
			left[i] = list[n:]
		}
		t.turn(tenant)
		batch = t.turned(batch)
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

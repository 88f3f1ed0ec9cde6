package postgres

import "slices"

// mergedRead is one statement that members of a group or of a batch of Reads send, with the distinct rows and,
// for each, the answers to which the result is appended. Each row names its tenant.
type mergedRead struct {
	statement *arrayStatement
	rows      []any
	slots     map[any]int
	answers   [][]*[][][]byte
}

// mergedReads are the statements of all members, in order of first occurrence.
type mergedReads []*mergedRead

func (list *mergedReads) add(q query, to *[][][]byte) {
	at := slices.IndexFunc(*list, func(o *mergedRead) bool { return o.statement == q.statement })
	if at < 0 {
		at = len(*list)
		*list = append(*list, &mergedRead{statement: q.statement, slots: make(map[any]int)})
	}
	o := (*list)[at]
	slot, known := o.slots[q.rows[0]]
	if !known {
		slot = len(o.rows)
		o.slots[q.rows[0]] = slot
		o.rows, o.answers = append(o.rows, q.rows[0]), append(o.answers, nil)
	}
	o.answers[slot] = append(o.answers[slot], to)
}

// deliver copies a row to all that asked for it.
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
	for _, to := range o.answers[slot] {
		*to = append(*to, kept)
	}
}

// query is the statement to send.
func (o *mergedRead) query() query {
	return query{sql: o.statement.forGroup, args: o.statement.arguments(o.rows), row: func(r *row) error {
		o.deliver(int(r.Int())-1, r.raw)
		return nil
	}}
}

// appendTo appends the statements to a batch.
func (list mergedReads) appendTo(batch []query) []query {
	for _, o := range list {
		batch = append(batch, o.query())
	}
	return batch
}

// readClockOfGroup is readClock, and limits how long the group's writes wait for a lock. After
// that, each member runs alone, and only the one that needs the lock waits, such as for a key
// that a disconnected replica has inserted and not committed. The limit exceeds the server's
// deadlock_timeout, so that a deadlock of two groups is found first.
const readClockOfGroup = `SELECT clock_timestamp(), set_config('lock_timeout', '2s', true)`

// read locks and reads for all members, in one round trip.
func (g *group) read(t *tx) error {
	var locks, rest mergedReads
	var asked [][]query
	for _, m := range g.members {
		asked = append(asked, m.locks, m.reads)
		m.answers = make([][][][]byte, len(m.locks)+len(m.reads))
		for i, q := range m.locks {
			locks.add(q, &m.answers[i])
		}
		for i, q := range m.reads {
			rest.add(q, &m.answers[len(m.locks)+i])
		}
	}
	t.useTenantsOf(asked...)
	batch := append(locks.appendTo(t.withTenant(t.pendingBatch(8))), query{sql: readClockOfGroup, row: t.setClock})
	batch = rest.appendTo(batch)
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
func (m *member) missesLock() bool {
	for i, q := range slices.Concat(m.locks, m.reads) {
		if q.statement.needed && len(m.answers[i]) == 0 {
			return true
		}
	}
	return false
}

// merge combines the writes of all members into few statements. The order of each member's
// writes is kept.
func (g *group) merge(t *tx, writers []*member) (batch []query) {
	left := make([][]query, len(writers))
	for i, m := range writers {
		left[i] = sortByRank(m.writes)
	}
	t.useTenantsOf(left...)
	batch = t.withTenant(nil)
	for {
		var next *query
		for _, list := range left {
			if len(list) > 0 && (next == nil || list[0].statement.rank < next.statement.rank) {
				next = &list[0]
			}
		}
		if next == nil {
			return batch
		}
		merged := query{statement: next.statement}
		for i, list := range left {
			n := 0
			for n < len(list) && list[n].statement == merged.statement && (n == 0 || compatible(list[:n], list[n])) {
				merged.rows = append(merged.rows, list[n].rows...)
				n++
			}
			left[i] = list[n:]
		}
		if merged.statement.distinct {
			merged.rows = distinct(merged.rows)
		}
		batch = append(batch, merged)
	}
}

// distinct drops rows that equal earlier ones.
func distinct(rows []any) []any {
	seen := make(map[any]bool, len(rows))
	return slices.DeleteFunc(rows, func(r any) bool {
		was := seen[r]
		seen[r] = true
		return was
	})
}

// sortByRank sorts a member's writes into the order in which groups send them, if all of them
// concern runs. These tables are separate from the others, and each step is written once, so
// only the order of statements of one kind matters.
func sortByRank(writes []query) []query {
	steps := make(map[string]bool, len(writes))
	for _, q := range writes {
		switch q.statement {
		case updateSteps.arrayStatement, passSteps.arrayStatement:
			id := q.subject()
			if steps[id] {
				return writes
			}
			steps[id] = true
		case appendLeaves.arrayStatement:
		default:
			if q.statement.rank > rankLastOfRuns {
				return writes
			}
		}
	}
	sorted := slices.Clone(writes)
	slices.SortStableFunc(sorted, func(a, b query) int { return a.statement.rank - b.statement.rank })
	return sorted
}

// compatible reports whether a write can share a statement with the others of its member: its subject
// differs from all of theirs.
func compatible(others []query, q query) bool {
	if q.statement.subject < 0 {
		return q.statement == appendLeaves.arrayStatement
	}
	id := q.subject()
	return !slices.ContainsFunc(others, func(o query) bool { return o.subject() == id })
}

// subject is the object that a write of one row names; "" for none.
func (q *query) subject() string { return q.statement.textAt(q.rows[0], q.statement.subject) }

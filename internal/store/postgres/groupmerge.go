package postgres

import "slices"

// mergedRead is one read statement for several members of a group or of a batch of Reads. A row holds the
// arguments of one read, with its tenant. Equal rows are sent once.
type mergedRead struct {
	statement *arrayStatement
	// rows are the distinct rows of the members. index maps each row to its position in rows.
	rows  []any
	index map[any]int
	// answers[i] points to the answers of all reads with the arguments rows[i].
	answers [][]*[][][]byte
}

// mergedReads are the statements of all members, in order of first occurrence.
type mergedReads []*mergedRead

// add adds a query of a member. The rows of its result will be appended to answer.
func (list *mergedReads) add(q query, answer *[][][]byte) {
	at := slices.IndexFunc(*list, func(m *mergedRead) bool { return m.statement == q.statement })
	if at < 0 {
		at = len(*list)
		*list = append(*list, &mergedRead{statement: q.statement, index: make(map[any]int)})
	}
	m := (*list)[at]
	i, known := m.index[q.rows[0]]
	if !known {
		i = len(m.rows)
		m.index[q.rows[0]] = i
		m.rows, m.answers = append(m.rows, q.rows[0]), append(m.answers, nil)
	}
	m.answers[i] = append(m.answers[i], answer)
}

// deliver appends a result for rows[i] to each of answers[i]. It copies the result, because the driver reuses
// raw.
func (m *mergedRead) deliver(i int, raw [][]byte) {
	size := 0
	for _, b := range raw {
		size += len(b)
	}
	buffer, fields := make([]byte, 0, size), make([][]byte, len(raw))
	for k, b := range raw {
		if b != nil {
			from := len(buffer)
			buffer = append(buffer, b...)
			fields[k] = buffer[from:len(buffer):len(buffer)]
		}
	}
	for _, answer := range m.answers[i] {
		*answer = append(*answer, fields)
	}
}

// query returns the statement to send.
func (m *mergedRead) query() query {
	return query{sql: m.statement.forGroup, args: m.statement.arguments(m.rows), row: func(r *row) error {
		m.deliver(int(r.Int())-1, r.raw)
		return nil
	}}
}

// appendTo appends the statements to a batch.
func (list mergedReads) appendTo(batch []query) []query {
	for _, m := range list {
		batch = append(batch, m.query())
	}
	return batch
}

// readClockOfGroup reads the clock, and sets how long the writes of the group wait for a lock. Another
// transaction may hold a lock for longer, for example if its replica inserted a key and was disconnected
// before COMMIT. Then each member runs alone, and only the member that needs the lock waits for it. Two seconds
// exceed the default deadlock_timeout (1 s), so that the server first detects a deadlock of two groups.
const readClockOfGroup = `SELECT clock_timestamp(), set_config('lock_timeout', '2s', true)`

// read locks and reads for all members, in one round trip.
func (g *group) read(t *tx) error {
	var locks, rest mergedReads
	var queries [][]query
	for _, m := range g.members {
		queries = append(queries, m.locks, m.reads)
		m.answers = make([][][][]byte, len(m.locks)+len(m.reads))
		for i, q := range m.locks {
			locks.add(q, &m.answers[i])
		}
		for i, q := range m.reads {
			rest.add(q, &m.answers[len(m.locks)+i])
		}
	}
	t.useTenantsOf(queries...)
	batch := t.withTenant(t.pendingBatch(8))
	batch = locks.appendTo(batch)
	batch = append(batch, query{sql: readClockOfGroup, row: t.setClock})
	batch = rest.appendTo(batch)
	t.begun = true
	err, rowErr := t.send(t.ctx, batch)
	if err != nil {
		t.err = explain(err)
		return t.err
	}
	return rowErr
}

// missesLock reports whether a row that a member must lock does not exist or is locked by another
// transaction.
func (m *member) missesLock() bool {
	for i, q := range slices.Concat(m.locks, m.reads) {
		if q.statement.needed && len(m.answers[i]) == 0 {
			return true
		}
	}
	return false
}

// merge combines the writes of all members into few statements. It takes the statement of the lowest rank
// among the members' next writes, with the rows of all members whose next writes use this statement, and
// repeats that until no writes are left. So each member's writes stay in their order.
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

// distinct drops duplicate rows.
func distinct(rows []any) []any {
	seen := make(map[any]bool, len(rows))
	return slices.DeleteFunc(rows, func(r any) bool {
		duplicate := seen[r]
		seen[r] = true
		return duplicate
	})
}

// sortByRank sorts a member's writes by rank, if each of them writes to the tables of runs or appends leaves, and
// no step is written twice. The tables of runs are separate from the others, so only the order of writes with the same
// statement matters, and the sort keeps that order. Other writes are returned unsorted.
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

// compatible reports whether a write can share a statement with other writes of its member: no other
// write has the same subject. Of the writes without a subject, only leaves can.
func compatible(others []query, q query) bool {
	if q.statement.subject < 0 {
		return q.statement == appendLeaves.arrayStatement
	}
	id := q.subject()
	return !slices.ContainsFunc(others, func(o query) bool { return o.subject() == id })
}

// subject returns the subject of a write of one row; "" for none.
func (q *query) subject() string { return q.statement.textAt(q.rows[0], q.statement.subject) }

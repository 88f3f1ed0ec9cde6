package postgres

import (
	"fmt"
	"strconv"
	"strings"
)

// set is how a group sends a statement for all its members at once. The arguments of each
// member become a row of the table u, in columns a1, a2, …; its column n is the number of the
// row.
type set struct {
	sql   string
	types []string
	// rank orders the writes of a transaction: a group sends the lowest rank first.
	rank int
	// locks marks a read that takes locks. In a group it waits for no lock: the result lacks
	// rows that somebody else holds. need is the kind of row that the read finds, 0 for none. If
	// all reads of a need find no row for a member, it runs alone.
	locks bool
	need  int
	// subject is the number, from 1, of the argument that names the written object; 0 for none.
	// No two members of a group write the same one.
	subject int
	// key is the number, from 1, of the argument that is an idempotency key; 0 for none. No two
	// members of a group write the same key: the statement would find the key free for both,
	// because it does not see its own writes.
	key int
}

// The kinds of rows that a member needs.
const (
	needAction = iota + 1
	needPush
	needCredential
	needRun
	needs
)

// argsTable returns a query for the arguments as a table. Its LIMIT, a parameter, makes the
// planner expect one row. Every lookup then uses an index, whatever the planner believes about
// table sizes.
func argsTable(types []string) string {
	var b strings.Builder
	b.WriteString(`SELECT * FROM unnest(`)
	for i, t := range types {
		fmt.Fprintf(&b, "$%d::%s[], ", i+1, t)
	}
	s := strings.TrimSuffix(b.String(), ", ") + `) WITH ORDINALITY AS u (`
	for i := range types {
		s += fmt.Sprintf("a%d, ", i+1)
	}
	return s + fmt.Sprintf("n) LIMIT $%d", len(types)+1)
}

// ofRow makes a statement take its arguments from a row of u.
func ofRow(sql string) string {
	return substituted(sql, func(n int) string { return "u.a" + strconv.Itoa(n) })
}

// substituted replaces each argument placeholder of a statement.
func substituted(sql string, other func(n int) string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(sql, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		n, digits := 0, 0
		for ; digits < len(after) && after[digits] >= '0' && after[digits] <= '9'; digits++ {
			n = 10*n + int(after[digits]-'0')
		}
		b.WriteString(other(n))
		sql = after[digits:]
	}
}

// reads runs a query for each row of u. OFFSET 0 makes the planner plan it as for a single row.
func reads(sql string, types ...string) *set { return lateral(sql+` OFFSET 0`, types) }

func lateral(sql string, types []string) *set {
	return &set{
		sql:   `SELECT u.n, q.* FROM (` + argsTable(types) + `) u CROSS JOIN LATERAL (` + ofRow(sql) + `) q`,
		types: types,
	}
}

// locks is reads for a query that ends with its lock clause.
func locks(need int, sql string, types ...string) *set {
	s := lateral(sql+skipLocked, types)
	s.locks, s.need = true, need
	return s
}

// locksWithin is reads for a query that contains its lock clause, which already skips locked
// rows.
func locksWithin(need int, sql string, types ...string) *set {
	s := reads(sql, types...)
	s.locks, s.need = true, need
	return s
}

// writes is a write for each row of u, without a guard.
func writes(subject int, sql string, types ...string) *set {
	return &set{sql: `WITH u AS (` + argsTable(types) + `) ` + ofRow(sql), types: types, subject: subject}
}

// allOrNone is a write with a guard: it fails unless the guard holds for every row.
func allOrNone(subject int, sql string, types ...string) *set {
	return &set{sql: `WITH u AS (` + argsTable(types) + `), w AS (` + ofRow(sql) + ` RETURNING 1)
SELECT CASE WHEN (SELECT count(*) FROM w) = (SELECT count(*) FROM u) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		types: types, subject: subject}
}

// kinds expands type letters: t is TEXT, i BIGINT, b BYTEA, l BOOLEAN.
func kinds(letters string) []string {
	types := make([]string, 0, len(letters))
	for _, l := range letters {
		if t := map[rune]string{'t': "text", 'i': "int8", 'b': "bytea", 'l': "bool"}[l]; t != "" {
			types = append(types, t)
		}
	}
	return types
}

// The table and condition between these two are looked up once for each row of u, by its
// arguments.
const (
	ofEach = `u CROSS JOIN LATERAL (SELECT * FROM `
	once   = ` OFFSET 0) x`
)

const wakeActionSteps = `INSERT INTO step_wake (step_seq, tenant, run_id, step_id) SELECT seq, tenant, run_id, id FROM ` + ofEach + `step
WHERE tenant = $1 AND action_id = $2 AND action_id IS NOT NULL AND status = 'waiting_approval'` + once + ` ON CONFLICT DO NOTHING`

// makeSets maps the text of a statement to its set.
func makeSets() map[string]*set {
	two := kinds("tt")
	sets := map[string]*set{
		lockApproval:            locks(needAction, lockApproval, two...),
		lockActionOnly:          locks(needAction, lockActionOnly, two...),
		selectAction + seqByID:  reads(selectAction+seqByID, two...),
		archivedByKey:           reads(archivedByKey, two...),
		selectAction + seqByKey: reads(selectAction+seqByKey, two...),
		lockPush:                locks(needPush, lockPush, two...),
		lockVoters:              locks(0, lockVoters, two...),
		lockVoter:               locks(0, lockVoter, two...),
		findSuccess:             reads(findSuccess, two...),
		byName:                  reads(byName, two...),
		firstAnswerers:          reads(firstAnswerers, kinds("tttt")...),
		activeVersion:           reads(activeVersion, "text"),
		findCredential:          reads(findCredential, kinds("tb")...),
		lockCredential:          locksWithin(needCredential, lockCredentialSkipLocked, kinds("tb")...),
		findAnswer:              reads(findAnswer, kinds("tttt")...),
	}
	for _, seq := range []string{seqByID, seqByKey, seqOfAction, seqOfApproval} {
		votes := selectVotes + `= ` + seq + orderVotes
		sets[votes] = reads(votes, two...)
	}
	for _, sides := range []string{sidesByAction, sidesByApproval} {
		sets[sides] = reads(sides, two...)
	}
	for asked, free := range map[string]string{openByAction: openByActionSkipLocked, openByApproval: openByApprovalSkipLocked} {
		sets[asked] = locksWithin(0, free, two...)
	}
	for i, w := range []struct {
		sql string
		set *set
	}{
		{insertAction + insertProposal, writes(2, insertActions+insertProposals, kinds(actionKinds)...)},
		{insertAction + insertApproval + insertProposal, writes(2, insertActions+insertApprovals+insertProposals, kinds(actionKinds+approvalKinds)...)},
		{insertVote, allOrNone(2, insertVotes, kinds("tt ttttttt i ttt")...)},
		{moveApproval, allOrNone(3, moveApprovals, kinds("ttt")...)},
		{updatePush, allOrNone(2, updatePushes, kinds("ttti tiittiiiiiiitiii")...)},
		{moveOther, allOrNone(9, moveActions, kinds("tttiitt ttt")...)},
		{insertPush, allOrNone(2, insertPushes, kinds("tt tttttiittiiiiiiiitiit")...)},
		{insertReceipt, allOrNone(2, insertReceipts, kinds("ttt ttiittttlltittt")...)},
		{insertMirror, allOrNone(0, insertMirrors, kinds("tt tttttttitt")...)},
		{wakeActionStep, writes(0, wakeActionSteps, two...)},
		{appendLeaf, leafSet()},
		{insertAnswer, allOrNone(0, insertAnswers, kinds("ttttbibi")...)},
	} {
		w.set.rank = i + 1
		sets[w.sql] = w.set
	}
	addRunSets(sets)
	return sets
}

// columns turns the arguments of several statements into the arguments of one. ok is false for
// an argument of an unsupported type.
func (s *set) columns(args [][]any) (columns []any, ok bool) {
	columns = make([]any, 0, len(s.types)+1)
	for i, t := range s.types {
		var c any
		switch t {
		case "text":
			c, ok = column[string](args, i)
		case "int8":
			c, ok = column[int64](args, i)
		case "bool":
			c, ok = column[bool](args, i)
		case "bytea":
			c, ok = column[[]byte](args, i)
		}
		if !ok {
			return nil, false
		}
		columns = append(columns, c)
	}
	return append(columns, int64(len(args))), true
}

// column collects argument i of all statements; as pointers if some are NULL.
func column[T any](args [][]any, i int) (any, bool) {
	list := make([]T, len(args))
	null := false
	for n, a := range args {
		v, ok := a[i].(T)
		if !ok {
			if a[i] != nil {
				return nil, false
			}
			null = true
		}
		list[n] = v
	}
	if !null {
		return list, true
	}
	some := make([]*T, len(args))
	for n, a := range args {
		if a[i] != nil {
			some[n] = &list[n]
		}
	}
	return some, true
}

// sameArgs appends a map key for the arguments: equal arguments have equal keys.
func sameArgs(b []byte, args []any) []byte {
	for _, a := range args {
		switch v := a.(type) {
		case string:
			b = append(strconv.AppendInt(append(b, 's'), int64(len(v)), 10), ':')
			b = append(b, v...)
		case []byte:
			b = append(strconv.AppendInt(append(b, 'b'), int64(len(v)), 10), ':')
			b = append(b, v...)
		case int64:
			b = strconv.AppendInt(append(b, 'i'), v, 10)
		default:
			b = fmt.Appendf(b, "%T%v", a, a)
		}
	}
	return b
}

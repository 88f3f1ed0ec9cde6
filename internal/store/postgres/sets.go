package postgres

import (
	"fmt"
	"strconv"
	"strings"
)

// set is how a group of transactions sends a statement for all its members at
// once: the arguments of each become a row of u, in the columns a1, a2, …, and n
// tells whose row it is.
type set struct {
	sql   string
	types []string
	// rank is the place of a write among those of a transaction: groups send
	// the lowest first.
	rank int
	// locks tells a read that takes locks. In a group it waits for none: what
	// somebody else holds is not among the rows. Of those with the same need,
	// other than 0, a member has a row, or it runs alone.
	locks bool
	need  int
	// subject is the argument that names what is written, from 1; 0 for none.
	// No two members of a group write the same.
	subject int
	// key is the argument that is an idempotency key, from 1; 0 for none. No two
	// members of a group write the same: no row of a statement sees what another
	// one's has become, so both would find it free.
	key int
}

// What a member that locks something cannot do without.
const (
	needAction = iota + 1
	needPush
	needCredential
	needRun
	needs
)

// rows is the arguments as a table. The LIMIT, which is a parameter too, has
// the planner count on one row: then every look into a table is by its index,
// whatever it believes of the table's size.
func rows(types []string) string {
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

// ofRow lets a statement take its arguments from a row of u.
func ofRow(sql string) string {
	return substituted(sql, func(n int) string { return "u.a" + strconv.Itoa(n) })
}

// substituted puts something else in the place of each argument.
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

// reads asks a question for each row: as it is planned for one, which OFFSET 0
// sees to.
func reads(sql string, types ...string) *set { return lateral(sql+` OFFSET 0`, types) }

func lateral(sql string, types []string) *set {
	return &set{sql: `SELECT u.n, q.* FROM (` + rows(types) + `) u CROSS JOIN LATERAL (` + ofRow(sql) + `) q`, types: types}
}

// locks does so with a question that ends with its lock.
func locks(need int, sql string, types ...string) *set {
	s := lateral(sql+skipping, types)
	s.locks, s.need = true, need
	return s
}

// locksWithin does so with one whose lock, which waits for none, is within it.
func locksWithin(need int, sql string, types ...string) *set {
	s := reads(sql, types...)
	s.locks, s.need = true, need
	return s
}

// writes does what it is told, from u, without a guard.
func writes(subject int, sql string, types ...string) *set {
	return &set{sql: `WITH u AS (` + rows(types) + `) ` + ofRow(sql), types: types, subject: subject}
}

// allOrNone is one with a guard, which holds for each row, or it fails.
func allOrNone(subject int, sql string, types ...string) *set {
	return &set{sql: `WITH u AS (` + rows(types) + `), w AS (` + ofRow(sql) + ` RETURNING 1)
SELECT CASE WHEN (SELECT count(*) FROM w) = (SELECT count(*) FROM u) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		types: types, subject: subject}
}

// kinds spells types: t for TEXT, i for BIGINT, b for BYTEA, l for BOOLEAN.
func kinds(letters string) []string {
	types := make([]string, 0, len(letters))
	for _, l := range letters {
		if t := map[rune]string{'t': "text", 'i': "int8", 'b': "bytea", 'l': "bool"}[l]; t != "" {
			types = append(types, t)
		}
	}
	return types
}

// What is between them is looked for once for each row of u, by its arguments.
const (
	ofEach = `u CROSS JOIN LATERAL (SELECT * FROM `
	once   = ` OFFSET 0) x`
)

const wakeActionSteps = `INSERT INTO step_wake (step_seq, tenant, run_id, step_id) SELECT seq, tenant, run_id, id FROM ` + ofEach + `step
WHERE tenant = $1 AND action_id = $2 AND action_id IS NOT NULL AND status = 'waiting_approval'` + once + ` ON CONFLICT DO NOTHING`

// makeSets finds the set of a statement by its text.
func makeSets() map[string]*set {
	two := kinds("tt")
	sets := map[string]*set{
		lockApproval:            locks(needAction, lockApproval, two...),
		lockUnasked:             locks(needAction, lockUnasked, two...),
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
		lockCredential:          locksWithin(needCredential, lockCredentialFree, kinds("tb")...),
		findAnswer:              reads(findAnswer, kinds("tttt")...),
	}
	for _, seq := range []string{seqByID, seqByKey, seqOfAction, seqOfApproval} {
		votes := selectVotes + `= ` + seq + orderVotes
		sets[votes] = reads(votes, two...)
	}
	for _, sides := range []string{sidesOfAction, sidesOfApproval} {
		sets[sides] = reads(sides, two...)
	}
	for asked, free := range map[string]string{askedByAction: askedByActionFree, askedByApproval: askedByApprovalFree} {
		sets[asked] = locksWithin(0, free, two...)
	}
	for i, w := range []struct {
		sql string
		set *set
	}{
		{insertAction + insertProposal, writes(2, insertActions+insertProposals, kinds(actionKinds)...)},
		{insertAction + insertApproval + insertProposal, writes(2, insertActions+insertApprovals+insertProposals, kinds(actionKinds+approvalKinds)...)},
		{insertVote, allOrNone(2, insertVotes, kinds("tt ttttttt i tt")...)},
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

// columns turns the arguments of several statements into those of one; ok is
// false for what is of no type that a set has.
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

// column is one argument of each; pointers where some are NULL.
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

// sameArgs makes a key of arguments.
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

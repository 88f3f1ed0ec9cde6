package postgres

import (
	"slices"
	"strconv"
	"strings"
)

// An approval that settles its question always writes the same rows. When it runs alone, most of
// its cost is the number of statements and their repeated lookups of action and approval. So the
// writes go out as one statement with the commit mark, in which the parts use each other's
// results.
//
// This requires that the transaction has locked the approval and found it open: no row can be
// missing then, so a failed guard can only be a conflict. The update of the approval row comes
// first and the other parts use its result: no part of a statement sees what another part
// changed, or can lock the row again.

// settleWrites are the statements of such a decision, in the order in which closures write
// them. A stored answer may follow.
var settleWrites = []string{insertVote, moveApproval, moveOther, insertPush, appendLeaf}

// makeSettleStatement merges settleWrites into one statement. Its arguments are theirs, then the
// mark's.
func makeSettleStatement(answer bool) string {
	type part struct {
		name, sql string
		arguments int
		counts    bool // whether it must return a row
	}
	list := []part{
		{"v", voteColumns + `o WHERE tenant = $1 AND id = $2` + replaceVote + ` RETURNING 1`, 13, true},
		{"o", `UPDATE approval SET status = $1` + approvalAsked + ` RETURNING seq, tenant, id`, 3, false},
		{"a", moveAction + moveGuard + ` RETURNING tenant, seq, id, status`, 10, false},
		{"h", pushInserted + `a WHERE tenant = $1 AND id = $2 AND status = 'approved' RETURNING 1`, 23, true},
		{"l", insertLeaf, 3, false},
		{"w", leafWaits, 0, false},
	}
	if answer {
		list = append(list, part{"i", answerInserted + ` RETURNING 1`, 8, true})
	}
	list = append(list, part{"m", markMoved + ` RETURNING 1`, 2, true})
	var with, rows []string
	from := 0
	for _, p := range list {
		with = append(with, p.name+` AS (`+renumbered(p.sql, from)+`)`)
		from += p.arguments
		if p.counts {
			rows = append(rows, `SELECT 1 FROM `+p.name)
		}
	}
	with[0], with[1] = with[1], with[0] // v uses o
	return `WITH ` + strings.Join(with, ",\n") + `
SELECT CASE WHEN (SELECT count(*) FROM (` + strings.Join(rows, ` UNION ALL `) + `) x) = ` + strconv.Itoa(len(rows)) +
		` THEN 0 ELSE gatehouse_refuse('GH001') END`
}

// renumbered raises the numbers of a statement's arguments.
func renumbered(sql string, by int) string {
	return substituted(sql, func(n int) string { return "$" + strconv.Itoa(n+by) })
}

// mergeSettle removes a settling decision from the end of the queue, if there is one, and
// returns it merged with the mark. Otherwise it returns the mark.
func (t *tx) mergeSettle(mark query) query {
	at := slices.IndexFunc(t.queue, func(q query) bool { return q.sql == insertVote })
	if at < 0 || t.openAction == (openAction{}) {
		return mark
	}
	list := t.queue[at:]
	answer := len(list) == len(settleWrites)+1 && list[len(settleWrites)].sql == insertAnswer
	if !answer && len(list) != len(settleWrites) {
		return mark
	}
	args := make([]any, 0, 64)
	for i, q := range list {
		if i < len(settleWrites) && q.sql != settleWrites[i] {
			return mark
		}
		args = append(args, q.args...)
	}
	vote, approval, action, push := list[0].args, list[1].args, list[2].args, list[3].args
	o := openAction{tenant: vote[0], approval: vote[1], action: action[8]}
	if o != t.openAction || o != (openAction{approval[1], approval[2], push[1]}) || action[7] != o.tenant ||
		push[0] != o.tenant {
		return mark
	}
	t.queue = t.queue[:at]
	sql := t.s.settleStatements[0]
	if answer {
		sql = t.s.settleStatements[1]
	}
	return query{sql: sql, args: append(args, mark.args...)}
}

// openAction is an action that the transaction has locked and found open.
type openAction struct{ tenant, approval, action any }

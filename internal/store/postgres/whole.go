package postgres

import (
	"slices"
	"strconv"
	"strings"
)

// An approval that settles its question writes the same rows each time. Where it
// goes alone, most of what it costs is not the rows but the statements, and that
// each looks for action and approval again. So they go out as one, with the mark,
// in which each part takes from another what that has found.
//
// That is for an approval that the transaction has locked, and found open:
// nothing can be missing then, so all that a guard can meet is a conflict. The
// approval's row is changed before anything is made of it: no part of a
// statement sees what another has changed, nor may lock it again.

// settling are the statements of such a decision, in the order in which closures
// write them; an answer may follow.
var settling = []string{insertVote, moveApproval, moveOther, insertPush, appendLeaf}

// makeWhole puts them into one, and its arguments are theirs and the mark's, one
// after another.
func makeWhole(answer bool) string {
	type part struct {
		name, sql string
		arguments int
		counts    bool // among the rows that have to be there
	}
	list := []part{
		{"v", voteColumns + `o WHERE tenant = $1 AND id = $2` + replaceVote + ` RETURNING 1`, 12, true},
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
	with[0], with[1] = with[1], with[0] // v takes from o
	return `WITH ` + strings.Join(with, ",\n") + `
SELECT CASE WHEN (SELECT count(*) FROM (` + strings.Join(rows, ` UNION ALL `) + `) x) = ` + strconv.Itoa(len(rows)) +
		` THEN 0 ELSE gatehouse_refuse('GH001') END`
}

// renumbered moves the numbers of a statement's arguments up.
func renumbered(sql string, by int) string {
	return substituted(sql, func(n int) string { return "$" + strconv.Itoa(n+by) })
}

// whole takes a decision from the end of what waits, if that is one, and returns
// it with the mark in one statement; else it returns the mark.
func (t *tx) whole(mark query) query {
	at := slices.IndexFunc(t.queue, func(q query) bool { return q.sql == insertVote })
	if at < 0 || t.opened == (opened{}) {
		return mark
	}
	list := t.queue[at:]
	answer := len(list) == len(settling)+1 && list[len(settling)].sql == insertAnswer
	if !answer && len(list) != len(settling) {
		return mark
	}
	args := make([]any, 0, 64)
	for i, q := range list {
		if i < len(settling) && q.sql != settling[i] {
			return mark
		}
		args = append(args, q.args...)
	}
	vote, approval, action, push := list[0].args, list[1].args, list[2].args, list[3].args
	o := opened{tenant: vote[0], approval: vote[1], action: action[8]}
	if o != t.opened || o != (opened{approval[1], approval[2], push[1]}) || action[7] != o.tenant || push[0] != o.tenant {
		return mark
	}
	t.queue = t.queue[:at]
	sql := t.s.wholes[0]
	if answer {
		sql = t.s.wholes[1]
	}
	return query{sql: sql, args: append(args, mark.args...)}
}

// opened is an action that the transaction has locked, and found open.
type opened struct{ tenant, approval, action any }

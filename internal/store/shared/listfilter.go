package shared

import (
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// Add adds a predicate to the condition of a list. Each ? in the predicate stands for the next argument.
type Add func(predicate string, args ...any)

// inherited selects the ids that a principal inherited the right to read; its arguments are the
// tenant and the principal's id.
const inherited = `SELECT thing FROM reader WHERE tenant = ? AND principal_id = ?`

// AddReadableBy restricts rows, by the column that holds the seq of their action, to those that a
// principal may read. An empty readBy selects all.
func AddReadableBy(add Add, column, tenant, readBy string) {
	if readBy == "" {
		return
	}
	add(column+` IN (SELECT seq FROM action WHERE tenant = ? AND proposer_id = ?
UNION ALL SELECT seq FROM action WHERE tenant = ? AND id IN (`+inherited+`))`, tenant, readBy, tenant, tenant, readBy)
}

// ActionBound returns the values to which a cursor of actions is bound.
func ActionBound(tenant string, f gatehouse.ActionFilter) []string {
	bound := []string{
		tenant, string(f.Status), f.ActionType, strconv.Itoa(int(f.RiskLevel)), f.ProposedBy, f.Query,
	}
	if f.Decided != "" {
		bound = append(bound, string(f.Decided))
	}
	if f.AskedGroup != "" {
		bound = append(bound, "group:"+f.AskedGroup)
	}
	if f.Assignee != "" {
		bound = append(bound, "assignee:"+f.Assignee)
	}
	return BoundToReader(bound, f.ReadBy)
}

// FilterActions adds the predicates of a filter of actions a, except those on the status, the proposer
// and the search. askedGroup is the predicate for actions whose approval asks a group; its argument is the group's
// name in quotes.
func FilterActions(add Add, tenant string, f gatehouse.ActionFilter, askedGroup string) {
	add("a.tenant = ?", tenant)
	if f.ActionType != "" {
		add("a.action_type = ?", f.ActionType)
	}
	if f.RiskLevel != 0 {
		add("a.risk = ?", int(f.RiskLevel))
	}
	if f.Decided != "" {
		add(decidedSQL(f.Decided))
	}
	if f.AskedGroup != "" {
		add(askedGroup, quotedName(f.AskedGroup))
	}
	if f.Assignee != "" {
		add("EXISTS (SELECT 1 FROM approval s WHERE s.seq = a.seq AND ? IN (s.assignee_id, s.assignee))", f.Assignee)
	}
	if f.ReadBy != "" {
		add("(a.proposer_id = ? OR a.id IN ("+inherited+"))", f.ReadBy, tenant, f.ReadBy)
	}
}

// OfShownStatus removes the actions of a page that are shown with another status than the filter's. The filters for
// pending and expired actions compare only stored statuses and expiries, but a pending action whose rejection the
// sweeper has not stored yet is shown as rejected. A search among the rejected actions lacks such an action.
func OfShownStatus(items []*gatehouse.Action, f gatehouse.ActionFilter) []*gatehouse.Action {
	status := f.Status
	if f.Sort == gatehouse.SortUrgency {
		status = gatehouse.StatusPending
	}
	return slices.DeleteFunc(items, func(a *gatehouse.Action) bool { return status != "" && a.Status != status })
}

// FilterArchive adds the predicates of a filter of archived actions after a cursor. proposer selects the
// id of the principal with a name; its arguments are the tenant and the name.
func FilterArchive(add Add, tenant string, f gatehouse.ActionFilter, c Cursor, proposer string) {
	add("tenant = ?", tenant)
	if f.Status != "" {
		add("status = ?", string(f.Status))
	}
	if f.ActionType != "" {
		add("action_type = ?", f.ActionType)
	}
	if f.RiskLevel != 0 {
		add("risk = ?", int(f.RiskLevel))
	}
	if f.ProposedBy != "" {
		add("proposer_id IN (?, ("+proposer+"))", f.ProposedBy, tenant, f.ProposedBy)
	}
	if f.ReadBy != "" {
		add("(proposer_id = ? OR id IN ("+inherited+"))", f.ReadBy, tenant, f.ReadBy)
	}
	if f.Query != "" {
		add("(id = ? OR approval_id = ? OR push_id = ?)", f.Query, f.Query, f.Query)
	}
	if c.ID != "" {
		add("id < ?", c.ID)
	}
}

// FilterRuns adds the predicates of a filter of runs r after a cursor.
func FilterRuns(add Add, tenant string, f gatehouse.RunFilter, c Cursor) {
	add("r.tenant = ?", tenant)
	if f.Workflow != "" {
		add("r.workflow = ?", f.Workflow)
	}
	if f.Status != "" {
		add("r.status = ?", string(f.Status))
	}
	if f.ReadBy != "" {
		add("(r.starter_id = ? OR r.id IN ("+inherited+"))", f.ReadBy, tenant, f.ReadBy)
	}
	if !f.Since.IsZero() {
		add("r.created_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		add("r.created_at < ?", f.Until)
	}
	add(RunIndex(f))
	if c.Seq != 0 {
		add("(r.created_at, r.seq) < (?, ?)", c.AsOf, c.Seq)
	}
}

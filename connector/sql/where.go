package sqlconn

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// An update_where changes the rows that match a condition, up to a number that people approve. Its
// proposed_change is {"where": [{"column", "op", "value"}, …], "set": {…}, "max_rows": n}: a row must
// fulfil all members of where. Its current_state can be {"rows": n}, the exact number that was seen.

// anyRow is the entity_ref of an update_where, whose condition names the rows.
const anyRow = "*"

// The limits of a condition.
const (
	maxConditions = 10
	maxListed     = 100 // values of in
)

// selection is a parsed update_where.
type selection struct {
	where   []condition
	set     []gatehouse.Member
	maxRows int
	seen    int // the number of rows in current_state; 0 for none
}

// condition compares a column with a value or, for the operator in, with a list of values. op is a key of
// operators.
type condition struct {
	column, op string
	value      gatehouse.JSON
	values     []gatehouse.JSON
}

// operators maps each operator to a function that reports whether it accepts a comparison's sign;
// nil for an operator that takes a list or no value.
var operators = map[string]func(sign int) bool{
	"=":       func(sign int) bool { return sign == 0 },
	"<":       func(sign int) bool { return sign < 0 },
	"<=":      func(sign int) bool { return sign <= 0 },
	">":       func(sign int) bool { return sign > 0 },
	">=":      func(sign int) bool { return sign >= 0 },
	"in":      nil,
	"is null": nil,
}

// takeSelection parses the call of an update_where. What cannot be parsed is a violation.
func takeSelection(v *gatehouse.Violations, call connector.Call) *selection {
	s := &selection{}
	if call.Target.EntityRef != anyRow || len(call.Target.EntityRefs) > 0 {
		v.Add("/target/entity_ref", `must be "*": the condition selects the rows`)
	}
	if call.Target.Version != "" {
		v.Add("/target/version", "does not apply to several rows")
	}
	change, ok := exactMembers(call.ProposedChange, "where", "set", "max_rows")
	if !ok {
		v.Add("/proposed_change", `must be {"where": [{"column", "op", "value"}, …], "set": {…}, "max_rows": n}`)
		return s
	}
	var err error
	if s.set, err = change["set"].Fields(); err != nil {
		v.Add("/proposed_change/set", "must be an object of columns")
	}
	s.maxRows, err = strconv.Atoi(string(change["max_rows"]))
	if err != nil || s.maxRows < 1 || s.maxRows > gatehouse.MaxEntityRefs {
		v.Add("/proposed_change/max_rows", "must be 1 to %d", gatehouse.MaxEntityRefs)
	}
	where, err := change["where"].Elements()
	if err != nil || len(where) < 1 || len(where) > maxConditions {
		v.Add("/proposed_change/where", "must be a list of 1 to %d conditions", maxConditions)
	}
	for i, one := range where {
		var c condition
		if why := c.parse(one); why != "" {
			v.Add(fmt.Sprintf("/proposed_change/where/%d", i), "%s", why)
		}
		s.where = append(s.where, c)
	}
	if isNull(call.CurrentState) {
		return s
	}
	state, ok := exactMembers(call.CurrentState, "rows")
	s.seen, err = strconv.Atoi(string(state["rows"]))
	if !ok || err != nil || s.seen < 1 || s.seen > s.maxRows {
		v.Add("/current_state", `must be {"rows": n}, the number of rows that the condition matches, at most max_rows`)
	}
	return s
}

// exactMembers returns the members of an object; false if it has others than the named ones.
func exactMembers(j gatehouse.JSON, names ...string) (map[string]gatehouse.JSON, bool) {
	fields, err := j.Fields()
	out := make(map[string]gatehouse.JSON, len(fields))
	for _, f := range fields {
		if !slices.Contains(names, f.Name) {
			return nil, false
		}
		out[f.Name] = f.Value
	}
	return out, err == nil
}

// parse reads a condition, and says what is wrong with it.
func (c *condition) parse(j gatehouse.JSON) string {
	m, ok := exactMembers(j, "column", "op", "value")
	if !ok {
		return "must have the members column, op and value only"
	}
	c.column, _ = m["column"].Text()
	c.op, _ = m["op"].Text()
	c.value = m["value"]
	c.values = []gatehouse.JSON{c.value}
	compare, known := operators[c.op]
	switch {
	case !known:
		return "op must be one of =, <, <=, >, >=, in, is null"
	case c.op == "is null":
		c.values = nil
		if c.value != "" {
			return "is null takes no value"
		}
	case compare == nil:
		var err error
		if c.values, err = c.value.Elements(); err != nil || len(c.values) < 1 || len(c.values) > maxListed {
			return fmt.Sprintf("in takes a list of 1 to %d values", maxListed)
		}
	}
	for _, value := range c.values {
		if isNull(value) || isComposite(value) {
			return `compares with strings, numbers and booleans; for null, use the operator "is null"`
		}
	}
	return ""
}

// checkWhere checks a condition and a change against the columns.
func (p *plan) checkWhere(v *gatehouse.Violations, entity Entity) {
	p.checkChange(v, "/proposed_change/set", nil, p.common, entity)
	for i, c := range p.where.where {
		at := fmt.Sprintf("/proposed_change/where/%d", i)
		if !p.known(c.column, entity) {
			v.Add(at+"/column", "is not a column that can be compared; these are: %s", connector.Names(p.columns(entity)))
			continue
		}
		if p.table == nil {
			continue
		}
		col, _ := p.table.column(c.column)
		if why := c.objection(col); why != "" {
			v.Add(at, "%s", why)
		}
	}
}

// objection says why the condition cannot apply to a column, "" when it can. Texts have no order that
// all databases agree on, so "9.00" < "10.00" is refused.
func (c condition) objection(col column) string {
	ordered := c.op != "=" && operators[c.op] != nil
	number := col.kind == kindInteger || col.kind == kindNumber
	point := col.isTime()
	switch {
	case c.op == "is null":
		return ""
	case col.kind == kindJSON || col.kind == kindRowVersion:
		return "is " + col.decl + ", which can only be compared with is null"
	case ordered && !number && !point:
		return "is " + col.decl + ", which has no order; < and > are for numbers and times"
	}
	for _, value := range c.values {
		if why := col.objection(value); why != "" {
			return why
		}
		text, _ := value.Text()
		if _, isNumber := decimal(value); number && !isNumber {
			return "is " + col.decl + " and needs a number"
		}
		if _, isTime := parseTime(text); point && !isTime {
			return "is " + col.decl + " and needs a time in the form of RFC 3339, or a date"
		}
	}
	return ""
}

// isTime reports whether the column's values are points in time or days.
func (c column) isTime() bool {
	// SQLite stores a number as a number in a column that is declared as date.
	return c.kind == kindTime || c.kind != kindNumber && strings.EqualFold(c.decl, "date")
}

// write adds a condition to a statement.
func (c condition) write(s *statement, col column) {
	s.add(s.dialect.quote(col.name))
	switch c.op {
	case "is null":
		s.add(" IS NULL")
	case "in":
		s.add(" IN (")
		for i, value := range c.values {
			if i > 0 {
				s.add(", ")
			}
			s.param(s.dialect.bind(col, value))
		}
		s.add(")")
	default:
		s.add(" ", c.op, " ").param(s.dialect.bind(col, c.value))
	}
}

// match returns the keys of the rows that match the condition, sorted as texts. It returns at most
// max_rows + 1 keys: the last one shows that there are too many rows.
func (c *Connector) match(ctx context.Context, q querier, p *plan, lock bool) ([]string, error) {
	key := p.table.columns[p.table.key]
	top, limit := c.dialect.first(p.where.maxRows + 1)
	var hint, end string
	if lock {
		hint, end = c.dialect.lock()
	}
	s := &statement{dialect: c.dialect}
	s.add("SELECT ", top, c.dialect.read(key), " FROM ", p.table.sqlName, hint, " WHERE ")
	for i, one := range p.where.where {
		if i > 0 {
			s.add(" AND ")
		}
		one.write(s, p.table.columns[p.table.byName[one.column]])
	}
	s.add(" ORDER BY ", c.dialect.quote(key.name), limit, end)
	found := make(map[string]row)
	if err := scanRows(ctx, q, s, &table{columns: []column{key}}, found); err != nil {
		return nil, err
	}
	for _, r := range found {
		if isNull(r[0].json) {
			return nil, &refusal{"not_as_approved", "a row has no key: column " + key.name + " is null"}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// checkCount compares the number of matching rows with the approved number.
func (s *selection) checkCount(rows int) error {
	switch {
	case rows > s.maxRows:
		return &refusal{"not_as_approved",
			fmt.Sprintf("the condition matches more than %d rows, the approved number", s.maxRows)}
	case rows == 0:
		return &refusal{string(gatehouse.CodeTargetChanged), "the condition matches no row"}
	case s.seen > 0 && rows != s.seen:
		return &refusal{string(gatehouse.CodeTargetChanged),
			fmt.Sprintf("the condition matches %d rows instead of %d", rows, s.seen)}
	}
	return nil
}

// checkRow refuses a row that the database found although the row does not fulfil the condition: a
// collation may take "Bulb" for "bulb", and a database may compare decimals as floats.
func (s *selection) checkRow(t *table, ref string, r row) error {
	for _, c := range s.where {
		col, got := t.columns[t.byName[c.column]], r[t.byName[c.column]].json
		if !c.holds(col, got) {
			return &refusal{"not_as_approved", fmt.Sprintf(
				"row %s: column %s holds %s, which fulfils the condition %s %s for the database, but not exactly",
				gatehouse.Quote(ref), col.name, clip(got), c.op, clip(c.value))}
		}
	}
	return nil
}

func (c condition) holds(col column, got gatehouse.JSON) bool {
	compare := operators[c.op]
	switch {
	case c.op == "is null":
		return isNull(got)
	case col.kind == kindOther:
		return true // its order and its spellings are the database's own
	case c.op == "in" || c.op == "=":
		return slices.ContainsFunc(c.values, func(value gatehouse.JSON) bool { return col.equal(value, got) })
	case col.isTime():
		wantText, _ := c.value.Text()
		gotText, _ := got.Text()
		want, ok := parseTime(wantText)
		is, also := parseTime(gotText)
		return ok && also && compare(is.Compare(want))
	}
	want, ok := decimal(c.value)
	is, also := decimal(got)
	return ok && also && compare(is.Cmp(want))
}

// checkMatch compares the number of rows with the proposal. It locks nothing.
func (c *Connector) checkMatch(ctx context.Context, p *plan) (connector.State, error) {
	refs, err := c.match(ctx, c.reader, p, false)
	if err != nil {
		return connector.State{}, c.unreachable(err)
	}
	if p.where.checkCount(len(refs)) == nil {
		return connector.State{Matches: true}, nil
	}
	limit := strconv.Itoa(p.where.maxRows)
	expected, actual := gatehouse.StringJSON("1 to "+limit), gatehouse.JSON(strconv.Itoa(len(refs)))
	if p.where.seen > 0 {
		expected = gatehouse.JSON(strconv.Itoa(p.where.seen))
	}
	if len(refs) > p.where.maxRows {
		actual = gatehouse.StringJSON("more than " + limit)
	}
	return connector.State{Expected: rowCount(expected), Actual: rowCount(actual)}, nil
}

func rowCount(n gatehouse.JSON) gatehouse.JSON {
	return gatehouse.ObjectJSON(gatehouse.Member{Name: "rows", Value: n})
}

// readMatch reads the present number of matching rows. It fails for a number above max_rows, because the
// number in current_state must be at most max_rows.
func (c *Connector) readMatch(ctx context.Context, p *plan) (connector.Snapshot, error) {
	refs, err := c.match(ctx, c.reader, p, false)
	switch {
	case err != nil:
		return connector.Snapshot{}, c.unreachable(err)
	case len(refs) == 0:
		return connector.Snapshot{Gone: true}, nil
	case len(refs) > p.where.maxRows:
		return connector.Snapshot{}, fail(connector.Terminal, "too_many_rows",
			fmt.Sprintf("the condition matches more than %d rows", p.where.maxRows), nil)
	}
	return connector.Snapshot{
		Matches: len(refs) == p.where.seen, CurrentState: rowCount(gatehouse.JSON(strconv.Itoa(len(refs)))),
	}, nil
}

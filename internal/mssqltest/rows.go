package mssqltest

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	readForm = regexp.MustCompile(`^(?:(` + name + `)|CONVERT\((nvarchar\(\w+\)), (` + name +
		`)(?:, (\d+))?\))(?:, |$)`)
	assignForm = regexp.MustCompile(`^(` + name + `) = (?:(@p\d+)|COALESCE\((` + name + `), 0\) \+ 1)(?:, |$)`)
	nameForm   = regexp.MustCompile(`^(` + name + `|\w+)(?:, |$)`)
	valueForm  = regexp.MustCompile(
		`^(@p\d+|1|''|CONVERT\(nvarchar\(33\), SYSUTCDATETIME\(\), 126\) \+ N'Z')(?:, |$)`)
)

// parts splits a list into its elements; nil if one of them does not match.
func parts(re *regexp.Regexp, list string) [][]string {
	var out [][]string
	for list != "" {
		m := re.FindStringSubmatch(list)
		if m == nil {
			return nil
		}
		out, list = append(out, m[1:]), list[len(m[0]):]
	}
	return out
}

// styles are the conversions that read each type without loss. A type without an entry is read without a conversion.
var styles = map[string]string{
	"datetimeoffset": "nvarchar(40) 127", "datetime2": "nvarchar(40) 126", "datetime": "nvarchar(40) 126",
	"date": "nvarchar(10) 23", "nvarchar": "nvarchar(max) ", "varchar": "nvarchar(max) ", "nchar": "nvarchar(max) ",
	"char": "nvarchar(max) ", "uniqueidentifier": "nvarchar(max) ",
}

func (s *session) read(ctx context.Context, q request, m []string) (*result, int64, *Error) {
	list, quoted, hint, key, keys, order := m[0], m[1], m[2], m[3], m[4], m[5]
	t, failed := s.openRead(ctx, quoted, hint)
	if failed != nil {
		return nil, 0, failed
	}
	columns, types, failed := readList(t, list)
	if failed != nil {
		return nil, 0, failed
	}
	if len(columns) == 0 || key != order {
		return nil, 0, syntax(list)
	}
	where, args, failed := s.in(q, t, key, keys, 0)
	if failed != nil {
		return nil, 0, failed
	}
	return s.query(ctx, types, "SELECT "+strings.Join(columns, ", ")+" FROM "+lite(t.name)+where+
		" ORDER BY "+lite(unquoted(order)), args...)
}

// openRead gives the table of a SELECT. With a hint, the session takes the writer's lock.
func (s *session) openRead(ctx context.Context, quoted, hint string) (*table, *Error) {
	if hint != "" {
		return s.open(ctx, quoted)
	}
	t, failed := s.table(ctx, unquoted(quoted))
	if t == nil && failed == nil {
		failed = ended(208, "Invalid object name '"+unquoted(quoted)+"'.")
	}
	return t, failed
}

var conditionForm = regexp.MustCompile(
	`^(` + name + `) (?:(=|<=|<|>=|>) (@p\d+)|IN \(` + keyList + `\)|(IS NULL))(?: AND |$)`)

// match reads the rows that fulfil conditions, at most a given number of them.
func (s *session) match(ctx context.Context, q request, m []string) (*result, int64, *Error) {
	t, failed := s.openRead(ctx, m[2], m[3])
	if failed != nil {
		return nil, 0, failed
	}
	columns, types, failed := readList(t, m[1])
	if failed != nil {
		return nil, 0, failed
	}
	var where []string
	var args []any
	for _, p := range parts(conditionForm, m[4]) {
		c := t.column(unquoted(p[0]))
		switch {
		case c == nil:
			return nil, 0, ended(207, "Invalid column name '"+unquoted(p[0])+"'.")
		case p[4] != "":
			where = append(where, lite(c.column)+" IS NULL")
			continue
		case p[3] != "":
			in, values, failed := s.in(q, t, p[0], p[3], len(args))
			if failed != nil {
				return nil, 0, failed
			}
			where, args = append(where, strings.TrimPrefix(in, " WHERE ")), append(args, values...)
			continue
		}
		v, failed := s.param(q, p[2], c)
		if failed != nil {
			return nil, 0, failed
		}
		args = append(args, v)
		where = append(where, lite(c.column)+" "+p[1]+" ?"+strconv.Itoa(len(args)))
	}
	if len(columns) == 0 || len(where) == 0 {
		return nil, 0, syntax(q.text)
	}
	return s.query(ctx, types, "SELECT "+strings.Join(columns, ", ")+" FROM "+lite(t.name)+" WHERE "+
		strings.Join(where, " AND ")+" ORDER BY "+lite(unquoted(m[5]))+" LIMIT "+m[0], args...)
}

// readList parses the columns of a SELECT. It refuses a column that is not read with its conversion in styles.
func readList(t *table, list string) (columns []string, types []dataType, failed *Error) {
	for _, p := range parts(readForm, list) {
		c := t.column(unquoted(p[0] + p[2]))
		if c == nil {
			return nil, nil, ended(207, "Invalid column name '"+unquoted(p[0]+p[2])+"'.")
		}
		style := ""
		if p[1] != "" {
			style = p[1] + " " + p[3]
		}
		if style != styles[c.name] {
			return nil, nil, refused(50000, "mssqltest: "+c.name+" is not read exactly by "+list)
		}
		if types = append(types, c.dataType); style != "" {
			types[len(types)-1] = dataType{name: "nvarchar"}
		}
		columns = append(columns, "+"+lite(c.column))
	}
	return columns, types, nil
}

// in is the condition that finds rows by their keys. after is the number of earlier parameters.
func (s *session) in(q request, t *table, key, keys string, after int) (string, []any, *Error) {
	c := t.column(unquoted(key))
	if c == nil {
		return "", nil, ended(207, "Invalid column name '"+unquoted(key)+"'.")
	}
	var args []any
	var marks []string
	for _, p := range strings.Split(keys, ", ") {
		v, failed := s.param(q, p, c)
		if failed != nil && failed.Number != 2628 { // a key that is too long names no row
			return "", nil, failed
		}
		args = append(args, v)
		marks = append(marks, "?"+strconv.Itoa(after+len(args)))
	}
	return " WHERE " + lite(c.column) + " IN (" + strings.Join(marks, ", ") + ")", args, nil
}

// settable refuses columns that do not exist, and those whose values the database sets.
func (s *session) settable(c *tableColumn, column string, identityInsert bool) *Error {
	switch {
	case c == nil:
		return ended(207, "Invalid column name '"+column+"'.")
	case c.computed:
		return ended(271, "The column \""+column+"\" cannot be modified because it is a computed column.")
	case c.name == "rowversion":
		return ended(272, "Cannot update a timestamp column.")
	case c.identity && !identityInsert:
		return refused(544, "Cannot insert explicit value for identity column when IDENTITY_INSERT is set to OFF.")
	}
	return nil
}

// indexable refuses sessions whose settings the table's computed columns do not allow.
func (s *session) indexable(t *table) *Error {
	for _, c := range t.columns {
		for _, on := range []string{
			"ANSI_NULLS", "ANSI_PADDING", "ANSI_WARNINGS", "ARITHABORT", "CONCAT_NULL_YIELDS_NULL", "QUOTED_IDENTIFIER",
		} {
			if c.computed && (s.settings[on] != "ON" || s.settings["NUMERIC_ROUNDABORT"] != "OFF") {
				return ended(1934, "The statement failed because the following SET options have incorrect settings: '"+on+"'.")
			}
		}
	}
	return nil
}

func (s *session) insert(ctx context.Context, q request, m []string) (*result, int64, *Error) {
	return s.insertInto(ctx, q, m, false)
}

func (s *session) insertIdentity(ctx context.Context, q request, m []string) (*result, int64, *Error) {
	if m[0] != m[1] || m[0] != m[4] {
		return nil, 0, syntax(q.text)
	}
	return s.insertInto(ctx, q, m[1:4], true)
}

// insertNumbered gives the number of the row for the OUTPUT parameter.
func (s *session) insertNumbered(ctx context.Context, q request, m []string) (*result, int64, *Error) {
	set, rows, failed := s.insertInto(ctx, q, m, false)
	if failed == nil && (rows != 1 || s.number == 0) {
		failed = refused(50000, "a trigger has replaced the INSERT")
	}
	return set, s.number, failed
}

func (s *session) insertInto(ctx context.Context, q request, m []string, identity bool) (*result, int64, *Error) {
	t, failed := s.open(ctx, m[0])
	if failed == nil {
		failed = s.indexable(t)
	}
	if failed != nil {
		return nil, 0, failed
	}
	names, values := parts(nameForm, m[1]), parts(valueForm, m[2])
	if len(names) == 0 || len(names) != len(values) {
		return nil, 0, syntax(q.text)
	}
	var columns, marks []string
	var args []any
	add := func(column string, v any) {
		columns, args = append(columns, lite(column)), append(args, v)
		marks = append(marks, "?"+strconv.Itoa(len(args)))
	}
	hasIdentity := false
	s.number = 0
	for i := range names {
		column := unquoted(names[i][0])
		c := t.column(column)
		if failed := s.settable(c, column, identity); failed != nil {
			return nil, 0, failed
		}
		hasIdentity = hasIdentity || c.identity
		var v any
		switch value := values[i][0]; {
		case value == "1":
			v = int64(1)
		case value == "''":
			v = ""
		case value[0] == 'C':
			v = time.Now().UTC().Format("2006-01-02T15:04:05.0000000Z")
		default:
			if v, failed = s.param(q, value, c); failed != nil {
				return nil, 0, failed
			}
		}
		add(c.column, v)
	}
	if identity && !hasIdentity {
		return nil, 0, refused(8106, "Table '"+t.name+"' does not have the identity property.")
	}
	for _, c := range t.columns {
		if c.name == "rowversion" {
			add(c.column, s.rowversion())
		}
		if c.identity && !identity {
			s.number = s.server.number.Add(1)
			add(c.column, s.number)
		}
	}
	return s.write(ctx, t, "INSERT INTO "+lite(t.name)+" ("+strings.Join(columns, ", ")+") VALUES ("+
		strings.Join(marks, ", ")+")", args)
}

func (s *session) update(ctx context.Context, q request, m []string) (*result, int64, *Error) {
	t, failed := s.open(ctx, m[0])
	if failed == nil {
		failed = s.indexable(t)
	}
	if failed != nil {
		return nil, 0, failed
	}
	var sets []string
	var args []any
	for _, p := range parts(assignForm, m[1]) {
		column := unquoted(p[0])
		c := t.column(column)
		if failed := s.settable(c, column, false); failed != nil {
			if failed.Number == 544 {
				failed = ended(8102, "Cannot update identity column '"+column+"'.")
			}
			return nil, 0, failed
		}
		if p[1] == "" {
			sets = append(sets, lite(c.column)+" = COALESCE("+lite(unquoted(p[2]))+", 0) + 1")
			continue
		}
		v, failed := s.param(q, p[1], c)
		if failed != nil {
			return nil, 0, failed
		}
		args = append(args, v)
		sets = append(sets, lite(c.column)+" = ?"+strconv.Itoa(len(args)))
	}
	if len(sets) == 0 {
		return nil, 0, syntax(q.text)
	}
	for _, c := range t.columns {
		if c.name == "rowversion" {
			args = append(args, s.rowversion())
			sets = append(sets, lite(c.column)+" = ?"+strconv.Itoa(len(args)))
		}
	}
	where, keys, failed := s.in(q, t, m[2], m[3], len(args))
	if failed != nil {
		return nil, 0, failed
	}
	return s.write(ctx, t, "UPDATE "+lite(t.name)+" SET "+strings.Join(sets, ", ")+where, append(args, keys...))
}

func (s *session) delete(ctx context.Context, q request, m []string) (*result, int64, *Error) {
	t, failed := s.open(ctx, m[0])
	if failed != nil {
		return nil, 0, failed
	}
	where, args, failed := s.in(q, t, m[1], m[2], 0)
	if failed != nil {
		return nil, 0, failed
	}
	return s.write(ctx, t, "DELETE FROM "+lite(t.name)+where, args)
}

package mssqltest

import (
	"context"
	"encoding/binary"
	"regexp"
	"strings"
	"time"
)

const (
	name     = `\[(?:[^\]]|\]\])+\]`
	tableRef = name + `(?:\.` + name + `)?`
	keyList  = `(@p\d+(?:, @p\d+)*)`
	counted  = `; SET @rows = @@ROWCOUNT`
)

// form is a form of statements, with the function that executes a statement of this form.
type form struct {
	re  *regexp.Regexp
	run func(s *session, ctx context.Context, q request, m []string) (*result, int64, *Error)
}

func of(
	pattern string, run func(s *session, ctx context.Context, q request, m []string) (*result, int64, *Error),
) form {
	return form{regexp.MustCompile(`^` + pattern + `$`), run}
}

// forms are all that the server understands.
var forms = []form{
	of(`SET [A-Z_]+ [\w ]+(?:; SET [A-Z_]+ [\w ]+)*`,
		func(s *session, _ context.Context, q request, _ []string) (*result, int64, *Error) {
			return nil, 0, s.set(q.text)
		}),
	of(`BEGIN TRANSACTION`, func(s *session, _ context.Context, _ request, _ []string) (*result, int64, *Error) {
		s.depth++
		if s.settings["IMPLICIT_TRANSACTIONS"] == "ON" {
			s.depth++
		}
		return nil, 0, nil
	}),
	of(`IF @@TRANCOUNT <> 1 THROW 50000, '[\w ]+', 1; COMMIT TRANSACTION`, (*session).commit),
	of(`IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION`,
		func(s *session, _ context.Context, _ request, _ []string) (*result, int64, *Error) {
			s.rollback()
			return nil, 0, nil
		}),
	of(`\s*SELECT c\.name, COALESCE\(TYPE_NAME[\s\S]+FROM sys\.columns c WHERE c\.object_id = OBJECT_ID\(@p1\) `+
		`ORDER BY c\.column_id`, (*session).describe),
	of(`\s*SELECT c\.name FROM sys\.indexes i\s[\s\S]+ AND i\.is_primary_key = 1 AND i\.ignore_dup_key = 0 `+
		`ORDER BY k\.key_ordinal`, (*session).primaryKey),
	of(`\s*SELECT CAST\(IIF\(EXISTS \(SELECT 1 FROM sys\.foreign_keys k WHERE k\.referenced_object_id = OBJECT_ID\(@p1\)`+
		`\s+AND k\.delete_referential_action <> 0\), 1, 0\) AS bit\)`, (*session).cascades),
	of(`CREATE TABLE (`+tableRef+`) \(([\s\S]+)\)`, (*session).create),
	of(`SELECT digest, result FROM (`+tableRef+`) WHERE tenant = (@p1) AND idempotency_key = (@p2)`, (*session).record),
	of(`UPDATE (`+tableRef+`) SET result = (@p1) WHERE tenant = (@p2) AND idempotency_key = (@p3)`,
		(*session).complete),
	of(`SELECT TOP \((\d+)\) (.+) FROM (`+tableRef+`)( WITH \(UPDLOCK, HOLDLOCK\))? WHERE (.+) ORDER BY (`+name+`)`,
		(*session).match),
	of(`SELECT (.+) FROM (`+tableRef+`)( WITH \(UPDLOCK, HOLDLOCK\))? WHERE (`+name+`) IN \(`+keyList+`\) ORDER BY `+
		`(`+name+`)`, (*session).read),
	of(`INSERT INTO (`+tableRef+`) \((.+)\) VALUES \((.+)\)`+counted, (*session).insert),
	of(`INSERT INTO (`+tableRef+`) \((.+)\) VALUES \((.+)\); IF SCOPE_IDENTITY\(\) IS NULL THROW 50000, '[\w ,]+', 1; `+
		`SET @number = SCOPE_IDENTITY\(\)`, (*session).insertNumbered),
	of(`SET IDENTITY_INSERT (`+tableRef+`) ON; INSERT INTO (`+tableRef+`) \((.+)\) VALUES \((.+)\)`+counted+
		`; SET IDENTITY_INSERT (`+tableRef+`) OFF`, (*session).insertIdentity),
	of(`UPDATE (`+tableRef+`) SET (.+) WHERE (`+name+`) IN \(`+keyList+`\)`+counted, (*session).update),
	of(`DELETE FROM (`+tableRef+`) WHERE (`+name+`) IN \(`+keyList+`\)`+counted, (*session).delete),
}

// execute carries out a statement of a known form.
func (s *session) execute(ctx context.Context, q request) (*result, int64, *Error) {
	if len(q.params) > 2098 {
		return nil, 0, ended(8003, "The incoming request has too many parameters. The server supports a maximum of 2100.")
	}
	for _, f := range forms {
		m := f.re.FindStringSubmatch(q.text)
		if m != nil {
			return f.run(s, ctx, q, m[1:])
		}
	}
	return nil, 0, syntax(q.text)
}

func (s *session) commit(ctx context.Context, _ request, _ []string) (*result, int64, *Error) {
	if s.depth != 1 {
		return nil, 0, refused(50000, "a trigger has left a transaction open")
	}
	if s.begun {
		if _, err := s.lite.ExecContext(context.WithoutCancel(ctx), "COMMIT"); err != nil {
			return nil, 0, translated(err, "")
		}
	}
	s.depth, s.begun = 0, false
	return nil, 0, nil
}

// unquoted takes the brackets off a name, and its schema if that is the default one.
func unquoted(quoted string) string {
	plain := strings.ReplaceAll(quoted, "].[", "\x00")
	plain = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(plain, "["), "]"), "]]", "]")
	return strings.TrimPrefix(strings.ReplaceAll(plain, "\x00", "."), "dbo.")
}

// lite quotes a name for SQLite.
func lite(plain string) string { return `"` + strings.ReplaceAll(plain, `"`, `""`) + `"` }

func (s *session) describe(ctx context.Context, q request, _ []string) (*result, int64, *Error) {
	object, _ := q.params["@p1"].(string)
	text, number, truth := dataType{name: "nvarchar"}, dataType{name: "int"}, dataType{name: "bit"}
	set := &result{types: []dataType{text, text, number, number, number, truth, truth, truth}}
	t, failed := s.table(ctx, unquoted(object))
	if t == nil || failed != nil {
		return set, 0, failed
	}
	bit := map[bool]int64{true: 1}
	for _, c := range t.columns {
		set.rows = append(set.rows, []any{
			c.column, c.typeName(), c.length(), int64(c.size), int64(c.scale), bit[c.nullable], bit[c.identity],
			bit[c.computed],
		})
	}
	return set, int64(len(set.rows)), nil
}

func (s *session) primaryKey(ctx context.Context, q request, _ []string) (*result, int64, *Error) {
	object, _ := q.params["@p1"].(string)
	return s.query(ctx, []dataType{{name: "nvarchar"}},
		`SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk`, unquoted(object))
}

func (s *session) cascades(ctx context.Context, q request, _ []string) (*result, int64, *Error) {
	object, _ := q.params["@p1"].(string)
	return s.query(ctx, []dataType{{name: "bit"}}, `
SELECT EXISTS (SELECT 1 FROM pragma_table_list l, pragma_foreign_key_list(l.name) f
  WHERE f."table" = ?1 AND f.on_delete <> 'NO ACTION')`, unquoted(object))
}

// query reads a result set of SQLite.
func (s *session) query(ctx context.Context, types []dataType, text string, args ...any) (*result, int64, *Error) {
	rows, err := s.lite.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, 0, translated(err, "")
	}
	defer rows.Close()
	set := &result{types: types}
	for rows.Next() {
		row, into := make([]any, len(types)), make([]any, len(types))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, 0, translated(err, "")
		}
		for i := range row {
			var failed *Error
			if row[i], failed = types[i].shown(row[i]); failed != nil {
				return nil, 0, failed
			}
		}
		set.rows = append(set.rows, row)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, translated(err, "")
	}
	return set, int64(len(set.rows)), nil
}

var maxType = regexp.MustCompile(`(nvarchar|varbinary)(\(max\)|\(\d+\))`)

func (s *session) create(ctx context.Context, _ request, m []string) (*result, int64, *Error) {
	table := unquoted(m[0])
	if failed := s.lock(ctx); failed != nil {
		return nil, 0, failed
	}
	if t, failed := s.table(ctx, table); t != nil || failed != nil {
		return nil, 0, refused(2714, "There is already an object named '"+table+"' in the database.")
	}
	columns := strings.ReplaceAll(maxType.ReplaceAllString(m[1], "BLOB $1$2"), "(max)", "")
	if _, err := s.lite.ExecContext(ctx, "CREATE TABLE "+lite(table)+" ("+columns+") WITHOUT ROWID"); err != nil {
		return nil, 0, translated(err, table)
	}
	return nil, 0, nil
}

// open gives the table of a statement that writes or locks.
func (s *session) open(ctx context.Context, quoted string) (*table, *Error) {
	if failed := s.lock(ctx); failed != nil {
		return nil, failed
	}
	t, failed := s.table(ctx, unquoted(quoted))
	if t == nil && failed == nil {
		failed = ended(208, "Invalid object name '"+unquoted(quoted)+"'.")
	}
	return t, failed
}

// param converts a parameter to a column's type.
func (s *session) param(q request, name string, c *tableColumn) (any, *Error) {
	v, ok := q.params[name]
	if !ok {
		return nil, refused(137, "Must declare the scalar variable \""+name+"\".")
	}
	return s.convert(c.dataType, v)
}

func (s *session) record(ctx context.Context, q request, m []string) (*result, int64, *Error) {
	t, failed := s.open(ctx, m[0])
	if failed != nil {
		return nil, 0, failed
	}
	where, args, failed := s.recordKey(q, t, m[1:], 1)
	if failed != nil {
		return nil, 0, failed
	}
	text := dataType{name: "nvarchar"}
	return s.query(ctx, []dataType{text, text}, "SELECT digest, result FROM "+lite(t.name)+where, args...)
}

// recordKey returns the WHERE clause that finds a record by its key, and the clause's arguments. names are the
// parameters with the key; from is the number of the clause's first argument.
func (s *session) recordKey(q request, t *table, names []string, from int) (string, []any, *Error) {
	var args []any
	for i, column := range []string{"tenant", "idempotency_key"} {
		v, failed := s.param(q, names[i], t.column(column))
		if failed != nil {
			return "", nil, failed
		}
		args = append(args, v)
	}
	marks := [][2]string{1: {"?1", "?2"}, 2: {"?2", "?3"}}[from]
	return " WHERE tenant = " + marks[0] + " AND idempotency_key = " + marks[1], args, nil
}

func (s *session) complete(ctx context.Context, q request, m []string) (*result, int64, *Error) {
	t, failed := s.open(ctx, m[0])
	if failed != nil {
		return nil, 0, failed
	}
	v, failed := s.param(q, m[1], t.column("result"))
	if failed != nil {
		return nil, 0, failed
	}
	where, args, failed := s.recordKey(q, t, m[2:], 2)
	if failed != nil {
		return nil, 0, failed
	}
	return s.write(ctx, t, "UPDATE "+lite(t.name)+" SET result = ?1"+where, append([]any{v}, args...))
}

// write executes a change. SQLite also runs the table's triggers.
func (s *session) write(ctx context.Context, t *table, text string, args []any) (*result, int64, *Error) {
	res, err := s.lite.ExecContext(ctx, text, args...)
	if err != nil {
		return nil, 0, translated(err, t.name)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return nil, 0, translated(err, t.name)
	}
	return nil, n, nil
}

// rowversion returns the next rowversion of the database.
func (s *session) rowversion() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano())<<8|uint64(s.server.version.Add(1)&0xff))
}

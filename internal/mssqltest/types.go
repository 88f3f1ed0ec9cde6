package mssqltest

import (
	"context"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// dataType is a type of SQL Server.
type dataType struct {
	name  string
	size  int // characters, bytes or digits; 0 for max
	scale int
}

// tableColumn is a column of a table.
type tableColumn struct {
	dataType
	column             string
	nullable           bool
	identity, computed bool
}

type table struct {
	name    string
	columns []tableColumn
}

func (t *table) column(name string) *tableColumn {
	for i := range t.columns {
		if strings.EqualFold(t.columns[i].column, name) { // as in a case-insensitive collation
			return &t.columns[i]
		}
	}
	return nil
}

var declForm = regexp.MustCompile(`^(?:BLOB )?(\w+)(?: (IDENTITY))?(?:\((\d+)(?:, ?(\d+))?\))?$`)

// table reads the catalogue; nil if there is no such table.
func (s *session) table(ctx context.Context, name string) (*table, *Error) {
	rows, err := s.lite.QueryContext(ctx,
		`SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid`, name)
	if err != nil {
		return nil, translated(err, name)
	}
	defer rows.Close()
	t := &table{name: name}
	for rows.Next() {
		var decl string
		var notNull bool
		var key, hidden int
		c := tableColumn{}
		if err := rows.Scan(&c.column, &decl, &notNull, &key, &hidden); err != nil {
			return nil, translated(err, name)
		}
		m := declForm.FindStringSubmatch(decl)
		if m == nil {
			return nil, refused(50000, "mssqltest: unknown type "+decl)
		}
		c.name, c.identity, c.computed = m[1], m[2] != "", hidden > 1
		c.size, _ = strconv.Atoi(m[3])
		c.scale, _ = strconv.Atoi(m[4])
		if strings.HasPrefix(c.name, "datetime") || c.name == "time" {
			c.size, c.scale = 0, c.size
		}
		c.nullable = !notNull && key == 0
		t.columns = append(t.columns, c)
	}
	if err := rows.Err(); err != nil {
		return nil, translated(err, name)
	}
	if len(t.columns) == 0 {
		return nil, nil
	}
	return t, nil
}

// length is max_length of sys.columns.
func (t dataType) length() int64 {
	switch {
	case t.name == "nvarchar" || t.name == "nchar":
		if t.size == 0 {
			return -1
		}
		return int64(2 * t.size)
	case t.size == 0 && (t.name == "varchar" || t.name == "varbinary"):
		return -1
	}
	return int64(t.size)
}

// typeName is the name in sys.types.
func (t dataType) typeName() string {
	if t.name == "rowversion" {
		return "timestamp"
	}
	return t.name
}

var (
	decimalForm = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)$`)
	guidForm    = regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	instantForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(\d{1,7}))?(Z?)$`)
)

// convert gives a parameter the form in which SQLite keeps a value of the type.
func (s *session) convert(t dataType, v any) (any, *Error) {
	if n, ok := v.(varchar); ok {
		v = string(n)
	}
	if v == nil {
		return nil, nil
	}
	if b, ok := v.(bool); ok && t.name != "bit" {
		v = map[bool]int64{true: 1}[b]
	}
	b, isBytes := v.([]byte)
	if binary := t.name == "varbinary"; binary != isBytes {
		return nil, refused(257, "Implicit conversion between these data types is not allowed. Use the CONVERT function.")
	}
	switch t.name {
	case "varbinary":
		if t.size > 0 && len(b) > t.size {
			return s.truncated(b, b[:t.size])
		}
		return b, nil
	case "nvarchar", "nchar", "varchar", "char":
		return s.convertText(t, fmt.Sprint(v))
	case "tinyint", "smallint", "int", "bigint":
		return s.convertInteger(t, v)
	case "decimal":
		return s.convertDecimal(t, fmt.Sprint(v))
	case "bit":
		switch fmt.Sprint(v) {
		case "true", "1":
			return int64(1), nil
		case "false", "0":
			return int64(0), nil
		}
		return nil, ended(245, "Conversion failed when converting the nvarchar value to data type bit.")
	case "float", "real":
		bits := int(t.floatSize()) * 8
		f, err := strconv.ParseFloat(fmt.Sprint(v), bits)
		if err != nil {
			return nil, ended(8114, "Error converting data type nvarchar to "+t.name+".")
		}
		return f, nil
	case "uniqueidentifier":
		if text := fmt.Sprint(v); guidForm.MatchString(text) {
			return strings.ToUpper(text), nil
		}
		return nil, ended(8169, "Conversion failed when converting from a character string to uniqueidentifier.")
	}
	return convertTime(t, fmt.Sprint(v))
}

// truncated returns an error if ANSI_WARNINGS is ON, or else the truncated value without an error.
func (s *session) truncated(whole, cut any) (any, *Error) {
	if s.settings["ANSI_WARNINGS"] != "ON" {
		return cut, nil
	}
	return whole, refused(2628, "String or binary data would be truncated.")
}

func (s *session) overflow(message string) (any, *Error) {
	if s.settings["ANSI_WARNINGS"] != "ON" && s.settings["ARITHABORT"] != "ON" {
		return nil, nil
	}
	return nil, ended(8115, "Arithmetic overflow error converting "+message+".")
}

func (s *session) convertText(t dataType, text string) (any, *Error) {
	if t.name == "varchar" || t.name == "char" { // code page 1252, nearly
		text = strings.Map(func(r rune) rune {
			if r > 0xff {
				return '?'
			}
			return r
		}, text)
	}
	units := utf16.Encode([]rune(text))
	if t.size == 0 || len(units) <= t.size {
		return text, nil
	}
	return s.truncated(text, string(utf16.Decode(units[:t.size])))
}

func (s *session) convertInteger(t dataType, v any) (any, *Error) {
	n, ok := v.(int64)
	if text, isText := v.(string); isText {
		parsed, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			number := map[string]int32{"bigint": 8114}[t.name]
			if number == 0 {
				number = 245
			}
			return nil, ended(number, "Conversion failed when converting the nvarchar value to data type "+t.name+".")
		}
		n, ok = parsed, true
	}
	if !ok {
		return nil, ended(257, "Implicit conversion is not allowed.")
	}
	bits := map[string]uint{"tinyint": 8, "smallint": 15, "int": 31, "bigint": 63}[t.name]
	if most := int64(1)<<bits - 1; bits < 63 && (n > most || n < -most-1 || t.name == "tinyint" && n < 0) {
		return s.overflow("expression to data type " + t.name)
	}
	return n, nil
}

// convertDecimal rounds to the scale, half away from zero, without a warning.
func (s *session) convertDecimal(t dataType, text string) (any, *Error) {
	if !decimalForm.MatchString(text) {
		return nil, ended(8114, "Error converting data type nvarchar to numeric.")
	}
	exact, _ := new(big.Rat).SetString(text)
	rounded := exact.FloatString(t.scale) // halves away from zero
	digits := strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(rounded), "0")
	if len(digits) > t.size {
		return s.overflow("nvarchar to data type numeric")
	}
	return rounded, nil
}

func convertTime(t dataType, text string) (any, *Error) {
	failed := ended(241, "Conversion failed when converting date and/or time from character string.")
	if t.name == "date" {
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return nil, failed
		}
		return text, nil
	}
	m := instantForm.FindStringSubmatch(text)
	if m == nil || (m[2] == "Z") != (t.name == "datetimeoffset") || t.name == "datetime" && len(m[1]) > 3 {
		return nil, failed
	}
	at, err := time.Parse("2006-01-02T15:04:05.9999999", strings.TrimSuffix(text, "Z"))
	if err != nil {
		return nil, failed
	}
	switch t.name {
	case "datetime": // in steps of 1/300 second
		ticks := (at.Nanosecond()*3 + 5e6) / 1e7
		at = at.Truncate(time.Second).Add(time.Duration((ticks*10+1)/3) * time.Millisecond)
		t.scale = 3
	case "datetime2", "datetimeoffset":
		at = at.Round(time.Second / time.Duration(pow10(t.scale)))
	default:
		return nil, refused(50000, "mssqltest: unknown type "+t.name)
	}
	layout := "2006-01-02T15:04:05"
	if t.scale > 0 {
		layout += "." + strings.Repeat("0", t.scale)
	}
	return at.Format(layout) + m[2], nil
}

func pow10(n int) int {
	out := 1
	for range n {
		out *= 10
	}
	return out
}

// shown is a value of the database in the form of a result set.
func (t dataType) shown(v any) (any, *Error) {
	switch v := v.(type) {
	case nil, string, []byte:
		return v, nil
	case int64:
		if t.name == "float" || t.name == "real" {
			return float64(v), nil
		}
		if t.name == "decimal" {
			return strconv.FormatInt(v, 10) + map[bool]string{true: "." + strings.Repeat("0", t.scale)}[t.scale > 0],
				nil
		}
		return v, nil
	case float64:
		if t.name == "decimal" {
			return strconv.FormatFloat(v, 'f', t.scale, 64), nil
		}
		return v, nil
	}
	return nil, refused(50000, fmt.Sprintf("mssqltest: SQLite gave a %T", v))
}

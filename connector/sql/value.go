package sqlconn

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// cell is the value of one column of one row, as JSON. A cell that is not restorable, such as an
// SQLite blob, cannot be written back from that JSON.
type cell struct {
	json       gatehouse.JSON
	restorable bool
}

// row holds the cells of a table's visible columns, in the table's order.
type row []cell

func isNull(j gatehouse.JSON) bool { return j == "" || j == "null" }

func isComposite(j gatehouse.JSON) bool { return j != "" && (j[0] == '{' || j[0] == '[') }

func isBool(j gatehouse.JSON) bool { return j == "true" || j == "false" }

// decimal parses a number, or a string that contains one.
func decimal(j gatehouse.JSON) (gatehouse.Decimal, bool) {
	if d, ok := j.Number(); ok {
		return d, true
	}
	s, ok := j.Text()
	if !ok {
		return "", false
	}
	d, err := gatehouse.ParseDecimal(s)
	return d, err == nil
}

// objection says why a column cannot hold a value, "" when it may. Some violations only the database
// can detect, when the change is made.
func (c column) objection(v gatehouse.JSON) string {
	switch {
	case isNull(v):
		if c.notNull {
			return "cannot be null"
		}
		return ""
	case isComposite(v):
		if c.kind != kindJSON && c.kind != kindText {
			return "is " + c.decl + " and cannot hold an object or an array"
		}
		return ""
	}
	text, isText := v.Text()
	if isText && strings.ContainsRune(text, 0) {
		return "contains a NUL character"
	}
	_, numeric := decimal(v)
	switch c.kind {
	case kindInteger:
		if !numeric && !isBool(v) {
			return "is " + c.decl + " and needs a number"
		}
	case kindBool:
		if !isBool(v) {
			return "is " + c.decl + " and needs true or false"
		}
	case kindBinary:
		if _, ok := binary(text); !ok {
			return "is " + c.decl + " and needs 0x and hexadecimal digits"
		}
	}
	return ""
}

// equal compares a proposal's value with a column's value: numbers exactly by value; points in time as such; JSON
// as JSON; hexadecimal digits in either case; booleans by truth value (1 is true); objects and arrays in canonical
// form; everything else exactly as text.
func (c column) equal(want, got gatehouse.JSON) bool {
	if isNull(want) || isNull(got) {
		return isNull(want) && isNull(got)
	}
	if want == got {
		return true
	}
	if c.kind == kindJSON {
		return want.Equal(got)
	}
	wantText, wantIsText := want.Text()
	gotText, gotIsText := got.Text()
	if isBool(want) || isBool(got) {
		return truth(want) != "" && truth(want) == truth(got)
	}
	if isComposite(want) {
		canonical, err := gatehouse.Canonicalize([]byte(gotText))
		return gotIsText && err == nil && canonical == want
	}
	if (c.kind == kindText || c.kind == kindAny) && wantIsText && gotIsText {
		return wantText == gotText
	}
	if c.hexadecimal {
		return strings.EqualFold(text(want), text(got))
	}
	if c.kind == kindOther {
		return text(want) == text(got)
	}
	if c.kind == kindTime && wantIsText && gotIsText {
		a, aok := parseTime(wantText)
		b, bok := parseTime(gotText)
		if aok && bok {
			return a.Equal(b)
		}
	}
	a, aok := decimal(want)
	b, bok := decimal(got)
	return aok && bok && a.Cmp(b) == 0
}

// truth maps the databases' spellings of a boolean to one word, "" for anything else.
func truth(j gatehouse.JSON) string {
	switch j {
	case "true", "1", `"true"`:
		return "true"
	case "false", "0", `"false"`:
		return "false"
	}
	return ""
}

// binary reads 0x and hexadecimal digits, two for each byte.
func binary(s string) ([]byte, bool) {
	digits, ok := strings.CutPrefix(s, "0x")
	b, err := hex.DecodeString(digits)
	return b, ok && err == nil
}

// parseTime reads a point in time as RFC 3339 defines it, as PostgreSQL writes it, or as people
// type it. A time without a zone is in UTC, the zone of the connector's sessions.
func parseTime(s string) (time.Time, bool) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999", "2006-01-02",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// text is the form in which a key or version is compared with the proposal's.
func text(j gatehouse.JSON) string {
	if s, ok := j.Text(); ok {
		return s
	}
	return string(j)
}

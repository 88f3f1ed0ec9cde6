package netsuite

import (
	"regexp"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The types of fields.
const (
	typeText      = "text"
	typeInteger   = "integer"
	typeDecimal   = "decimal"
	typeMoney     = "money"
	typeBoolean   = "boolean"
	typeDate      = "date"
	typeReference = "reference"
	typeChoice    = "choice"
	typeLines     = "lines"
)

// isoDate is the canonical form of a date, as a layout of package time.
const isoDate = "2006-01-02"

// wire is the representation of values in requests and answers.
type wire int

const (
	wireREST      wire = iota
	wireGatehouse      // Gatehouse's RESTlet: numbers as strings, dates as YYYY-MM-DD
	wirePlain          // another RESTlet: numbers as strings, dates in the field's format
)

// field is a compiled [Field].
type field struct {
	Field
	name   string
	scale  int
	layout string // of a date, for package time
	lines  map[string]*field
}

// plainNumber is a number without an exponent.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// maxDigits is the number of significant digits that a JavaScript number keeps.
const maxDigits = 15

// number returns the digits of a number, or of a string that contains one.
func number(j gatehouse.JSON) (string, bool) {
	s, ok := j.Text()
	if !ok {
		s = string(j)
	}
	return s, plainNumber.MatchString(s)
}

// check adds violations that the schema cannot express.
func (f *field) check(at string, j gatehouse.JSON, v *gatehouse.Violations) {
	switch f.Type {
	case typeInteger, typeDecimal, typeMoney:
		if j == "null" {
			return
		}
		s, ok := number(j)
		_, fraction, _ := strings.Cut(s, ".")
		digits := strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(s), "0")
		switch {
		case !ok:
			v.Add(at, "must be a number without an exponent")
		case len(fraction) > f.scale:
			v.Add(at, "has more than %d digits after the point", f.scale)
		case len(digits) > maxDigits:
			v.Add(at, "has more than %d digits", maxDigits)
		}
	case typeDate:
		if s, ok := j.Text(); ok {
			if _, err := time.Parse(isoDate, s); err != nil {
				v.Add(at, "must be a date such as 2026-11-24")
			}
		}
	}
}

// send converts a canonical value to the wire's form.
func (f *field) send(j gatehouse.JSON, w wire) gatehouse.JSON {
	if j == "null" {
		return j
	}
	switch f.Type {
	case typeInteger, typeDecimal, typeMoney:
		s, _ := number(j)
		if w == wireREST {
			return gatehouse.JSON(s)
		}
		return gatehouse.StringJSON(s)
	case typeDate:
		s, _ := j.Text()
		if at, err := time.Parse(isoDate, s); err == nil && w == wirePlain {
			return gatehouse.StringJSON(at.Format(f.layout))
		}
	case typeReference:
		if w == wireREST {
			return gatehouse.ObjectJSON(gatehouse.Member{Name: "id", Value: j})
		}
	case typeLines:
		return f.sendLines(j, w)
	case typeChoice:
		s, _ := j.Text()
		id := gatehouse.StringJSON(f.Values[s])
		if w == wireREST {
			return gatehouse.ObjectJSON(gatehouse.Member{Name: "id", Value: id})
		}
		return id
	}
	return j
}

// read converts a value of the wire to the canonical one; null if it is missing, and false for a
// missing boolean.
func (f *field) read(j gatehouse.JSON, w wire) gatehouse.JSON {
	if id, ok := j.Get("id"); ok && (f.Type == typeReference || f.Type == typeChoice) {
		j = id
	}
	if j == "" || j == "null" || j == `""` && f.Type != typeText {
		if f.Type == typeBoolean {
			return "false"
		}
		return "null"
	}
	s, isText := j.Text()
	switch f.Type {
	case typeInteger, typeDecimal, typeMoney:
		if digits, ok := number(j); ok {
			return gatehouse.JSON(digits)
		}
	case typeBoolean:
		switch {
		case isText && (s == "T" || s == "true"):
			return "true"
		case isText && (s == "F" || s == "false"):
			return "false"
		}
	case typeDate:
		layout := isoDate
		if w == wirePlain {
			layout = f.layout
		}
		if len(s) >= len(layout) {
			if at, err := time.Parse(layout, s[:len(layout)]); err == nil {
				return gatehouse.StringJSON(at.Format(isoDate))
			}
		}
	case typeReference:
		if !isText {
			return gatehouse.StringJSON(string(j))
		}
	case typeChoice:
		for canonical, id := range f.Values {
			if id == s {
				return gatehouse.StringJSON(canonical)
			}
		}
	case typeLines:
		return f.readLines(j, w)
	}
	return j
}

// wireName is the field's name on the wire.
func (f *field) wireName(w wire) string {
	if w == wireREST {
		return f.REST
	}
	return f.Field.Field
}

// sendLines converts the lines of a create to the wire's form.
func (f *field) sendLines(j gatehouse.JSON, w wire) gatehouse.JSON {
	lines, _ := j.Elements()
	for i, line := range lines {
		members, _ := line.Fields()
		for k, m := range members {
			inner := f.lines[m.Name]
			members[k] = gatehouse.Member{Name: inner.wireName(w), Value: inner.send(m.Value, w)}
		}
		lines[i] = gatehouse.ObjectJSON(members...)
	}
	return gatehouse.ArrayJSON(lines...)
}

// readLines converts lines of the wire to canonical ones, with all fields of the map.
func (f *field) readLines(j gatehouse.JSON, w wire) gatehouse.JSON {
	if items, ok := j.Get("items"); ok {
		j = items
	}
	lines, err := j.Elements()
	if err != nil {
		return "null"
	}
	for i, line := range lines {
		members := make([]gatehouse.Member, 0, len(f.lines))
		for name, inner := range f.lines {
			value, _ := line.Get(inner.wireName(w))
			members = append(members, gatehouse.Member{Name: name, Value: inner.read(value, w)})
		}
		lines[i] = gatehouse.ObjectJSON(members...)
	}
	return gatehouse.ArrayJSON(lines...)
}

// same reports whether two canonical values are equal.
func (f *field) same(a, b gatehouse.JSON) bool {
	if empty(a) || empty(b) {
		return empty(a) && empty(b)
	}
	switch f.Type {
	case typeInteger, typeDecimal, typeMoney:
		s, ok1 := number(a)
		t, ok2 := number(b)
		if !ok1 || !ok2 {
			return false
		}
		x, err1 := gatehouse.ParseDecimal(s)
		y, err2 := gatehouse.ParseDecimal(t)
		return err1 == nil && err2 == nil && x.Cmp(y) == 0
	case typeLines:
		return f.sameLines(a, b)
	}
	return a.Equal(b)
}

// empty reports whether a value is empty: NetSuite does not distinguish an empty text from a
// missing one.
func empty(j gatehouse.JSON) bool { return j == "" || j == "null" || j == `""` }

// sameLines reports whether the lines exist in the given order, with each line's named values.
func (f *field) sameLines(want, got gatehouse.JSON) bool {
	a, err1 := want.Elements()
	b, err2 := got.Elements()
	if err1 != nil || err2 != nil || len(a) != len(b) {
		return false
	}
	for i := range a {
		members, err := a[i].Fields()
		if err != nil {
			return false
		}
		for _, m := range members {
			value, _ := b[i].Get(m.Name)
			if inner := f.lines[m.Name]; inner == nil || !inner.same(m.Value, value) {
				return false
			}
		}
	}
	return true
}

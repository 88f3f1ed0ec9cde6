package card

import (
	"github.com/gatehouse-dev/gatehouse"
)

// ValueType is the JSON type of a [Value].
type ValueType string

// The types. Absent differs from null: the member does not exist.
const (
	Absent ValueType = "absent"
	Null   ValueType = "null"
	Bool   ValueType = "bool"
	Number ValueType = "number"
	String ValueType = "string"
	Array  ValueType = "array"
	Object ValueType = "object"
)

// Value is one JSON value as it is stored.
type Value struct {
	JSON gatehouse.JSON // "" when absent
	Type ValueType
	// Text is the text to show: the unescaped text of a string, the lexeme of
	// anything else, "" when absent. It is raw: see [Visible].
	Text string
}

// NewValue returns the value of a canonical JSON text, "" for absent.
func NewValue(j gatehouse.JSON) Value {
	v := Value{JSON: j, Type: Absent, Text: string(j)}
	if j == "" {
		return v
	}
	switch j[0] {
	case 'n':
		v.Type = Null
	case 't', 'f':
		v.Type = Bool
	case '"':
		v.Type = String
		v.Text, _ = j.Text()
	case '[':
		v.Type = Array
	case '{':
		v.Type = Object
	default:
		v.Type = Number
	}
	return v
}

// Decimal reads a number, or a string that holds one, as is common for money; false
// for anything else.
func (v Value) Decimal() (gatehouse.Decimal, bool) {
	switch v.Type {
	case Number:
		return v.JSON.Number()
	case String:
		d, err := gatehouse.ParseDecimal(v.Text)
		return d, err == nil
	}
	return "", false
}

// empty reports whether the value is an empty array or object.
func (v Value) empty() bool { return v.JSON == "[]" || v.JSON == "{}" }

// container reports whether the value is a nonempty array or object.
func (v Value) container() bool { return (v.Type == Array || v.Type == Object) && !v.empty() }

package gatehouse

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Member is one member of a JSON object.
type Member struct {
	Name string
	// Value is canonical JSON.
	Value JSON
}

var errNotCanonical = errors.New("not a JSON value of that kind in canonical form")

// Fields returns the members of an object in canonical order. It is an error
// when the value is not an object.
func (j JSON) Fields() ([]Member, error) {
	var members []Member
	err := j.each('{', '}', func(name, value string) bool {
		members = append(members, Member{string(unescape([]byte(name))), JSON(value)})
		return true
	})
	return members, err
}

// Elements returns the elements of an array. It is an error when the value is
// not an array.
func (j JSON) Elements() ([]JSON, error) {
	var elements []JSON
	err := j.each('[', ']', func(_, value string) bool {
		elements = append(elements, JSON(value))
		return true
	})
	return elements, err
}

// Get returns the member of that name; false when there is none, or when the value
// is not an object. A member whose value is null counts as present.
func (j JSON) Get(name string) (JSON, bool) {
	quoted := string(StringJSON(name))
	var found JSON
	err := j.each('{', '}', func(raw, value string) bool {
		if raw == quoted[1:len(quoted)-1] {
			found = JSON(value)
		}
		return found == ""
	})
	return found, err == nil && found != ""
}

// At resolves a JSON pointer (RFC 6901), such as /data/id; "" is the whole value.
// It is false when nothing is there.
func (j JSON) At(pointer string) (JSON, bool) {
	if j == "" || pointer == "" {
		return j, j != ""
	}
	for _, step := range SplitPointer(pointer) {
		if next, ok := j.Get(step); ok {
			j = next
			continue
		}
		elements, err := j.Elements()
		i, errIndex := strconv.Atoi(step)
		if err != nil || errIndex != nil || i < 0 || i >= len(elements) || strconv.Itoa(i) != step {
			return "", false
		}
		j = elements[i]
	}
	return j, true
}

// Text returns the text of a string, unescaped; false for any other value.
func (j JSON) Text() (string, bool) {
	if end, ok := skipString(string(j), 0); !ok || end != len(j) {
		return "", false
	}
	s := string(j[1 : len(j)-1])
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	return string(unescape([]byte(s))), true
}

// Number returns a number with its exact text; false for any other value, and for a
// number whose exponent is out of a [Decimal]'s range.
func (j JSON) Number() (Decimal, bool) {
	if j == "" || j[0] != '-' && (j[0] < '0' || j[0] > '9') {
		return "", false
	}
	d, err := ParseDecimal(string(j))
	return d, err == nil
}

// StringJSON returns the canonical form of a string. Bytes that are not UTF-8
// become U+FFFD.
func StringJSON(s string) JSON {
	return JSON(appendString(make([]byte, 0, len(s)+2), s))
}

// ObjectJSON returns the canonical form of an object. The values must be canonical;
// an absent value becomes null. It panics when two members have the same name: pass
// only names that the program chose, or that are known to differ.
func ObjectJSON(members ...Member) JSON {
	byName := func(a, b Member) int { return compareUTF16(a.Name, b.Name) }
	if !slices.IsSortedFunc(members, byName) {
		members = slices.Clone(members)
		slices.SortFunc(members, byName)
	}
	size := 2
	for _, m := range members {
		size += len(m.Name) + len(m.Value) + 8
	}
	out := append(make([]byte, 0, size), '{')
	for i, m := range members {
		if i > 0 {
			if m.Name == members[i-1].Name {
				panic("gatehouse: ObjectJSON has two members named " + Quote(m.Name))
			}
			out = append(out, ',')
		}
		out = append(appendString(out, m.Name), ':')
		out = m.Value.appendTo(out)
	}
	return JSON(append(out, '}'))
}

// ArrayJSON returns the canonical form of an array. The values must be canonical;
// an absent value becomes null.
func ArrayJSON(values ...JSON) JSON {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = v.appendTo(out)
	}
	return JSON(append(out, ']'))
}

func (j JSON) appendTo(out []byte) []byte {
	if j == "" {
		return append(out, "null"...)
	}
	return append(out, j...)
}

func appendString(out []byte, s string) []byte {
	out = append(out, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		out = append(out, s[start:i]...)
		r, size := utf8.DecodeRuneInString(s[i:])
		out = appendRune(out, r)
		i += size
		start = i
	}
	return append(append(out, s[start:]...), '"')
}

// unescape returns the text inside a canonical string's quotes, unescaped; b itself
// when it has no escapes.
func unescape(b []byte) []byte {
	i := bytes.IndexByte(b, '\\')
	if i < 0 {
		return b
	}
	out := append(make([]byte, 0, len(b)), b[:i]...)
	for i < len(b) {
		c := b[i]
		i++
		if c != '\\' || i == len(b) {
			out = append(out, c)
			continue
		}
		c = b[i]
		i++
		if k := strings.IndexByte("bfnrt", c); k >= 0 {
			c = "\b\f\n\r\t"[k]
		} else if r, ok := hex4(b, i-2); ok {
			c = byte(r) // canonical, so below 0x20
			i += 4
		}
		out = append(out, c)
	}
	return out
}

// each calls fn for the members or elements of a canonical value until fn returns
// false. Names are passed as written, without their quotes.
func (j JSON) each(open, end byte, fn func(name, value string) bool) error {
	s := string(j)
	if len(s) < 2 || s[0] != open || s[len(s)-1] != end {
		return errNotCanonical
	}
	if len(s) == 2 {
		return nil
	}
	for i := 1; i < len(s); i++ {
		var name string
		if open == '{' {
			stop, ok := skipString(s, i)
			if !ok || stop >= len(s) || s[stop] != ':' {
				return errNotCanonical
			}
			name, i = s[i+1:stop-1], stop+1
		}
		start := i
		i = skipValue(s, i)
		if i == start || i >= len(s) || (s[i] != ',' && i != len(s)-1) {
			return errNotCanonical
		}
		if !fn(name, s[start:i]) {
			return nil
		}
	}
	return nil
}

// skipString returns the index after the string at i.
func skipString(s string, i int) (int, bool) {
	if i >= len(s) || s[i] != '"' {
		return i, false
	}
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true
		}
	}
	return i, false
}

// skipValue returns the index after the value at i of a canonical text.
func skipValue(s string, i int) int {
	for depth := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			stop, ok := skipString(s, i)
			if !ok {
				return len(s)
			}
			i = stop - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// Equal compares two values, numbers by value and exactly: 1.0 equals 1.00.
func (j JSON) Equal(k JSON) bool {
	if j == k {
		return true
	}
	if x, ok := j.Number(); ok {
		y, ok := k.Number()
		return ok && x.Cmp(y) == 0
	}
	if x, err := j.Elements(); err == nil {
		y, err := k.Elements()
		return err == nil && slices.EqualFunc(x, y, JSON.Equal)
	}
	x, errX := j.Fields()
	y, errY := k.Fields()
	// Both are in canonical order.
	return errX == nil && errY == nil && slices.EqualFunc(x, y, func(a, b Member) bool {
		return a.Name == b.Name && a.Value.Equal(b.Value)
	})
}

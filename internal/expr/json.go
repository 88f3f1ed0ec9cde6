package expr

import (
	"errors"
	"fmt"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/gatehouse-dev/gatehouse"
)

// ErrTooLarge is the error of [ToJSON] for a value longer than its limit.
var ErrTooLarge = errors.New("the value is too large")

// ToJSON encodes a value as JSON of at most limit bytes. A value that came from
// JSON keeps its original text. A computed number is written with all its
// digits, a time as in RFC 3339, a duration like "1h30m".
func ToJSON(v ref.Val, limit int) (gatehouse.JSON, error) {
	w := writer{left: limit}
	return w.value(v, 0)
}

// writer counts what it has written, so that a list with many copies of a large
// value is refused before it is built.
type writer struct{ left int }

func (w *writer) take(j gatehouse.JSON) (gatehouse.JSON, error) {
	return j, w.count(len(j))
}

func (w *writer) count(n int) error {
	if w.left -= n; w.left < 0 {
		return ErrTooLarge
	}
	return nil
}

func (w *writer) value(v ref.Val, depth int) (gatehouse.JSON, error) {
	if depth > gatehouse.MaxDepth {
		return "", fmt.Errorf("the value is nested deeper than %d", gatehouse.MaxDepth)
	}
	switch v := v.(type) {
	case *Object:
		return w.take(v.text)
	case *list:
		return w.take(v.text)
	case Number:
		j, err := v.json()
		if err != nil {
			return "", err
		}
		return w.take(j)
	case types.String:
		return w.take(gatehouse.StringJSON(string(v)))
	case types.Bool:
		if v {
			return w.take("true")
		}
		return w.take("false")
	case types.Int:
		return w.take(gatehouse.JSON(fmt.Sprint(int64(v))))
	case types.Uint:
		return w.take(gatehouse.JSON(fmt.Sprint(uint64(v))))
	case types.Null:
		return w.take("null")
	case types.Timestamp:
		return w.take(gatehouse.StringJSON(v.UTC().Format(time.RFC3339Nano)))
	case types.Duration:
		return w.take(gatehouse.StringJSON(gatehouse.Duration(v.Duration).String()))
	case traits.Mapper:
		return w.object(v, depth)
	case traits.Lister:
		return w.array(v, depth)
	case *types.Err:
		return "", v
	}
	return "", fmt.Errorf("a value of type %s cannot be JSON", TypeName(v))
}

func (w *writer) object(m traits.Mapper, depth int) (gatehouse.JSON, error) {
	if err := w.count(2); err != nil {
		return "", err
	}
	var members []gatehouse.Member
	seen := make(map[string]bool)
	for it := m.Iterator(); it.HasNext() == types.True; {
		key, ok := it.Next().(types.String)
		if !ok {
			return "", errors.New("the name of an object's member must be text")
		}
		if seen[string(key)] {
			return "", fmt.Errorf("%s appears twice in an object", gatehouse.Quote(string(key)))
		}
		seen[string(key)] = true
		if err := w.count(len(gatehouse.StringJSON(string(key))) + 1 + min(1, len(members))); err != nil {
			return "", err
		}
		v, err := w.value(m.Get(key), depth+1)
		if err != nil {
			return "", err
		}
		members = append(members, gatehouse.Member{Name: string(key), Value: v})
	}
	return gatehouse.ObjectJSON(members...), nil
}

func (w *writer) array(l traits.Lister, depth int) (gatehouse.JSON, error) {
	if err := w.count(2); err != nil {
		return "", err
	}
	var elements []gatehouse.JSON
	for it := l.Iterator(); it.HasNext() == types.True; {
		if err := w.count(min(1, len(elements))); err != nil {
			return "", err
		}
		v, err := w.value(it.Next(), depth+1)
		if err != nil {
			return "", err
		}
		elements = append(elements, v)
	}
	return gatehouse.ArrayJSON(elements...), nil
}

// json returns the number's own text if that is JSON, as for every number that
// came from JSON; dec("007") and the like are normalized.
func (n Number) json() (gatehouse.JSON, error) {
	if err := gatehouse.CheckJSON([]byte(n)); err == nil {
		return gatehouse.JSON(n), nil
	}
	plain := gatehouse.JSON(n.Dec().Add("0"))
	if len(plain) > gatehouse.MaxNumberChars {
		return "", fmt.Errorf("a computed number has more than %d characters", gatehouse.MaxNumberChars)
	}
	return plain, nil
}

// Text converts a scalar for insertion into text: a string stays unchanged, a number
// keeps its digits. Lists, objects and null are errors.
func Text(v ref.Val) (string, error) {
	switch v := v.(type) {
	case types.String:
		return string(v), nil
	case types.Null:
		return "", errors.New("null cannot be inserted into text")
	case traits.Mapper, traits.Lister:
		return "", fmt.Errorf("a %s cannot be inserted into text; json(…) converts it", TypeName(v))
	}
	j, err := ToJSON(v, gatehouse.MaxTextBytes)
	if err != nil {
		return "", err
	}
	if s, ok := j.Text(); ok {
		return s, nil
	}
	return string(j), nil
}

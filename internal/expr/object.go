package expr

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/gatehouse-dev/gatehouse"
)

// ToValue converts a JSON value to a CEL value. Objects are parsed only on
// access, one level at a time.
func ToValue(j gatehouse.JSON) ref.Val {
	if j == "" {
		return types.NullValue
	}
	switch j[0] {
	case '{':
		return &Object{text: j}
	case '[':
		elements, err := j.Elements()
		if err != nil {
			return types.NewErr("a list cannot be read: %v", err)
		}
		values := make([]ref.Val, len(elements))
		for i, e := range elements {
			values[i] = ToValue(e)
		}
		return &list{types.NewRefValList(types.DefaultTypeAdapter, values), j}
	case '"':
		s, ok := j.Text()
		if !ok {
			return types.NewErr("a string cannot be read")
		}
		return types.String(s)
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	}
	n, ok := j.Number()
	if !ok {
		return types.NewErr("a number is out of range")
	}
	return Number(n)
}

// list is a JSON array as a CEL list. It keeps its text for ToJSON, and to compute
// the cost of comparisons.
type list struct {
	traits.Lister
	text gatehouse.JSON
}

// Equal implements ref.Val.
func (l *list) Equal(other ref.Val) ref.Val { return equalLists(l, other) }

// Object is a JSON object as a CEL map. It must be used for one evaluation in
// one goroutine.
type Object struct {
	text    gatehouse.JSON
	read    bool
	members []gatehouse.Member
	index   map[string]int // into members; nil while there are few
	values  map[string]ref.Val
	err     error
}

// NewObject returns an object for a canonical JSON text.
func NewObject(text gatehouse.JSON) *Object { return &Object{text: text} }

func (o *Object) load() {
	if o.read {
		return
	}
	o.read = true
	o.members, o.err = o.text.Fields()
	o.values = make(map[string]ref.Val)
	if len(o.members) > 16 {
		o.index = make(map[string]int, len(o.members))
		for i, m := range o.members {
			o.index[m.Name] = i
		}
	}
}

func (o *Object) member(name string) (gatehouse.JSON, bool) {
	if o.index != nil {
		i, ok := o.index[name]
		if !ok {
			return "", false
		}
		return o.members[i].Value, true
	}
	for _, m := range o.members {
		if m.Name == name {
			return m.Value, true
		}
	}
	return "", false
}

// Find implements traits.Mapper.
func (o *Object) Find(key ref.Val) (ref.Val, bool) {
	o.load()
	if o.err != nil {
		return types.NewErr("an object cannot be read: %v", o.err), false
	}
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	if v, ok := o.values[string(name)]; ok {
		return v, true
	}
	text, ok := o.member(string(name))
	if !ok {
		return nil, false
	}
	v := ToValue(text)
	o.values[string(name)] = v
	return v, true
}

// Get implements traits.Indexer.
func (o *Object) Get(key ref.Val) ref.Val { return get(o, key) }

// Contains implements traits.Container.
func (o *Object) Contains(key ref.Val) ref.Val { return containsKey(o, key) }

// Size implements traits.Sizer.
func (o *Object) Size() ref.Val {
	o.load()
	if o.err != nil {
		return types.NewErr("an object cannot be read: %v", o.err)
	}
	return types.Int(len(o.members))
}

// Iterator implements traits.Iterable over the names in canonical order.
func (o *Object) Iterator() traits.Iterator {
	o.load()
	names := make([]string, len(o.members))
	for i, m := range o.members {
		names[i] = m.Name
	}
	return types.NewStringList(types.DefaultTypeAdapter, names).Iterator()
}

// Equal implements ref.Val.
func (o *Object) Equal(other ref.Val) ref.Val { return equalMaps(o, other) }

// Type implements ref.Val.
func (*Object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *Object) Value() any { return o.text }

// ConvertToType implements ref.Val.
func (o *Object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("an object cannot become %s", t.TypeName())
}

// ConvertToNative implements ref.Val.
func (o *Object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("an object cannot become %s", t)
}

package expr

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// lazyMap is a map whose values are computed on access.
type lazyMap struct {
	names []string
	find  func(name string) (ref.Val, bool)
}

var _ traits.Mapper = (*lazyMap)(nil)

// Find implements traits.Mapper.
func (m *lazyMap) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	v, found := m.find(string(name))
	if !found {
		return nil, false
	}
	return v, true
}

// Get implements traits.Indexer.
func (m *lazyMap) Get(key ref.Val) ref.Val { return get(m, key) }

// Contains implements traits.Container.
func (m *lazyMap) Contains(key ref.Val) ref.Val { return containsKey(m, key) }

// Size implements traits.Sizer.
func (m *lazyMap) Size() ref.Val { return types.Int(len(m.names)) }

// Iterator implements traits.Iterable.
func (m *lazyMap) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, m.names).Iterator()
}

// Equal implements ref.Val.
func (m *lazyMap) Equal(other ref.Val) ref.Val { return equalMaps(m, other) }

// Type implements ref.Val.
func (*lazyMap) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (m *lazyMap) Value() any { return m.names }

// ConvertToType implements ref.Val.
func (m *lazyMap) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return m
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("a map cannot become %s", t.TypeName())
}

// ConvertToNative implements ref.Val.
func (m *lazyMap) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a map cannot become %s", t)
}

// NewMap returns a map whose values are found on access; names lists its keys
// for iteration. It must be used for one evaluation only.
func NewMap(names []string, find func(name string) (ref.Val, bool)) ref.Val {
	return &lazyMap{names: names, find: find}
}

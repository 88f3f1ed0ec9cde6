package expr

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// equal compares like CEL's ==, but numbers by value on either side. A number
// compared with a string or a boolean is an error, not false: the rule was
// written for data of another shape.
func equal(a, b ref.Val) ref.Val {
	if types.IsUnknownOrError(a) {
		return a
	}
	if types.IsUnknownOrError(b) {
		return b
	}
	if n, ok := operand(a); ok {
		return equalNumber(n, b)
	}
	if n, ok := operand(b); ok {
		return equalNumber(n, a)
	}
	switch a := a.(type) {
	case traits.Mapper:
		return equalMaps(a, b)
	case traits.Lister:
		return equalLists(a, b)
	}
	return types.Equal(a, b)
}

func equalNumber(n Number, other ref.Val) ref.Val {
	switch other.(type) {
	case Number, types.Int, types.Uint:
		return n.Equal(other)
	case types.Null, traits.Mapper, traits.Lister:
		return types.False
	}
	return mismatch("compare", n, other)
}

func equalMaps(a traits.Mapper, other ref.Val) ref.Val {
	b, ok := other.(traits.Mapper)
	if !ok {
		return types.False
	}
	for _, m := range []traits.Mapper{a, b} {
		if size := m.Size(); types.IsUnknownOrError(size) {
			return size
		}
	}
	if a.Size() != b.Size() {
		return types.False
	}
	for it := a.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		v, _ := a.Find(key)
		w, found := b.Find(key)
		if !found {
			return types.False
		}
		if eq := equal(v, w); eq != types.True {
			return eq
		}
	}
	return types.True
}

func equalLists(a traits.Lister, other ref.Val) ref.Val {
	b, ok := other.(traits.Lister)
	if !ok {
		return types.False
	}
	if a.Size() != b.Size() {
		return types.False
	}
	for i := types.Int(0); i < a.Size().(types.Int); i++ {
		if eq := equal(a.Get(i), b.Get(i)); eq != types.True {
			return eq
		}
	}
	return types.True
}

func notEqual(a, b ref.Val) ref.Val {
	eq := equal(a, b)
	if is, ok := eq.(types.Bool); ok {
		return !is
	}
	return eq
}

// get returns the value of a key, for the Get of a map.
func get(m traits.Mapper, key ref.Val) ref.Val {
	v, found := m.Find(key)
	if !found && v == nil {
		return types.NewErr("no such key: %v", key.Value())
	}
	return v
}

// containsKey reports whether a map has a key, for the Contains of a map.
func containsKey(m traits.Mapper, key ref.Val) ref.Val {
	v, found := m.Find(key)
	if v != nil && types.IsUnknownOrError(v) {
		return v
	}
	return types.Bool(found)
}

// contains is CEL's in, except that an element that cannot be compared is an
// error, even when another element is equal.
func contains(elem, container ref.Val) ref.Val {
	switch c := container.(type) {
	case traits.Mapper:
		return c.Contains(elem)
	case traits.Lister:
		found := types.False
		for i := types.Int(0); i < c.Size().(types.Int); i++ {
			switch eq := equal(elem, c.Get(i)); eq {
			case types.True:
				found = types.True
			case types.False:
			default:
				return eq
			}
		}
		return found
	}
	return types.MaybeNoSuchOverloadErr(container)
}

// has is CEL's has() on a map. On other values it is an error, where CEL
// sometimes returns false.
func has(operand, field ref.Val) ref.Val {
	m, ok := operand.(traits.Mapper)
	if !ok {
		return types.NewErr("has: a value of type %s has no fields", TypeName(operand))
	}
	return m.Contains(field)
}

// ordered returns a comparison operator. holds reports whether the operator is true
// for a result of Compare: -1, 0 or 1.
func ordered(holds func(sign types.Int) bool) func(a, b ref.Val) ref.Val {
	return func(a, b ref.Val) ref.Val {
		if n, ok := b.(Number); ok {
			m, ok := operand(a)
			if !ok {
				return mismatch("compare", a, b)
			}
			return types.Bool(holds(types.Int(m.Dec().Cmp(n.Dec()))))
		}
		c, ok := a.(traits.Comparer)
		if !ok {
			return mismatch("compare", a, b)
		}
		sign, ok := c.Compare(b).(types.Int)
		if !ok {
			return mismatch("compare", a, b)
		}
		return types.Bool(holds(sign))
	}
}

// lift converts the left operand to a number if the right operand is a number.
func lift(a, b ref.Val) ref.Val {
	if _, ok := b.(Number); ok {
		if m, ok := operand(a); ok {
			return m
		}
	}
	return a
}

func add(a, b ref.Val) ref.Val {
	if x, ok := lift(a, b).(traits.Adder); ok {
		return x.Add(b)
	}
	return mismatch("add", a, b)
}

func subtract(a, b ref.Val) ref.Val {
	if x, ok := lift(a, b).(traits.Subtractor); ok {
		return x.Subtract(b)
	}
	return mismatch("subtract", a, b)
}

func multiply(a, b ref.Val) ref.Val {
	if x, ok := lift(a, b).(traits.Multiplier); ok {
		return x.Multiply(b)
	}
	return mismatch("multiply", a, b)
}

func negate(v ref.Val) ref.Val {
	if x, ok := v.(traits.Negater); ok {
		return x.Negate()
	}
	return types.MaybeNoSuchOverloadErr(v)
}

func size(v ref.Val) ref.Val {
	s, ok := v.(traits.Sizer)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	return s.Size()
}

// toText is string(); for a number, its digits as written.
func toText(v ref.Val) ref.Val { return v.ConvertToType(types.StringType) }

// toDec is dec(): it converts a number, an integer or a string to a number.
func toDec(v ref.Val) ref.Val {
	if types.IsUnknownOrError(v) {
		return v
	}
	n, err := ToNumber(v)
	if err != nil {
		return types.NewErr("dec: %v", err)
	}
	return n
}

func absolute(v ref.Val) ref.Val {
	n, ok := operand(v)
	if !ok {
		return types.NewErr("abs: a value of type %s is not a number; dec(…) converts a string to a number", TypeName(v))
	}
	return Number(n.Dec().Abs())
}

// sum adds the numbers of a list; elements may be strings, as for dec().
func sum(v ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	total := ref.Val(Number("0"))
	i := 0
	for it := list.Iterator(); it.HasNext() == types.True; i++ {
		n, err := ToNumber(it.Next())
		if err != nil {
			return types.NewErr("sum: element %d: %v", i, err)
		}
		total = total.(Number).Add(n)
		if types.IsError(total) {
			return total
		}
	}
	return total
}

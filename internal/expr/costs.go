package expr

import (
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// costs gives CEL the cost of the core's functions; a function that is not
// listed costs one. Ten bytes of text cost one, as for CEL's own functions.
func costs(more map[string]cost.FunctionTracker) []cost.TrackerOption {
	both := func(args []ref.Val, _ ref.Val) *uint64 {
		n := 1 + min(Weight(args[0]), Weight(args[1]))
		return &n
	}
	total := func(args []ref.Val, _ ref.Val) *uint64 {
		n := 1 + scalarWeight(args[0]) + scalarWeight(args[1])
		return &n
	}
	first := func(args []ref.Val, _ ref.Val) *uint64 {
		n := 1 + Weight(args[0])
		return &n
	}
	scalar := func(args []ref.Val, _ ref.Val) *uint64 {
		n := 1 + scalarWeight(args[0])
		return &n
	}
	container := func(args []ref.Val, _ ref.Val) *uint64 {
		n := uint64(1)
		if _, ok := args[1].(traits.Lister); ok {
			n += Weight(args[1])
		}
		return &n
	}
	var options []cost.TrackerOption
	for name, fn := range map[string]cost.FunctionTracker{
		"@eq": both, "@ne": both, "@contains": container,
		"@lt": both, "@le": both, "@gt": both, "@ge": both,
		"@add": total, "@sub": total, "@mul": total,
		"dec_dyn": scalar, "abs_dyn": scalar, "sum_list": first, "@size": scalar,
	} {
		options = append(options, cost.OverloadTracker(name, fn))
	}
	for name, fn := range more {
		options = append(options, cost.OverloadTracker(name, fn))
	}
	return options
}

// scalarWeight is the weight of a string or number, and 0 for other values:
// adding or measuring lists and maps does not walk them.
func scalarWeight(v ref.Val) uint64 {
	switch v.(type) {
	case types.String, Number:
		return Weight(v)
	}
	return 0
}

// Weight estimates the cost of walking a value.
func Weight(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 10
	case Number:
		return uint64(len(v)) / 10
	case *Object:
		return uint64(len(v.text)) / 2 // an upper bound on the number of values
	case *list:
		return uint64(len(v.text)) / 2
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok {
			return uint64(n)
		}
	}
	return 1
}

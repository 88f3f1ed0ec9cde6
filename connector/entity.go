package connector

import (
	"iter"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// namedAtMost bounds the names that an error lists.
const namedAtMost = 8

// UnknownEntity returns the error text for an unknown entity type, with the known
// ones.
func UnknownEntity(name string, known iter.Seq[string]) string {
	return gatehouse.Quote(name) + " is not among the entities of this connector: " + Names(known)
}

// Names lists names in order, cut off when there are too many.
func Names(known iter.Seq[string]) string {
	names := slices.Compact(slices.Sorted(known))
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	if len(names) > namedAtMost {
		names = append(names[:namedAtMost], "…")
	}
	return strings.Join(names, ", ")
}

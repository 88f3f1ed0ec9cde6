package connector

import (
	"iter"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// namedEntities is how many entity types an error lists.
const namedEntities = 8

// UnknownEntity says that a connector has no entity type of this name, and lists
// those that it has.
func UnknownEntity(name string, known iter.Seq[string]) string {
	names := slices.Sorted(known)
	if len(names) > namedEntities {
		names = append(names[:namedEntities], "…")
	}
	return gatehouse.Quote(name) + " is not among the entities of this connector: " + strings.Join(names, ", ")
}

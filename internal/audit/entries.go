package audit

import (
	"context"
	"fmt"
	"iter"

	"github.com/gatehouse-dev/gatehouse"
)

// EntriesUpTo walks the log from its beginning to the size of a head; entries
// that are added meanwhile belong to a later head. After each page, it calls
// progress with the number of entries read so far.
func EntriesUpTo(
	ctx context.Context, api gatehouse.AuditService, size int64, progress func(done int64),
) iter.Seq2[*gatehouse.Entry, error] {
	return func(yield func(*gatehouse.Entry, error) bool) {
		for from := int64(0); from < size; {
			entries, err := api.ListEntries(ctx, from, gatehouse.MaxLimit)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(entries) == 0 {
				return // the verifier counts what is missing
			}
			for _, e := range entries {
				if e.Index >= size {
					progress(from)
					return
				}
				if e.Index < from {
					yield(nil, fmt.Errorf("the server returned entry %d to a request for entries from %d", e.Index, from))
					return
				}
				if !yield(e, nil) {
					return
				}
				from = e.Index + 1
			}
			progress(from)
		}
	}
}

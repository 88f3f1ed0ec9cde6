package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// BreakerSentence describes a breaker that is not closed.
func BreakerSentence(b gatehouse.BreakerState) string {
	var s strings.Builder
	fmt.Fprintf(&s, "connector %s: no calls, since too many in a row have failed", b.Connector)
	if b.ErrorCode != "" {
		fmt.Fprintf(&s, " (%d, the last with %s)", b.Failures, b.ErrorCode)
	}
	if b.Waiting > 0 {
		n := fmt.Sprint(b.Waiting)
		if b.Waiting >= gatehouse.MaxLimit {
			n = "at least " + n
		}
		fmt.Fprintf(&s, "; %s waiting, without losing an attempt", n)
	}
	if b.NextTrialAt != nil {
		fmt.Fprintf(&s, "; the next trial is at %s", b.NextTrialAt.UTC().Format(time.RFC3339))
	}
	return s.String()
}

// warnBreakers logs, at the start, the breakers that are not closed.
func (n *Node) warnBreakers(ctx context.Context) {
	open, err := n.Gate.OpenBreakers(ctx)
	if err != nil && ctx.Err() == nil {
		n.Log.ErrorContext(ctx, "the state of the breakers cannot be read", "error", err)
	}
	for _, tenant := range slices.Sorted(maps.Keys(open)) {
		for _, b := range open[tenant] {
			n.Log.WarnContext(ctx, BreakerSentence(b), "tenant", tenant)
		}
	}
}

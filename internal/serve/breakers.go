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
	fmt.Fprintf(&s, "connector %s: no calls", b.Connector)
	if b.Since != nil {
		fmt.Fprintf(&s, " since %s", b.Since.UTC().Format(time.RFC3339))
	}
	if b.Cause != "" {
		s.WriteString(": " + b.Cause)
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

// warnBreakers logs, at the start, the breakers that are not closed, and returns a sentence
// for each.
func (n *Node) warnBreakers(ctx context.Context) (sentences []string) {
	open, err := n.Gate.OpenBreakers(ctx)
	if err != nil && ctx.Err() == nil {
		n.Log.ErrorContext(ctx, "the state of the breakers cannot be read", "error", err)
	}
	for _, tenant := range slices.Sorted(maps.Keys(open)) {
		for _, b := range open[tenant] {
			sentence := BreakerSentence(b)
			n.Log.WarnContext(ctx, sentence, "tenant", tenant)
			sentences = append(sentences, sentence)
		}
	}
	return sentences
}

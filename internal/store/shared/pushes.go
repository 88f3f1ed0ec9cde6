package shared

import (
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// PushBound returns the values to which a cursor of pushes is bound.
func PushBound(tenant string, f gatehouse.PushFilter) []string {
	bound := []string{tenant, string(f.Status)}
	if f.DeadLetters || f.Connector != "" || f.Code != "" || !f.Since.IsZero() {
		bound = append(bound, strconv.FormatBool(f.DeadLetters), f.Connector, f.Code,
			strconv.FormatInt(f.Since.UnixMicro(), 10))
	}
	return BoundToReader(bound, f.ReadBy)
}

// ByDueTime orders pushes by the time at which they can be claimed.
func ByDueTime(a, b *gatehouse.Push) int { return dueTime(a).Compare(dueTime(b)) }

func dueTime(p *gatehouse.Push) time.Time {
	if p.NextAttempt != nil && p.NextAttempt.After(p.NotBefore) {
		return *p.NextAttempt
	}
	return p.NotBefore
}

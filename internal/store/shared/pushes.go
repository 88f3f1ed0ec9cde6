package shared

import (
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// PushFilterKey returns the values to which a cursor is bound besides tenant and status; nil for
// none.
func PushFilterKey(f gatehouse.PushFilter) []string {
	if !f.DeadLetters && f.Connector == "" && f.Code == "" && f.Since.IsZero() {
		return nil
	}
	return []string{strconv.FormatBool(f.DeadLetters), f.Connector, f.Code, strconv.FormatInt(f.Since.UnixMicro(), 10)}
}

// ByDueTime orders pushes by the time at which they can be claimed.
func ByDueTime(a, b *gatehouse.Push) int { return dueTime(a).Compare(dueTime(b)) }

func dueTime(p *gatehouse.Push) time.Time {
	if p.NextAttempt != nil && p.NextAttempt.After(p.NotBefore) {
		return *p.NextAttempt
	}
	return p.NotBefore
}

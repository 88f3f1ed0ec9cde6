package shared

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// PushFilterKey is what a cursor is bound to beside tenant and status; empty
// where the filter has no more.
func PushFilterKey(f gatehouse.PushFilter) []string {
	if !f.DeadLetters && f.Connector == "" && f.Code == "" && f.Since.IsZero() {
		return nil
	}
	return []string{strconv.FormatBool(f.DeadLetters), f.Connector, f.Code, strconv.FormatInt(f.Since.UnixMicro(), 10)}
}

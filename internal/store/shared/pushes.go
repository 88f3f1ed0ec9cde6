package shared

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// PushFilterKey returns what a cursor is bound to besides tenant and status;
// nil when the filter has nothing else.
func PushFilterKey(f gatehouse.PushFilter) []string {
	if !f.DeadLetters && f.Connector == "" && f.Code == "" && f.Since.IsZero() {
		return nil
	}
	return []string{strconv.FormatBool(f.DeadLetters), f.Connector, f.Code, strconv.FormatInt(f.Since.UnixMicro(), 10)}
}

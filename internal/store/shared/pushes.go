package shared

import (
	"strconv"

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

package connector

import (
	"encoding/hex"
	"strings"
	"time"
)

// ProposedAt returns the time in the action's id, whose first 48 bits count
// milliseconds (UUID version 7, RFC 9562, section 5.7): a lower bound when
// searching for the effect. It is zero for an id of another form.
func (c Call) ProposedAt() time.Time {
	b, err := hex.DecodeString(strings.TrimPrefix(c.ActionID, "act_"))
	if err != nil || len(b) != 16 || b[6]>>4 != 7 {
		return time.Time{}
	}
	var ms int64
	for _, x := range b[:6] {
		ms = ms<<8 | int64(x)
	}
	return time.UnixMilli(ms)
}

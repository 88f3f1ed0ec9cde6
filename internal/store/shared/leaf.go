package shared

import (
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"github.com/gatehouse-dev/gatehouse"
)

// CompleteLeaf fills in a leaf's missing time and id.
func CompleteLeaf(l *gatehouse.Leaf, now time.Time) error {
	if l.At.IsZero() {
		l.At = now
	}
	if l.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		l.ID = "evt_" + hex.EncodeToString(id[:])
	}
	return nil
}

// LeafBody returns the canonical JSON of a leaf, byte for byte what
// gatehouse.MustJSON returns, at a tenth of the cost: members in name order,
// empty optional members left out.
func LeafBody(l *gatehouse.Leaf) string {
	b := make([]byte, 0, 384+len(l.Data))
	b = append(b, '{')
	optional := func(name, value string) {
		if value != "" {
			b = append(b, name...)
			b = AppendQuoted(b, value)
			b = append(b, ',')
		}
	}
	optional(`"action_id":`, l.ActionID)
	b = append(b, `"actor":`...)
	b = AppendQuoted(b, l.Actor)
	b = append(b, `,"at":"`...)
	b = l.At.AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"', ',')
	if l.Data != "" {
		b = append(b, `"data":`...)
		b = append(b, l.Data...)
		b = append(b, ',')
	}
	optional(`"digest":`, string(l.Digest))
	optional(`"from":`, l.From)
	b = append(b, `"id":`...)
	b = AppendQuoted(b, l.ID)
	b = append(b, `,"subject":`...)
	b = AppendQuoted(b, l.Subject)
	b = append(b, `,"tenant":`...)
	b = AppendQuoted(b, l.Tenant)
	b = append(b, ',')
	optional(`"to":`, l.To)
	b = append(b, `"type":`...)
	b = AppendQuoted(b, l.Type)
	return string(append(b, '}'))
}

package feed

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
)

// The headers from which the feed reads its position.
const (
	// HeaderIndex is the entry's index in its tenant's log.
	HeaderIndex = "Gatehouse-Index"
	// HeaderLeafHash is the leaf_hash of the entry, in Base64.
	HeaderLeafHash = "Gatehouse-Leaf-Hash"
)

// contentType is the content type of a structured CloudEvent.
const contentType = "application/cloudevents+json; charset=utf-8"

// leaf holds the fields of a leaf that determine a message's id.
type leaf struct {
	ID   string         `json:"id"`
	Type string         `json:"type"`
	Data gatehouse.JSON `json:"data"`
}

// message builds the message of an entry. Its data is the entry as in GET
// /audit/entries, with the leaf byte for byte.
func message(prefix, tenant string, e *gatehouse.Entry) (*nats.Msg, error) {
	event, err := e.CloudEvent(tenant)
	if err != nil {
		return nil, err
	}
	id, err := entryID(e)
	if err != nil {
		return nil, err
	}
	hash, err := e.LeafHash.MarshalText()
	if err != nil {
		return nil, err
	}
	m := nats.NewMsg(tenantSubject(prefix, tenant) + typeTokens(event.Type))
	m.Data = event.Body
	m.Header.Set("Content-Type", contentType)
	m.Header.Set(jetstream.MsgIDHeader, id)
	m.Header.Set(HeaderIndex, strconv.FormatInt(e.Index, 10))
	m.Header.Set(HeaderLeafHash, string(hash))
	return m, nil
}

// entryID is the message id of an entry.
func entryID(e *gatehouse.Entry) (string, error) {
	var l leaf
	err := json.Unmarshal([]byte(e.Body), &l)
	return messageID(&l), err
}

// messageID is the id by which the server detects a repeated message: the id of
// the approval for a decision, since an approval has only one decision; the id of
// the leaf for any other entry.
func messageID(l *leaf) string {
	if l.Type == "hitl.approved" || l.Type == "hitl.rejected" {
		var data struct {
			Approval string `json:"approval"`
		}
		if l.Data != "" && json.Unmarshal([]byte(l.Data), &data) == nil && data.Approval != "" {
			return "approval:" + data.Approval
		}
	}
	return l.ID
}

// tenantSubject returns the prefix of all subjects of a tenant's events,
// including the final dot. The tenant is one token: its dots are written as
// %2E, and no tenant's name contains %.
func tenantSubject(prefix, tenant string) string {
	return prefix + ".events." + token(tenant) + "."
}

// typeTokens keeps the dots of a type: hitl.approved is two tokens.
func typeTokens(eventType string) string {
	tokens := strings.Split(eventType, ".")
	for i, t := range tokens {
		tokens[i] = token(t)
	}
	return strings.Join(tokens, ".")
}

// token encodes any string as one token of a subject. It escapes characters
// with a meaning in NATS, white space, control characters and everything beyond
// ASCII.
func token(s string) string {
	if s == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ', c >= 0x7f, c == '.', c == '*', c == '>', c == '%':
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

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

// The headers that the feed reads its position from.
const (
	// HeaderIndex is the entry's index in its tenant's log.
	HeaderIndex = "Gatehouse-Index"
	// HeaderLeafHash commits to the entry: base64, as in its leaf_hash.
	HeaderLeafHash = "Gatehouse-Leaf-Hash"
)

// contentType is that of a structured CloudEvent.
const contentType = "application/cloudevents+json; charset=utf-8"

// leaf is what an event's attributes are made of.
type leaf struct {
	ID       string         `json:"id"`
	At       string         `json:"at"`
	Type     string         `json:"type"`
	Subject  string         `json:"subject"`
	ActionID string         `json:"action_id"`
	Data     gatehouse.JSON `json:"data"`
}

// cloudEvent has the attributes of CloudEvents 1.0, in JSON; data follows.
type cloudEvent struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            string `json:"type"`
	Subject         string `json:"subject,omitempty"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	Tenant          string `json:"tenant"`
	ActionID        string `json:"actionid,omitempty"`
}

// message makes the message of an entry. The data is the entry as
// GET /audit/entries gives it, its leaf byte for byte.
func message(prefix, tenant string, e *gatehouse.Entry) (*nats.Msg, error) {
	var l leaf
	if err := json.Unmarshal([]byte(e.Body), &l); err != nil {
		return nil, fmt.Errorf("feed: entry %d of %s: %w", e.Index, tenant, err)
	}
	attributes, err := json.Marshal(cloudEvent{
		SpecVersion: "1.0", ID: l.ID, Source: "gatehouse/" + tenant, Type: l.Type, Subject: l.Subject, Time: l.At,
		DataContentType: "application/json", Tenant: tenant, ActionID: l.ActionID,
	})
	if err != nil {
		return nil, err
	}
	hash, err := e.LeafHash.MarshalText()
	if err != nil {
		return nil, err
	}
	index := strconv.FormatInt(e.Index, 10)
	body := make([]byte, 0, len(attributes)+len(e.Body)+128)
	body = append(body, attributes[:len(attributes)-1]...)
	body = append(body, `,"data":{"index":`...)
	body = append(body, index...)
	body = append(body, `,"leaf":`...)
	body = append(body, e.Body...)
	body = append(body, `,"leaf_hash":"`...)
	body = append(body, hash...)
	body = append(body, `"}}`...)
	m := nats.NewMsg(tenantSubject(prefix, tenant) + typeTokens(l.Type))
	m.Data = body
	m.Header.Set("Content-Type", contentType)
	m.Header.Set(jetstream.MsgIDHeader, messageID(&l))
	m.Header.Set(HeaderIndex, index)
	m.Header.Set(HeaderLeafHash, string(hash))
	return m, nil
}

// entryID is the message id of an entry.
func entryID(e *gatehouse.Entry) (string, error) {
	var l leaf
	err := json.Unmarshal([]byte(e.Body), &l)
	return messageID(&l), err
}

// messageID is what the server knows a repeated message by: a decision by its
// approval, of which there is one decision, and anything else by its event.
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

// tenantSubject is what all subjects of a tenant's events begin with, with the
// dot at its end. A tenant is one token: its dots are written as %2E, and %
// stands in no tenant's name.
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

// token writes anything as one token of a subject: what NATS gives a meaning
// to, white space, control characters and all beyond ASCII are escaped.
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

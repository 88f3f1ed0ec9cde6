package gatehouse

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Event is an entry of a tenant's log as a CloudEvent.
type Event struct {
	// Index is the entry's number in the log.
	Index int64
	// ID, Type, Subject and ActionID are attributes of the event; ActionID is ""
	// where no action is concerned.
	ID, Type, Subject, ActionID string
	// Body is the event in the JSON format of CloudEvents 1.0. Its data is the
	// entry in the audit log's form, with the leaf byte for byte.
	Body []byte
}

// EventFilter selects the events of the caller's tenant.
type EventFilter struct {
	// After is the index of the last event that was read; nil starts with events
	// from now on.
	After *int64
	// Types are names of types; a name that ends in * matches every type with that
	// prefix. Empty matches all.
	Types []string
	// ActionID selects the events of one action; "" selects all.
	ActionID string
	// Wait is how long to wait for the first event, at most [MaxWait].
	Wait time.Duration
}

// EventPage is a batch of events, in the order of the log.
type EventPage struct {
	// Events may be empty although Last has advanced.
	Events []Event
	// Last is the index of the last log entry that was read, whether or not it
	// matched: the After of the next page.
	Last int64
}

// EventService reads the log as a stream of events.
type EventService interface {
	// ReadEvents returns the next events. An auditor reads the tenant's whole log;
	// other callers read the events of the actions and runs that they may read. The
	// page is empty when the wait is over, and, with Last advanced, when the filter or
	// the caller's rights leave out a whole batch of entries.
	ReadEvents(ctx context.Context, f EventFilter) (*EventPage, error)
}

// CloudEvent makes the event of a tenant's entry.
func (e *Entry) CloudEvent(tenant string) (*Event, error) {
	var l struct {
		ID       string `json:"id"`
		At       string `json:"at"`
		Type     string `json:"type"`
		Subject  string `json:"subject"`
		ActionID string `json:"action_id"`
	}
	if err := json.Unmarshal([]byte(e.Body), &l); err != nil {
		return nil, fmt.Errorf("gatehouse: entry %d of %s: %w", e.Index, tenant, err)
	}

	attributes, err := json.Marshal(struct {
		SpecVersion     string `json:"specversion"`
		ID              string `json:"id"`
		Source          string `json:"source"`
		Type            string `json:"type"`
		Subject         string `json:"subject,omitempty"`
		Time            string `json:"time"`
		DataContentType string `json:"datacontenttype"`
		Tenant          string `json:"tenant"`
		ActionID        string `json:"actionid,omitempty"`
	}{"1.0", l.ID, "gatehouse/" + tenant, l.Type, l.Subject, l.At, "application/json", tenant, l.ActionID})
	if err != nil {
		return nil, err
	}

	hash, err := e.LeafHash.MarshalText()
	if err != nil {
		return nil, err
	}

	body := make([]byte, 0, len(attributes)+len(e.Body)+128)
	body = append(body, attributes[:len(attributes)-1]...)
	body = append(body, `,"data":{"index":`...)
	body = strconv.AppendInt(body, e.Index, 10)
	body = append(body, `,"leaf":`...)
	body = append(body, e.Body...)
	body = append(body, `,"leaf_hash":"`...)
	body = append(body, hash...)
	body = append(body, `"}}`...)
	return &Event{Index: e.Index, ID: l.ID, Type: l.Type, Subject: l.Subject, ActionID: l.ActionID, Body: body}, nil
}

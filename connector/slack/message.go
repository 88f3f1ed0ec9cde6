package slack

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// eventType is the type of a posted message's metadata. Every app and member can read the metadata,
// so it contains nothing but the action's id.
const eventType = "gatehouse_action"

// metadata marks a message as posted by an action.
func metadata(call connector.Call) gatehouse.JSON {
	return gatehouse.ObjectJSON(
		gatehouse.Member{Name: "event_type", Value: gatehouse.StringJSON(eventType)},
		gatehouse.Member{Name: "event_payload", Value: gatehouse.ObjectJSON(
			gatehouse.Member{Name: "action_id", Value: gatehouse.StringJSON(call.ActionID)},
		)},
	)
}

// message is a message in Slack's form.
type message struct{ json gatehouse.JSON }

func (m message) text(name string) string {
	s, _ := rest.TextOf(m.json, name)
	return s
}

// postedBy reports whether the message carries the action's metadata.
func (m message) postedBy(call connector.Call) bool {
	mark, ok := m.json.Get("metadata")
	if !ok {
		return false
	}
	kind, _ := rest.TextOf(mark, "event_type")
	payload, _ := mark.Get("event_payload")
	id, _ := rest.TextOf(payload, "action_id")
	return kind == eventType && id == call.ActionID
}

// find reads a message. It returns false for there if Slack's answer does not contain the message, or is
// thread_not_found.
func (c *Connector) find(ctx context.Context, channel, ts string) (m message, there bool, failed *connector.Error) {
	// Unlike conversations.history, this method also finds replies in a thread.
	found, _, failed := c.list(ctx, "/conversations.replies", url.Values{
		"channel": {channel}, "ts": {ts}, "oldest": {ts}, "latest": {ts}, "inclusive": {"true"}, "limit": {"10"},
	})
	if failed != nil && failed.Code == "slack_thread_not_found" {
		return message{}, false, nil
	}
	for _, m := range found {
		if m.text("ts") == ts {
			return m, true, nil
		}
	}
	return message{}, false, failed
}

// maxPages limits the search for a posted message, in pages of 100.
const maxPages = 10

// posted searches for an action's message.
func (c *Connector) posted(ctx context.Context, call connector.Call) (m message, there bool, failed *connector.Error) {
	channel, _ := channelAndTimestamp(call)
	query := url.Values{"channel": {channel}, "include_all_metadata": {"true"}, "limit": {"100"}}
	if since := call.ProposedAt(); !since.IsZero() {
		query.Set("oldest", strconv.FormatInt(since.Add(-time.Minute).Unix(), 10)+".000000")
	}
	method := "/conversations.history"
	if thread, ok := rest.TextOf(call.ProposedChange, "thread_ts"); ok {
		method = "/conversations.replies"
		query.Set("ts", thread)
	}
	for range maxPages {
		found, next, failed := c.list(ctx, method, query)
		if failed != nil {
			return message{}, false, failed
		}
		for _, m := range found {
			if m.postedBy(call) {
				return m, true, nil
			}
		}
		if next == "" {
			return message{}, false, nil
		}
		query.Set("cursor", next)
	}
	return message{}, false, &connector.Error{
		Kind: connector.Terminal, Code: "too_many_messages",
		Detail: fmt.Sprintf("at most %d messages are searched for that of an earlier attempt", maxPages*100),
	}
}

// list asks for messages; next is the cursor of the next page.
func (c *Connector) list(
	ctx context.Context, method string, query url.Values,
) (found []message, next string, failed *connector.Error) {
	a, failed := c.api.Ask(ctx, http.MethodGet, method, query)
	if failed != nil {
		return nil, "", failed
	}
	doc, failed := parseAnswer(a)
	if failed != nil {
		if failed.Kind == connector.Ambiguous {
			failed.Kind = connector.Transient
		}
		return nil, "", failed
	}
	list, _ := doc.Get("messages")
	elements, err := list.Elements()
	if err != nil {
		return nil, "", &connector.Error{
			Kind:   connector.Transient,
			Code:   "check_failed",
			Detail: "the answer has no messages",
			Says:   a.Text(a.JSON()),
		}
	}
	for _, e := range elements {
		found = append(found, message{e})
	}
	if more, ok := doc.Get("response_metadata"); ok {
		next, _ = rest.TextOf(more, "next_cursor")
	}
	return found, next, nil
}

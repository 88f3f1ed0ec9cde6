package slack

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

const (
	// openTime limits opening a form, because its trigger expires after 3 seconds.
	openTime = 1500 * time.Millisecond
	// maxReason limits a reason, in characters.
	maxReason    = 2000
	formRejected = "gatehouse_reject"
	blockReason  = "reason"
)

// openForm asks for the reason of a rejection.
func (c *Channel) openForm(ctx context.Context, trigger string, s subject) error {
	metadata, err := json.Marshal(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	_, err = c.call(ctx, nil, "views.open", map[string]any{"trigger_id": trigger, "view": map[string]any{
		"type": "modal", "callback_id": formRejected, "private_metadata": string(metadata),
		"title": plain("Reject"), "submit": plain("Reject"), "close": plain("Cancel"),
		"blocks": []any{
			map[string]any{"type": "context", "elements": []any{plain(s.ActionID)}},
			map[string]any{
				"type": "input", "block_id": blockReason, "label": plain("Why? The proposer reads it."),
				"element": map[string]any{
					"type": "plain_text_input", "action_id": blockReason, "multiline": true, "max_length": maxReason,
				},
			},
		},
	}})
	return err
}

// wrongReason answers a form without a valid reason.
func wrongReason(why string) any {
	return map[string]any{"response_action": "errors", "errors": map[string]string{blockReason: why}}
}

// say tells one person something that nobody else sees: in the channel or, for a person outside of
// it, in a direct message from the app. link is the address of a page, "" for none.
func (c *Channel) say(ctx context.Context, slackChannel, user, text, link string) error {
	text = escape.Replace(cut(text, maxSection))
	if link != "" {
		text += "\n<" + escape.Replace(link) + "|Open in Gatehouse>"
	}
	_, err := c.call(ctx, nil, "chat.postEphemeral", map[string]any{"channel": slackChannel, "user": user, "text": text})
	var e apiError
	if !errors.As(err, &e) || !strings.HasPrefix(string(e), "user_not_in_channel") {
		return err
	}
	_, err = c.call(ctx, nil, "chat.postMessage", map[string]any{
		"channel": user, "text": text, "unfurl_links": false, "unfurl_media": false,
	})
	return err
}

// lost reports whether an answer to a person can never be delivered.
func lost(err error) bool {
	var r *notify.Refusal
	if errors.As(err, &r) && r.Final {
		return true
	}
	var e apiError
	return errors.As(err, &e) && e != "ratelimited" && e != "internal_error" && e != "fatal_error" &&
		e != "service_unavailable" && e != "request_timeout"
}

package slack

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// post posts a message. A second attempt first checks whether the first one succeeded.
func (c *Connector) post(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	channel, _ := channelAndTimestamp(call)
	if call.Attempt > 1 {
		m, there, failed := c.posted(ctx, call)
		if failed != nil {
			return connector.Result{}, rest.NothingSent(failed)
		}
		if there {
			return c.approved(call, m, c.postedResult(call, m))
		}
	}
	if failed := c.pace.Wait(ctx, channel); failed != nil {
		return connector.Result{}, failed
	}
	fields, _ := call.ProposedChange.Fields()
	body := gatehouse.ObjectJSON(append(fields,
		gatehouse.Member{Name: "channel", Value: gatehouse.StringJSON(channel)},
		gatehouse.Member{Name: "metadata", Value: metadata(call)},
		gatehouse.Member{Name: "unfurl_links", Value: "false"},
		gatehouse.Member{Name: "unfurl_media", Value: "false"})...)
	res, doc, failed := c.call(ctx, "/chat.postMessage", body)
	if failed != nil {
		return res, failed
	}
	made, _ := doc.Get("message")
	where, _ := rest.TextOf(doc, "channel")
	ts, _ := rest.TextOf(doc, "ts")
	res.ExternalID = where + "/" + ts
	if where != channel || !messageForm.MatchString(res.ExternalID) {
		return res, &connector.Error{
			Code: "not_as_approved", Detail: "Slack's answer does not contain the approved channel and a timestamp",
		}
	}
	return c.approved(call, message{made}, res)
}

// approved compares a posted message with the approved message, and adds the reversal to the result.
func (c *Connector) approved(
	call connector.Call, m message, res connector.Result,
) (connector.Result, *connector.Error) {
	if want, _ := rest.TextOf(call.ProposedChange, "text"); !sameText(want, m.text("text")) {
		return res, &connector.Error{
			Code: "not_as_approved", Detail: "the message exists, but its text is " +
				gatehouse.Quote(m.text("text")) + " instead of the approved text",
		}
	}
	if thread, ok := rest.TextOf(call.ProposedChange, "thread_ts"); ok && thread != m.text("thread_ts") {
		return res, &connector.Error{
			Code: "not_as_approved", Detail: "the message exists, but not in the approved thread",
		}
	}
	res.Reversal = reversal(res.ExternalID, m)
	return res, nil
}

// reversal describes the deletion of a posted message. People who have read the message, or received it
// by mail, keep the text.
func reversal(ref string, m message) *gatehouse.Reversal {
	return &gatehouse.Reversal{
		Operation: opDelete, Target: gatehouse.Target{EntityType: entityMessage, EntityRef: ref},
		CurrentState: textState(m.text("text")), ProposedChange: `{"deleted":true}`,
	}
}

func textState(text string) gatehouse.JSON {
	return gatehouse.ObjectJSON(gatehouse.Member{Name: "text", Value: gatehouse.StringJSON(text)})
}

// postedResult is the result for a message that an earlier attempt posted, without the reversal.
func (c *Connector) postedResult(call connector.Call, m message) connector.Result {
	channel, _ := channelAndTimestamp(call)
	return connector.Result{
		ExternalID: channel + "/" + m.text("ts"), ResponseMetadata: rest.Found(m.json),
	}
}

// change edits or deletes a message.
func (c *Connector) change(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	channel, ts := channelAndTimestamp(call)
	before, there, failed := c.find(ctx, channel, ts)
	if failed != nil {
		return connector.Result{}, rest.NothingSent(failed)
	}
	if s := compare(call, before, there); !s.Matches {
		return connector.Result{}, rest.Changed(s)
	}
	body := []gatehouse.Member{
		{Name: "channel", Value: gatehouse.StringJSON(channel)}, {Name: "ts", Value: gatehouse.StringJSON(ts)},
	}
	method := "/chat.delete"
	if call.Operation == opUpdate {
		method = "/chat.update"
		text, _ := call.ProposedChange.Get("text")
		body = append(body, gatehouse.Member{Name: "text", Value: text})
	}
	res, doc, failed := c.call(ctx, method, gatehouse.ObjectJSON(body...))
	res.ExternalID = call.Target.EntityRef
	if failed != nil || call.Operation == opDelete {
		return res, failed
	}
	after, _ := doc.Get("message")
	if res, failed = c.approved(call, message{after}, res); failed != nil {
		return res, failed
	}
	res.Reversal = &gatehouse.Reversal{
		Operation: opUpdate, Target: call.Target,
		CurrentState: textState(message{after}.text("text")), ProposedChange: textState(before.text("text")),
	}
	return res, nil
}

// call makes a call that writes, and reads the answer.
func (c *Connector) call(
	ctx context.Context, method string, body gatehouse.JSON,
) (res connector.Result, doc gatehouse.JSON, failed *connector.Error) {
	res, a, failed := c.api.Do(ctx, http.MethodPost, method, nil, nil, body)
	if failed != nil {
		return res, "", failed
	}
	doc, failed = parseAnswer(a)
	return res, doc, failed
}

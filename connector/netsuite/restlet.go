package netsuite

import (
	"context"
	"net/http"
	"net/url"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// callRESTlet sends a change to the RESTlet. before is the record as it was read before the change, nil
// if it was not read; after is the record in the answer, nil for none.
func (c *Connector) callRESTlet(
	ctx context.Context, e *entity, call connector.Call, before *record,
) (res connector.Result, after *record, failure *connector.Error) {
	r := c.restlet(http.MethodPost, nil)
	r.SetJSON(c.restletBody(e, call))
	x, failure := c.do(ctx, r)
	res.RequestMetadata = r.Metadata()
	if failure != nil {
		return res, nil, failure
	}
	res.ResponseMetadata = x.answer.Metadata(x.doc)
	if x.answer.Status < 200 || x.answer.Status > 299 {
		if c.cfg.RESTlet.Protocol == protocolGatehouse { // after a save, Gatehouse's RESTlet reports errors with status 200
			return res, nil, x.refusal(true)
		}
		return res, nil, x.scriptFailure()
	}
	if failure = c.classifyBody(x); failure != nil {
		return res, nil, failure
	}
	after = c.settle(e, call, x, before, &res)
	if after != nil {
		failure = e.asApproved(after, call.ProposedChange)
		res.ResponseMetadata = rest.With(res.ResponseMetadata, "compared", "true")
	}
	return res, after, failure
}

// classifyBody classifies the body of an answer with a status 2xx; nil if the RESTlet has saved the change.
func (c *Connector) classifyBody(x *exchange) *connector.Error {
	e := &connector.Error{Code: "answer_unreadable", Detail: "the RESTlet's answer cannot be read",
		Says: x.answer.Text(x.doc)}
	if !x.doc.IsObject() {
		return e
	}
	if c.cfg.RESTlet.Protocol == protocolGatehouse {
		return gatehouseOutcome(x.doc, e)
	}
	if why, ok := x.doc.Get("error"); ok && why != "null" && why != `""` && why != "false" {
		e.Code = "script_error"
		if m, known := meanings[errorCode(x.doc)]; known {
			e.Code = m.code // ambiguous all the same: the script may have saved something before
		}
		e.Detail = "the RESTlet answered with an error"
		return e
	}
	if internalID(x.doc) == "" {
		e.Code, e.Detail = "no_internal_id", "the RESTlet's answer names no ns_internal_id"
		return e
	}
	return nil
}

// refusals classifies the codes that Gatehouse's RESTlet sends with the outcome refused.
var refusals = map[string]meaning{
	"target_changed":       {connector.Terminal, string(gatehouse.CodeTargetChanged)},
	"idempotency_conflict": {connector.Terminal, "idempotency_conflict"},
	"governance":           {connector.Transient, "usage_limit"},
}

// gatehouseOutcome classifies the outcome in an answer of Gatehouse's RESTlet: nil for an applied change, else e,
// completed with the outcome's code and detail.
func gatehouseOutcome(doc gatehouse.JSON, e *connector.Error) *connector.Error {
	if rest.Text(doc, "protocol") != protocol {
		e.Code, e.Detail = "restlet_protocol", "the RESTlet does not support the configured protocol"
		return e
	}
	detail := rest.Text(doc, "detail")
	switch rest.Text(doc, "outcome") {
	case "applied":
		if internalID(doc) == "" {
			return e
		}
		return nil
	case "in_doubt":
		e.Code = "in_doubt"
		e.Detail = "an earlier call with this key started but stored no result: " + detail
	case "refused":
		code := rest.Text(doc, "code")
		m, ok := refusals[code]
		if !ok {
			m, ok = meanings[code]
		}
		if !ok {
			m = meaning{connector.Terminal, "refused"}
		}
		e.Kind, e.Code, e.Detail = m.kind, m.code, "the RESTlet refused: "+detail
	}
	return e
}

func internalID(doc gatehouse.JSON) string {
	for _, name := range []string{"ns_internal_id", "internal_id", "internalId", "internalid", "id"} {
		if id := rest.Text(doc, name); recordRef.MatchString(id) {
			return id
		}
	}
	return ""
}

// settle completes the result of a change that the RESTlet has saved.
func (c *Connector) settle(
	e *entity, call connector.Call, x *exchange, before *record, res *connector.Result,
) (after *record) {
	res.ExternalID = internalID(x.doc)
	res.ResponseMetadata = c.receiptMetadata(x, e, res.ExternalID)
	w := c.restletWire()
	if object, _ := x.doc.Get("before"); object.IsObject() && before == nil {
		before = e.recordOf(x.doc, object, w)
	}
	if object, _ := x.doc.Get("after"); object.IsObject() {
		after = e.recordOf(x.doc, object, w)
	}
	if call.Operation == opCreate {
		res.Reversal = e.undoCreate(call, res.ExternalID)
	} else {
		res.Reversal = e.reversal(call, before)
	}
	return after
}

// readBackKey asks Gatehouse's RESTlet for the outcome of a key. If the outcome of an update is in doubt,
// readBackKey reads the record: the finding is Present if the record has the approved values.
func (c *Connector) readBackKey(
	ctx context.Context, e *entity, call connector.Call,
) (connector.Finding, connector.Result, error) {
	none := connector.Result{}
	x, failure := c.do(ctx, c.restlet(http.MethodGet, url.Values{
		"protocol": {protocol}, "do": {"status"}, "operation": {call.Operation}, "record_type": {e.Record},
		"idempotency_key": {call.TargetKey()},
	}))
	if failure != nil {
		if failure.Kind == connector.Ambiguous {
			failure.Kind = connector.Transient
		}
		return connector.Inconclusive, none, failure
	}
	if x.answer.Status != http.StatusOK || rest.Text(x.doc, "protocol") != protocol {
		failure = x.refusal(false)
		failure.Kind = connector.Transient
		return connector.Inconclusive, none, failure
	}
	switch outcome := rest.Text(x.doc, "outcome"); {
	case outcome == "applied" && (call.Operation == opCreate || rest.Text(x.doc, "digest") == string(call.Digest)):
		var res connector.Result
		after := c.settle(e, call, x, nil, &res)
		if after != nil && len(e.differing(after, call.ProposedChange)) > 0 {
			return connector.Inconclusive, none, nil
		}
		return connector.Present, res, nil
	case outcome == "in_doubt" && call.Operation == opUpdate && rest.Text(x.doc, "digest") == string(call.Digest):
		r, failure := c.readRecord(ctx, e, call.Target.EntityRef, readsRESTlet)
		if failure != nil {
			return connector.Inconclusive, none, failure
		}
		if r != nil && len(e.differing(r, call.ProposedChange)) == 0 {
			return connector.Present, c.found(e, call, r), nil
		}
	}
	return connector.Inconclusive, none, nil
}

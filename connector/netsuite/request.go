package netsuite

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// protocol is the name of the protocol of Gatehouse's RESTlet, in requests and answers.
const protocol = "gatehouse/1"

// exchange is a request and its answer.
type exchange struct {
	request *rest.Request
	answer  *rest.Answer
	doc     gatehouse.JSON
}

// do sends a request once.
func (c *Connector) do(ctx context.Context, r *rest.Request) (*exchange, *connector.Error) {
	x := &exchange{request: r}
	if ctx.Err() != nil {
		return x, rest.NotSent("timeout", "the time ran out before anything was sent")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "gatehouse")
	var token string
	if c.oauth2 != nil {
		var failure *connector.Error
		if token, failure = c.oauth2.Get(ctx); failure != nil {
			return x, failure
		}
		r.SetSecret("Authorization", "Bearer "+token)
	} else {
		c.tba.Sign(r)
	}
	a, err := c.hold.Send(ctx, c.client, r)
	if err != nil {
		return x, rest.Unanswered(ctx, err)
	}
	if a.Status == http.StatusUnauthorized && token != "" {
		c.oauth2.Drop(token)
	}
	x.answer, x.doc = a, a.JSON()
	return x, nil
}

// record builds a request to the record service. id is an internal id, or "eid:" and an external
// one.
func (c *Connector) record(method string, e *entity, id string) *rest.Request {
	u := *c.restURL
	u.Path += "/services/rest/record/v1/" + e.RESTRecord + "/" + id
	u.RawPath = ""
	if method == http.MethodGet && e.hasLines() {
		u.RawQuery = "expandSubResources=true"
	}
	return rest.NewRequest(method, &u)
}

func (e *entity) hasLines() bool {
	for _, f := range e.fields {
		if f.Type == typeLines {
			return true
		}
	}
	return false
}

// restlet builds a request to the RESTlet.
func (c *Connector) restlet(method string, parameters url.Values) *rest.Request {
	u := *c.restletsURL
	u.Path += "/app/site/hosting/restlet.nl"
	u.RawPath = ""
	query := url.Values{"script": {c.cfg.RESTlet.Script}, "deploy": {c.cfg.RESTlet.Deploy}}
	for name, values := range parameters {
		query[name] = values
	}
	// RFC 3986 encodes a space as %20, and so does the signature.
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	r := rest.NewRequest(method, &u)
	r.Header.Set("Content-Type", "application/json") // without it, a RESTlet answers with text
	return r
}

// recordBody converts a change to the record service's form.
func (e *entity) recordBody(change gatehouse.JSON) gatehouse.JSON {
	members, _ := change.Fields()
	for i, m := range members {
		f := e.fields[m.Name]
		if f.Type == typeLines {
			items := gatehouse.Member{Name: "items", Value: f.send(m.Value, wireREST)}
			members[i] = gatehouse.Member{Name: f.Sublist, Value: gatehouse.ObjectJSON(items)}
			continue
		}
		members[i] = gatehouse.Member{Name: f.REST, Value: f.send(m.Value, wireREST)}
	}
	return gatehouse.ObjectJSON(members...)
}

// restletBody is the body for a RESTlet: the approved action, and the change with NetSuite's names
// of the fields.
func (c *Connector) restletBody(e *entity, call connector.Call) gatehouse.JSON {
	return gatehouse.ObjectJSON(append(e.approved(call), e.restletChange(call, c.restletWire())...)...)
}

func textMember(name, text string) gatehouse.Member {
	return gatehouse.Member{Name: name, Value: gatehouse.StringJSON(text)}
}

// approved are the members of a body that name the approved action.
func (e *entity) approved(call connector.Call) []gatehouse.Member {
	return []gatehouse.Member{
		textMember("protocol", protocol), textMember("do", call.Operation),
		textMember("idempotency_key", call.TargetKey()), textMember("digest", string(call.Digest)),
		textMember("action_id", call.ActionID), textMember("record_type", e.Record),
	}
}

// restletChange are the members of a body for the change of one record.
func (e *entity) restletChange(call connector.Call, w wire) []gatehouse.Member {
	fields, lines := e.spell(call.ProposedChange, w)
	members := []gatehouse.Member{{Name: "fields", Value: fields}}
	if lines != "{}" {
		members = append(members, gatehouse.Member{Name: "lines", Value: lines})
	}
	if call.Operation == opCreate {
		return members
	}
	id, line := e.split(call.Target.EntityRef)
	members = append(members, textMember("ns_internal_id", id))
	if e.Line != nil {
		members = append(members, gatehouse.Member{Name: "line", Value: gatehouse.ObjectJSON(
			textMember("sublist", e.Line.Sublist), textMember("key", e.Line.Key), textMember("value", line))})
	}
	if expect, _ := e.spell(call.CurrentState, w); expect != "{}" {
		members = append(members, gatehouse.Member{Name: "expect", Value: expect})
	}
	if call.Target.Version != "" {
		members = append(members, textMember("expect_lastmodified", call.Target.Version))
	}
	return members
}

func (c *Connector) restletWire() wire {
	if c.cfg.RESTlet.Protocol == protocolGatehouse {
		return wireGatehouse
	}
	return wirePlain
}

// spell converts an object's members to the names that a RESTlet uses: field ids in fields, sublist
// ids in lines. It leaves out members that the entity does not have.
func (e *entity) spell(object gatehouse.JSON, w wire) (fields, lines gatehouse.JSON) {
	members, _ := object.Fields()
	var flat, nested []gatehouse.Member
	for _, m := range members {
		switch f := e.fields[m.Name]; {
		case f == nil:
		case f.Type == typeLines:
			nested = append(nested, gatehouse.Member{Name: f.Sublist, Value: f.send(m.Value, w)})
		default:
			flat = append(flat, gatehouse.Member{Name: f.Field.Field, Value: f.send(m.Value, w)})
		}
	}
	return gatehouse.ObjectJSON(flat...), gatehouse.ObjectJSON(nested...)
}

// split splits an entity_ref into the record's id and the line's key, which may be "".
func (e *entity) split(ref string) (id, line string) {
	id, line, _ = strings.Cut(ref, "/")
	return id, line
}

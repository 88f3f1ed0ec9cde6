package netsuite

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// The limits of a bulk update.
const (
	// maxBulk limits its lines, and is MAX_LINES of Gatehouse's RESTlet.
	maxBulk = 200
	// maxRequests limits the requests of one attempt, and of one read.
	maxRequests = 10
	// mostWithin limits the time that a request gives to the RESTlet. A request after the first is made only if it
	// can give leastWithin.
	mostWithin  = 30 * time.Second
	leastWithin = 500 * time.Millisecond
	// maxReversal limits the JSON of a reversal, in bytes: it must fit in a proposal's body.
	maxReversal = 512 << 10
	// maxNamed limits the lines that an error names.
	maxNamed = 5
)

// bulkNeeds is the error text for a bulk update if no RESTlet that can make it is configured.
const bulkNeeds = "bulk_update needs Gatehouse's RESTlet: configure restlet with protocol: gatehouse"

// linesOf returns the updates of a bulk update, in the order of its entity_refs.
func linesOf(call connector.Call) []connector.Call {
	before, after := byName(call.CurrentState), byName(call.ProposedChange)
	lines := make([]connector.Call, len(call.Target.EntityRefs))
	for i, ref := range call.Target.EntityRefs {
		lines[i] = call
		lines[i].Operation = opUpdate
		lines[i].Target = gatehouse.Target{EntityType: call.Target.EntityType, EntityRef: ref}
		lines[i].CurrentState, lines[i].ProposedChange = before[ref], after[ref]
	}
	return lines
}

func byName(object gatehouse.JSON) map[string]gatehouse.JSON {
	members, _ := object.Fields()
	out := make(map[string]gatehouse.JSON, len(members))
	for _, m := range members {
		out[m.Name] = m.Value
	}
	return out
}

// batch is a bulk update with what the RESTlet has answered about its lines.
type batch struct {
	entity *entity
	call   connector.Call
	lines  []*line
}

// line is one update of a batch.
type line struct {
	connector.Call
	// answer is what the RESTlet says of the line, "" for nothing yet.
	answer gatehouse.JSON
	// failure is nil for a line that is applied as approved.
	failure       *connector.Error
	before, after *record
}

func (e *entity) batch(call connector.Call) *batch {
	b := &batch{entity: e, call: call}
	for _, one := range linesOf(call) {
		b.lines = append(b.lines, &line{Call: one})
	}
	return b
}

// take takes the RESTlet's answer about a line.
func (b *batch) take(i int, doc gatehouse.JSON) {
	l := b.lines[i]
	l.answer = doc
	l.failure = gatehouseOutcome(doc,
		&connector.Error{Code: "answer_unreadable", Detail: "the RESTlet's answer cannot be read"})
	if l.failure != nil {
		return
	}
	if object, _ := doc.Get("before"); object.IsObject() {
		l.before = b.entity.recordOf(doc, object, wireGatehouse)
	}
	if object, _ := doc.Get("after"); object.IsObject() {
		l.after = b.entity.recordOf(doc, object, wireGatehouse)
		l.failure = b.entity.asApproved(l.after, l.ProposedChange)
	}
}

func (l *line) applied() bool { return rest.Text(l.answer, "outcome") == "applied" }

// bulkUpdate sends the lines to Gatehouse's RESTlet. If the RESTlet stops early, further requests
// with the same key continue from there.
func (c *Connector) bulkUpdate(
	ctx context.Context, e *entity, call connector.Call,
) (connector.Result, *connector.Error) {
	b := e.batch(call)
	changes := make([]gatehouse.JSON, len(b.lines))
	for i, l := range b.lines {
		changes[i] = gatehouse.ObjectJSON(e.restletChange(l.Call, wireGatehouse)...)
	}
	lines := gatehouse.Member{Name: "lines", Value: gatehouse.ArrayJSON(changes...)}
	p, failure := c.pages(ctx, len(b.lines), func(offset int, within string) *rest.Request {
		r := c.restlet(http.MethodPost, nil)
		r.SetJSON(gatehouse.ObjectJSON(append(e.approved(call), lines,
			gatehouse.Member{Name: "offset", Value: gatehouse.MustJSON(offset)},
			gatehouse.Member{Name: "within_ms", Value: gatehouse.JSON(within)})...))
		return r
	}, b.take)
	return c.bulkResult(b, p), b.verdict(failure)
}

// paged is the result of a series of requests.
type paged struct {
	last           *exchange
	done, requests int
}

// pages makes requests to the RESTlet until it has answered about n lines. It stops earlier without
// a failure when the time is nearly over, after maxRequests, or after an answer without lines.
func (c *Connector) pages(
	ctx context.Context, n int, ask func(offset int, within string) *rest.Request,
	take func(i int, line gatehouse.JSON),
) (p paged, failure *connector.Error) {
	for p.done < n && p.requests < maxRequests {
		within := mostWithin
		if end, ok := ctx.Deadline(); ok {
			within = min(within, time.Until(end)/2) // the rest is for the last line and the answer
		}
		if within < leastWithin && p.requests > 0 {
			break
		}
		x, failure := c.do(ctx, ask(p.done, strconv.FormatInt(max(0, within.Milliseconds()), 10)))
		p.requests++
		p.last = x
		if failure != nil {
			return p, failure
		}
		if x.answer.Status < 200 || x.answer.Status > 299 {
			return p, x.scriptFailure() // the RESTlet may have saved lines before the error
		}
		answered, _ := x.doc.Get("lines")
		lines, err := answered.Elements()
		if rest.Text(x.doc, "outcome") != "page" || rest.Text(x.doc, "protocol") != protocol ||
			err != nil || len(lines) > n-p.done {
			if failure = c.classifyBody(x); failure == nil {
				failure = &connector.Error{Code: "answer_unreadable", Detail: "the RESTlet's answer cannot be read"}
			}
			return p, failure
		}
		if len(lines) == 0 {
			break
		}
		for _, line := range lines {
			take(p.done, line)
			p.done++
		}
	}
	return p, nil
}

// verdict is the failure of a bulk update, nil if all lines are applied as approved. failure is that
// of the last request. An applied line makes a failure ambiguous, because an action fails as a whole.
func (b *batch) verdict(failure *connector.Error) *connector.Error {
	var open, applied, fresh int
	var wrong []*line
	for _, l := range b.lines {
		if l.answer == "" {
			open++
			continue
		}
		if l.applied() {
			applied++
			if replayed, _ := l.answer.Get("replayed"); replayed != "true" {
				fresh++
			}
		}
		if l.failure != nil {
			wrong = append(wrong, l)
		}
	}
	doubtful := slices.IndexFunc(wrong, func(l *line) bool { return l.failure.Kind == connector.Ambiguous })
	summary := b.summary(applied, open, wrong)
	later := slices.ContainsFunc(wrong, func(l *line) bool { return l.failure.Kind == connector.Transient })
	e := &connector.Error{Code: "partly_applied"}
	switch settled := applied > 0 && fresh == 0 && !later && b.call.Attempt > 1; {
	case failure != nil && open == len(b.lines):
		return failure
	case failure != nil:
		*e = *failure
		if e.Kind == connector.NotSent {
			e.Kind = connector.Transient // earlier requests were sent
		}
	case doubtful >= 0:
		e.Code = wrong[doubtful].failure.Code
	case open > 0:
		e.Kind, e.Code = connector.Transient, "incomplete"
	case len(wrong) == 0:
		return nil
	case applied == 0:
		e.Kind, e.Code = wrong[0].failure.Kind, wrong[0].failure.Code
		if later {
			e.Kind = connector.Transient
		}
	case settled: // this attempt has changed nothing, and no other one will
		e.Kind, applied = connector.Terminal, 0
	}
	if applied > 0 || doubtful >= 0 {
		e.Kind = connector.Ambiguous
	}
	e.Detail = strings.TrimPrefix(e.Detail+"; ", "; ") + summary
	return e
}

// summary counts the lines, and names the first ones that are not as approved.
func (b *batch) summary(applied, open int, wrong []*line) string {
	s := fmt.Sprintf("%d of %d lines are applied", applied, len(b.lines))
	if open > 0 {
		s += fmt.Sprintf(", %d were not tried in this attempt", open)
	}
	for i, l := range wrong {
		if i == maxNamed {
			return s + fmt.Sprintf("; and %d more", len(wrong)-i)
		}
		s += "; " + l.Target.EntityRef + ": " + l.failure.Code + ", " + rest.Brief(gatehouse.JSON(l.failure.Detail))
	}
	return s
}

// bulkResult is the result of a bulk update, with each line's outcome.
func (c *Connector) bulkResult(b *batch, p paged) (res connector.Result) {
	if p.last == nil {
		return res
	}
	res.RequestMetadata = rest.With(p.last.request.Metadata(), "requests", gatehouse.MustJSON(p.requests))
	if p.last.answer == nil {
		res.ResponseMetadata = "{}"
	} else {
		bare := *p.last.answer // the member lines replaces its body
		bare.Body, bare.Cut = nil, ""
		res.ResponseMetadata = c.receiptMetadata(&exchange{request: p.last.request, answer: &bare}, b.entity, "")
	}
	var lines []gatehouse.JSON
	complete := true
	for _, l := range b.lines {
		complete = complete && (l.applied() || l.answer != "" && l.failure == nil)
		if l.answer != "" {
			lines = append(lines, l.receipt(b.entity))
		}
	}
	res.ResponseMetadata = rest.With(res.ResponseMetadata, "lines", gatehouse.ArrayJSON(lines...))
	if complete {
		res.Reversal = b.reversal()
	}
	return res
}

// receipt describes the outcome of a line.
func (l *line) receipt(e *entity) gatehouse.JSON {
	members := []gatehouse.Member{textMember("entity_ref", l.Target.EntityRef)}
	if l.applied() || l.failure == nil {
		id, _ := e.split(l.Target.EntityRef)
		members = append(members, textMember("ns_internal_id", id))
	}
	if at := rest.Text(l.answer, "applied_at"); at != "" {
		members = append(members, textMember("applied_at", at))
	}
	if l.failure != nil {
		members = append(members, textMember("code", l.failure.Code),
			textMember("detail", rest.Brief(gatehouse.JSON(l.failure.Detail))))
	}
	return gatehouse.ObjectJSON(members...)
}

// reversal is the bulk update back to the earlier values; nil if one of them is not known, or if the
// update would exceed maxReversal.
func (b *batch) reversal() *gatehouse.Reversal {
	var now, back []gatehouse.Member
	for _, l := range b.lines {
		r := b.entity.reversal(l.Call, l.before)
		if r == nil {
			return nil
		}
		now = append(now, gatehouse.Member{Name: l.Target.EntityRef, Value: r.CurrentState})
		back = append(back, gatehouse.Member{Name: l.Target.EntityRef, Value: r.ProposedChange})
	}
	out := &gatehouse.Reversal{
		Operation: opBulkUpdate, Target: b.call.Target,
		CurrentState: gatehouse.ObjectJSON(now...), ProposedChange: gatehouse.ObjectJSON(back...),
	}
	if len(out.CurrentState)+len(out.ProposedChange) > maxReversal {
		return nil
	}
	return out
}

package telemetry

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/gatehouse-dev/gatehouse"
)

func randomID[T ~[16]byte | ~[8]byte]() T {
	var id T
	switch p := any(&id).(type) {
	case *trace.TraceID:
		_, _ = rand.Read(p[:]) // never fails
	case *trace.SpanID:
		_, _ = rand.Read(p[:])
	}
	return id
}

// Actions adds spans to the operations on actions.
func (t *Tracing) Actions(s gatehouse.ActionService) gatehouse.ActionService {
	if t == nil {
		return s
	}
	return &tracedActions{ActionService: s, tracing: t}
}

// tracedActions traces operations that propose, decide or end actions. Reads,
// comments and assignments are not traced.
type tracedActions struct {
	gatehouse.ActionService
	tracing *Tracing
}

// proposed records the root span of an action's trace after the proposal: the span's ids derive from the action's id,
// which was unknown when the proposal began.
func (t *Tracing) proposed(ctx context.Context, began time.Time, name string, a *gatehouse.Action) {
	_, span := t.start(ctx, name, actionRef{a.Tenant, a.ID}, true, trace.WithTimestamp(began))
	attrs := []attribute.KeyValue{
		attribute.String("gatehouse.status", string(a.Status)), attribute.Int("gatehouse.risk_level", int(a.RiskLevel)),
		attribute.String("gatehouse.connector", a.Connector), attribute.String("gatehouse.action_type", a.ActionType),
	}
	end(span, nil, attrs...)
}

func (s *tracedActions) Propose(ctx context.Context, p *gatehouse.Proposal) (*gatehouse.Action, bool, error) {
	began := time.Now()
	a, replayed, err := s.ActionService.Propose(ctx, p)
	if err == nil && !replayed {
		s.tracing.proposed(ctx, began, "propose", a)
	}
	return a, replayed, err
}

func (s *tracedActions) Revise(ctx context.Context, id string, p *gatehouse.Proposal) (*gatehouse.Action, error) {
	began := time.Now()
	a, err := s.ActionService.Revise(ctx, id, p)
	if err == nil {
		s.tracing.proposed(ctx, began, "revise", a)
	}
	return a, err
}

func (s *tracedActions) Rebase(ctx context.Context, id string) (*gatehouse.Action, error) {
	began := time.Now()
	a, err := s.ActionService.Rebase(ctx, id)
	if err == nil {
		s.tracing.proposed(ctx, began, "rebase", a)
	}
	return a, err
}

func (s *tracedActions) Edit(ctx context.Context, id string, e gatehouse.EditRequest) (*gatehouse.Action, error) {
	began := time.Now()
	a, err := s.ActionService.Edit(ctx, id, e)
	if err == nil && !e.DryRun {
		s.tracing.proposed(ctx, began, "edit", a)
	}
	return a, err
}

func (s *tracedActions) Reverse(ctx context.Context, id string, r gatehouse.ReverseRequest) (*gatehouse.Action, error) {
	began := time.Now()
	a, err := s.ActionService.Reverse(ctx, id, r)
	if err == nil {
		s.tracing.proposed(ctx, began, "reverse", a)
	}
	return a, err
}

// trace records an operation on an action. It records nothing if id is not an
// action's, such as an approval's, or if the action was not found.
func (t *Tracing) trace(ctx context.Context, began time.Time, name, id string, err error, attrs ...attribute.KeyValue) {
	if !strings.HasPrefix(id, "act_") || gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return
	}
	ref := actionRef{id: id}
	if c, err := gatehouse.CallerFrom(ctx); err == nil {
		ref.tenant = c.Principal.Tenant
	}
	_, span := t.start(ctx, name, ref, false, trace.WithTimestamp(began))
	end(span, err, attrs...)
}

func decisionAttr(d gatehouse.DecisionKind) attribute.KeyValue {
	return attribute.String("gatehouse.decision", string(d))
}

func resultAttr(result string) attribute.KeyValue {
	return attribute.String("gatehouse.result", result)
}

func (s *tracedActions) Decide(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.Answer, error) {
	began := time.Now()
	answer, err := s.ActionService.Decide(ctx, id, d)
	if err != nil {
		s.tracing.trace(ctx, began, "decide", id, err, decisionAttr(d.Decision))
		return nil, err
	}
	s.tracing.trace(ctx, began, "decide", answer.Action.ID, nil, decisionAttr(d.Decision), resultAttr(answer.Result))
	return answer, nil
}

func (s *tracedActions) Answer(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.ShortAnswer, error) {
	began := time.Now()
	answer, err := s.ActionService.Answer(ctx, id, d)
	if err != nil {
		s.tracing.trace(ctx, began, "decide", id, err, decisionAttr(d.Decision))
		return nil, err
	}
	s.tracing.trace(ctx, began, "decide", answer.ActionID, nil, decisionAttr(d.Decision), resultAttr(answer.Status))
	return answer, nil
}

func (s *tracedActions) BulkDecide(ctx context.Context, b gatehouse.BulkDecision) (*gatehouse.BulkAnswer, error) {
	began := time.Now()
	answer, err := s.ActionService.BulkDecide(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, r := range answer.Results {
		if r.Result != "" {
			s.tracing.trace(ctx, began, "decide", r.ActionID, nil, decisionAttr(b.Decision), resultAttr(r.Result))
		}
	}
	return answer, nil
}

func (s *tracedActions) Cancel(ctx context.Context, id string) (*gatehouse.CancelAnswer, error) {
	began := time.Now()
	answer, err := s.ActionService.Cancel(ctx, id)
	if err == nil {
		id = answer.Action.ID
	}
	s.tracing.trace(ctx, began, "cancel", id, err)
	return answer, err
}

func (s *tracedActions) Undo(ctx context.Context, id string) (*gatehouse.UndoAnswer, error) {
	began := time.Now()
	answer, err := s.ActionService.Undo(ctx, id)
	if err == nil {
		id = answer.Action.Supersedes
		if answer.Code == gatehouse.Undone {
			s.tracing.proposed(ctx, began, "undo", answer.Action)
		}
	}
	s.tracing.trace(ctx, began, "undo", id, err)
	return answer, err
}

// Reviews adds spans to decisions by signed links. A refused decision has no span, because its action is not known.
func (t *Tracing) Reviews(s gatehouse.ReviewService) gatehouse.ReviewService {
	if t == nil {
		return s
	}
	return &tracedReviews{ReviewService: s, tracing: t}
}

type tracedReviews struct {
	gatehouse.ReviewService
	tracing *Tracing
}

func (s *tracedReviews) DecideReview(
	ctx context.Context, id, token string, d gatehouse.ReviewDecision,
) (*gatehouse.Answer, error) {
	began := time.Now()
	answer, err := s.ReviewService.DecideReview(ctx, id, token, d)
	if err == nil {
		ref := actionRef{answer.Action.Tenant, answer.Action.ID}
		_, span := s.tracing.start(ctx, "decide", ref, false, trace.WithTimestamp(began))
		end(span, nil, decisionAttr(d.Decision), resultAttr(answer.Result))
	}
	return answer, err
}

// Clicked records the span of a decision by a click in Slack. The result is the code of an answer or of an error.
func (t *Tracing) Clicked(ctx context.Context, began time.Time, c *gatehouse.SlackClick, result string) {
	if t == nil || result == string(gatehouse.CodeNotFound) {
		return
	}
	_, span := t.start(ctx, "decide", actionRef{c.Tenant, c.ActionID}, false, trace.WithTimestamp(began))
	end(span, nil, decisionAttr(c.Choice), resultAttr(result))
}

// Push begins a span of a push, such as "dispatch" or "call". The returned
// function ends it with the outcome.
func (t *Tracing) Push(
	ctx context.Context, name string, p *gatehouse.Push,
) (context.Context, func(outcome string, err error)) {
	if t == nil {
		return ctx, func(string, error) {}
	}
	kind := trace.SpanKindInternal
	if name == "call" {
		kind = trace.SpanKindClient
	}
	ctx, span := t.start(ctx, name, actionRef{p.Tenant, p.ActionID}, false, trace.WithSpanKind(kind), trace.WithAttributes(
		attribute.String("gatehouse.push", p.ID), attribute.String("gatehouse.connector", p.Connector),
		attribute.Int("gatehouse.attempt", p.Attempts), attribute.Int("gatehouse.generation", p.Generation)))
	return ctx, func(outcome string, err error) { end(span, err, attribute.String("gatehouse.outcome", outcome)) }
}

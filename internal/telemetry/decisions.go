package telemetry

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

// decisionsName is the name of the counter of decisions by endpoint and result, which internal/api may also register.
const decisionsName = "gatehouse_decisions_total"

// DecisionCounter returns a function that counts a decision through an endpoint outside the API, in the API's
// counter.
func DecisionCounter(r prometheus.Registerer, endpoint string) (func(gatehouse.DecisionResult), error) {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: decisionsName, Help: "Requests for a decision, by endpoint and result.",
	}, []string{"endpoint", "result"})
	err := r.Register(vec)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		vec = known.ExistingCollector.(*prometheus.CounterVec)
	} else if err != nil {
		return nil, err
	}
	return func(r gatehouse.DecisionResult) { vec.WithLabelValues(endpoint, string(r)).Inc() }, nil
}

// CountDecisions counts the decisions of the console.
func CountDecisions(r prometheus.Registerer, s gatehouse.ActionService) (gatehouse.ActionService, error) {
	count, err := DecisionCounter(r, "console")
	if err != nil {
		return nil, err
	}
	return &countedActions{ActionService: s, count: count}, nil
}

// CountReviews counts the decisions that people make on the console's page for a signed link.
func CountReviews(r prometheus.Registerer, s gatehouse.ReviewService) (gatehouse.ReviewService, error) {
	count, err := DecisionCounter(r, "link")
	if err != nil {
		return nil, err
	}
	return &countedReviews{ReviewService: s, count: count}, nil
}

// decisionCount counts a decision of one endpoint.
type decisionCount func(gatehouse.DecisionResult)

// answered counts the answer to a decision, or its error.
func (count decisionCount) answered(a *gatehouse.Answer, err error) {
	if err != nil {
		count(gatehouse.FailedResult(err))
		return
	}
	count(gatehouse.DecisionResultOf(a.Code, a.Replayed))
}

type countedActions struct {
	gatehouse.ActionService
	count decisionCount
}

func (s *countedActions) Decide(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.Answer, error) {
	a, err := s.ActionService.Decide(ctx, id, d)
	s.count.answered(a, err)
	return a, err
}

func (s *countedActions) Edit(ctx context.Context, id string, e gatehouse.EditRequest) (*gatehouse.Action, error) {
	a, err := s.ActionService.Edit(ctx, id, e)
	if e.Approve && !e.DryRun {
		s.count(gatehouse.EditResult(a, err))
	}
	return a, err
}

func (s *countedActions) BulkDecide(ctx context.Context, b gatehouse.BulkDecision) (*gatehouse.BulkAnswer, error) {
	a, err := s.ActionService.BulkDecide(ctx, b)
	if err != nil {
		s.count(gatehouse.FailedResult(err))
		return nil, err
	}
	for i := range a.Results {
		s.count(a.Results[i].Outcome())
	}
	return a, nil
}

type countedReviews struct {
	gatehouse.ReviewService
	count decisionCount
}

func (s *countedReviews) DecideReview(
	ctx context.Context, id, token string, d gatehouse.ReviewDecision,
) (*gatehouse.Answer, error) {
	a, err := s.ReviewService.DecideReview(ctx, id, token, d)
	s.count.answered(a, err)
	return a, err
}

package telemetry

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

// decisionsName is the counter of internal/api, by endpoint and result.
const decisionsName = "gatehouse_decisions_total"

// CountDecisions counts the decisions that are asked for through an endpoint
// that is none of the API's, beside those of the API.
func CountDecisions(r prometheus.Registerer, endpoint string, s gatehouse.ActionService) (gatehouse.ActionService, error) {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: decisionsName, Help: "Decisions asked for, by endpoint and by what they came to.",
	}, []string{"endpoint", "result"})
	err := r.Register(vec)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		vec = known.ExistingCollector.(*prometheus.CounterVec)
	} else if err != nil {
		return nil, err
	}
	return &countedActions{ActionService: s, count: func(result string) { vec.WithLabelValues(endpoint, result).Inc() }}, nil
}

type countedActions struct {
	gatehouse.ActionService
	count func(result string)
}

func (s *countedActions) Decide(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.Answer, error) {
	a, err := s.ActionService.Decide(ctx, id, d)
	switch {
	case err != nil:
		s.count(refusal(gatehouse.CodeOf(err)))
	case a.Replayed, a.Code == gatehouse.AlreadyApproved, a.Code == gatehouse.AlreadyRejected:
		s.count("replayed")
	case a.Code == gatehouse.VoteRecorded:
		s.count("voted")
	default:
		s.count("won")
	}
	return a, err
}

func (s *countedActions) BulkDecide(ctx context.Context, b gatehouse.BulkDecision) (*gatehouse.BulkAnswer, error) {
	a, err := s.ActionService.BulkDecide(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, r := range a.Results {
		switch {
		case r.Skipped != "":
			s.count(refusal(gatehouse.Code(r.Skipped)))
		case r.Result == gatehouse.AlreadyApproved || r.Result == gatehouse.AlreadyRejected:
			s.count("replayed")
		case r.Result == gatehouse.VoteRecorded:
			s.count("voted")
		default:
			s.count("won")
		}
	}
	return a, nil
}

func refusal(code gatehouse.Code) string {
	switch code {
	case gatehouse.CodeAlreadyDecided, gatehouse.CodeNotAwaitingApproval, gatehouse.CodeAlreadyVoted:
		return "conflict"
	}
	return "refused"
}

// DecisionCount is how often decisions at one endpoint came to each result,
// since this process began.
type DecisionCount struct {
	Endpoint string
	Results  map[string]int
}

// DecisionCounts reads the counters, by endpoint.
func DecisionCounts(g prometheus.Gatherer) ([]DecisionCount, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, err
	}
	byEndpoint := map[string]DecisionCount{}
	for _, f := range families {
		if f.GetName() != decisionsName {
			continue
		}
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			c, ok := byEndpoint[labels["endpoint"]]
			if !ok {
				c = DecisionCount{Endpoint: labels["endpoint"], Results: map[string]int{}}
				byEndpoint[c.Endpoint] = c
			}
			c.Results[labels["result"]] = int(m.Counter.GetValue())
		}
	}
	list := make([]DecisionCount, 0, len(byEndpoint))
	for _, c := range byEndpoint {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b DecisionCount) int { return cmp.Compare(a.Endpoint, b.Endpoint) })
	return list, nil
}

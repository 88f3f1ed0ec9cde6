package gate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Insights sums up how the gate was used. The counts of decisions cover the whole
// tenant, so only callers who may read all of it get them.
func (g *Gate) Insights(ctx context.Context, f gatehouse.InsightFilter) (*gatehouse.Insights, error) {
	var s *summary
	err := g.View(ctx, "insight", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		s = newSummary(f, tx.Now())
		readBy := g.ReadsAs(c.Principal)
		if readBy == "" {
			if s.out.Decisions, err = tx.DecisionCounts(s.out.Since); err != nil {
				return err
			}
		}
		return tx.ActionFacts(readBy, s.add)
	})
	if err != nil {
		return nil, err
	}
	return s.done(), nil
}

// summary adds up facts.
type summary struct {
	filter gatehouse.InsightFilter
	now    time.Time
	out    gatehouse.Insights
	all    *tally
	types  map[string]*tally
	agents map[string]*tally
	days   map[string]*tally
	groups map[string]*tally
	waits  map[gatehouse.RiskLevel][]int
	read   int
}

// tally accumulates an Insight.
type tally struct {
	gatehouse.Insight
	waits []time.Duration
}

func newSummary(f gatehouse.InsightFilter, now time.Time) *summary {
	if f.Since.IsZero() {
		f.Since = now.Add(-gatehouse.InsightsWindow)
	}
	return &summary{
		filter: f, now: now, all: &tally{}, types: map[string]*tally{}, agents: map[string]*tally{},
		days: map[string]*tally{}, groups: map[string]*tally{}, waits: map[gatehouse.RiskLevel][]int{},
		out: gatehouse.Insights{Since: f.Since, Until: now},
	}
}

// add counts a fact. It returns false when the remaining facts are too old.
func (s *summary) add(f gatehouse.ActionFact) bool {
	s.read++
	if f.ProposedAt.Before(s.filter.Since) {
		return false
	}
	if s.filter.ActionType != "" && f.ActionType != s.filter.ActionType || s.filter.ProposedBy != "" &&
		f.ProposedBy != s.filter.ProposedBy {
		return true
	}
	s.out.Seen++
	expired := f.Status == gatehouse.StatusPending && f.ExpiresAt != nil && !s.now.Before(*f.ExpiresAt)
	if expired {
		f.Status = gatehouse.StatusExpired
	}
	counted := []*tally{
		s.all, of(s.types, f.ActionType), of(s.agents, f.ProposedBy), of(s.days, f.ProposedAt.UTC().Format(time.DateOnly)),
	}
	for _, group := range f.Groups {
		counted = append(counted, of(s.groups, group))
	}
	for _, t := range counted {
		t.add(f)
	}
	if f.Status == gatehouse.StatusPending {
		s.wait(f)
	}
	return true
}

func of(m map[string]*tally, name string) *tally {
	t := m[name]
	if t == nil {
		t = &tally{Insight: gatehouse.Insight{Name: name}}
		m[name] = t
	}
	return t
}

func (t *tally) add(f gatehouse.ActionFact) {
	t.Proposed++
	person := f.DecidedVia != "" && f.DecidedVia != gatehouse.ViaPolicy
	switch f.Status {
	case gatehouse.StatusPending:
		t.Pending++
		return
	case gatehouse.StatusExpired:
		t.Expired++
		return
	case gatehouse.StatusDenied:
		t.Denied++
		return
	case gatehouse.StatusCanceled, gatehouse.StatusSuperseded:
		return
	case gatehouse.StatusRejected:
		if !person { // by the policy, when nobody had answered in time
			t.Expired++
			return
		}
		t.Rejected++
	default:
		if !person {
			t.Allowed++
			return
		}
		t.Approved++
	}
	// An action approved in advance has not waited.
	if person && !f.DecidedVia.InAdvance() && f.DecidedAt != nil {
		t.waits = append(t.waits, f.DecidedAt.Sub(f.ProposedAt))
	}
}

// wait counts a pending action by how long it has waited.
func (s *summary) wait(f gatehouse.ActionFact) {
	buckets := gatehouse.WaitBuckets()
	row := s.waits[f.RiskLevel]
	if row == nil {
		row = make([]int, len(buckets)+1)
		s.waits[f.RiskLevel] = row
	}
	waited := s.now.Sub(f.ProposedAt)
	i := 0
	for i < len(buckets) && waited > buckets[i] {
		i++
	}
	row[i]++
}

func (s *summary) done() *gatehouse.Insights {
	s.out.Capped = s.read >= gatehouse.MaxFacts
	s.out.All = s.all.done()
	s.out.Waiting, s.out.Decisions = []gatehouse.WaitingCount{}, usecase.OrEmpty(s.out.Decisions)
	for risk := gatehouse.L5; risk >= gatehouse.L1; risk-- {
		if row := s.waits[risk]; row != nil {
			s.out.Waiting = append(s.out.Waiting, gatehouse.WaitingCount{RiskLevel: risk, Counts: row})
		}
	}
	s.out.ByType, s.out.ByAgent, s.out.ByGroup = ranked(s.types), ranked(s.agents), ranked(s.groups)
	s.out.ByDay = []gatehouse.Insight{}
	last := s.now.UTC().Truncate(24 * time.Hour)
	day := s.filter.Since.UTC().Truncate(24 * time.Hour)
	if first := last.AddDate(0, 0, 1-gatehouse.MaxInsightDays); day.Before(first) {
		day = first
	}
	for ; !day.After(last); day = day.AddDate(0, 0, 1) {
		s.out.ByDay = append(s.out.ByDay, of(s.days, day.Format(time.DateOnly)).done())
	}
	return &s.out
}

func (t *tally) done() gatehouse.Insight {
	slices.Sort(t.waits)
	t.P50, t.P90, t.P99 = percentile(t.waits, 50), percentile(t.waits, 90), percentile(t.waits, 99)
	return t.Insight
}

// percentile is the nearest rank: the least value that p percent of all do not exceed.
func percentile(sorted []time.Duration, p int) gatehouse.Span {
	if len(sorted) == 0 {
		return 0
	}
	return gatehouse.Span(sorted[(len(sorted)*p+99)/100-1])
}

func ranked(m map[string]*tally) []gatehouse.Insight {
	list := make([]gatehouse.Insight, 0, len(m))
	for _, t := range m {
		list = append(list, t.done())
	}
	slices.SortFunc(list, func(a, b gatehouse.Insight) int {
		return cmp.Or(cmp.Compare(b.Proposed, a.Proposed), cmp.Compare(a.Name, b.Name))
	})
	return list
}

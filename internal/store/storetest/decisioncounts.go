package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// decisionCounts checks that days and results add up per endpoint, that
// concurrent additions are not lost, that unknown names and negative numbers are refused, and that each tenant
// has its own counts.
func (s *suite) decisionCounts() {
	const other = "acme"
	s.as(other).update(
		func(tx gatehouse.Tx) error { return tx.InsertTenant(&gatehouse.Tenant{ID: other, CreatedAt: tx.Now()}) })
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	add := func(tenant string, day time.Time, endpoint string, result gatehouse.DecisionResult, n int64) error {
		return s.store.Update(
			s.Context(),
			tenant,
			func(tx gatehouse.Tx) error { return tx.AddDecisions(day, endpoint, result, n) },
		)
	}
	read := func(tenant string, from time.Time) (list []gatehouse.DecisionCount) {
		s.as(tenant).view(func(tx gatehouse.ReadTx) (err error) {
			list, err = tx.DecisionCounts(from)
			return err
		})
		return list
	}
	if got := read(tenant, noon); len(got) != 0 {
		s.Errorf("counts at first: %+v", got)
	}
	for _, c := range []struct {
		tenant   string
		day      time.Time
		endpoint string
		result   gatehouse.DecisionResult
		n        int64
	}{
		{tenant, noon.Add(-24 * time.Hour), "decide", gatehouse.ResultWon, 100},
		{tenant, noon, "decide", gatehouse.ResultWon, 1},
		{tenant, noon.Add(11 * time.Hour), "decide", gatehouse.ResultConflict, 2},
		{tenant, noon.Add(24 * time.Hour), "decide", gatehouse.ResultConflict, 3},
		{tenant, noon, "approve", gatehouse.ResultReplayed, 4},
		{tenant, noon, "approve", gatehouse.ResultVoted, 5},
		{tenant, noon, "console", gatehouse.ResultRefused, 6},
		{other, noon, "decide", gatehouse.ResultWon, 50},
	} {
		if err := add(c.tenant, c.day, c.endpoint, c.result, c.n); err != nil {
			s.Error(err)
		}
	}
	const adders = 8
	done := make(chan error, adders)
	for range adders {
		go func() { done <- add(tenant, noon, "bulk-decide", gatehouse.ResultWon, 7) }()
	}
	for range adders {
		if err := <-done; err != nil {
			s.Error(err)
		}
	}
	want := []gatehouse.DecisionCount{
		{Endpoint: "approve", Replayed: 4, Voted: 5}, {Endpoint: "bulk-decide", Won: 7 * adders},
		{Endpoint: "console", Refused: 6},
		{Endpoint: "decide", Won: 1, Conflict: 5},
	}
	// The whole day of the given time counts.
	if diff := cmp.Diff(want, read(tenant, noon.Add(11*time.Hour))); diff != "" {
		s.Errorf("counts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]gatehouse.DecisionCount{{Endpoint: "decide", Conflict: 3}},
		read(tenant, noon.Add(24*time.Hour))); diff != "" {
		s.Errorf("counts of the last day (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]gatehouse.DecisionCount{{Endpoint: "decide", Won: 50}}, read(other, noon)); diff != "" {
		s.Errorf("the other tenant's counts (-want +got):\n%s", diff)
	}
	for what, err := range map[string]error{
		"endpoint": add(tenant, noon, "elsewhere", gatehouse.ResultWon, 1),
		"result":   add(tenant, noon, "decide", "lost", 1),
		"tenant":   add("nobody", noon, "decide", gatehouse.ResultWon, 1),
		"number":   add(tenant, noon.Add(72*time.Hour), "decide", gatehouse.ResultWon, -1),
	} {
		if err == nil {
			s.Errorf("an invalid %s was stored", what)
		}
	}
}

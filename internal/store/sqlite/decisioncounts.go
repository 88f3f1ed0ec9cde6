package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// DecisionCounts sums the daily counts by endpoint and result.
func (t *readTx) DecisionCounts(from time.Time) (list []gatehouse.DecisionCount, err error) {
	err = t.each(`SELECT endpoint, result, sum(n) FROM decision_count WHERE tenant = ? AND day >= ?
GROUP BY endpoint, result ORDER BY endpoint, result`, func(r *stmt) error {
		endpoint, result, n := r.Text(), gatehouse.DecisionResult(r.Text()), r.Int()
		if len(list) == 0 || list[len(list)-1].Endpoint != endpoint {
			list = append(list, gatehouse.DecisionCount{Endpoint: endpoint})
		}
		list[len(list)-1].Add(result, n)
		return nil
	}, t.tenant, from.UTC().Truncate(24*time.Hour))
	return list, err
}

// AddDecisions adds n to the day's count.
func (t *tx) AddDecisions(day time.Time, endpoint string, result gatehouse.DecisionResult, n int64) error {
	_, err := t.exec(`INSERT INTO decision_count (tenant, day, endpoint, result, n) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, day, endpoint, result) DO UPDATE SET n = n + excluded.n`,
		t.tenant, day.UTC().Truncate(24*time.Hour), endpoint, string(result), n)
	return err
}

package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// DecisionCounts sums the days since from, by endpoint and result.
func (t *readTx) DecisionCounts(from time.Time) (list []gatehouse.DecisionCount, err error) {
	err = t.each(`SELECT endpoint, result, sum(n)::bigint FROM decision_count WHERE tenant = $1 AND day >= $2
GROUP BY endpoint, result ORDER BY endpoint, result`, func(r *row) error {
		endpoint, result, n := r.Text(), gatehouse.DecisionResult(r.Text()), r.Int()
		if len(list) == 0 || list[len(list)-1].Endpoint != endpoint {
			list = append(list, gatehouse.DecisionCount{Endpoint: endpoint})
		}
		list[len(list)-1].Add(result, n)
		return nil
	}, t.tenant, from.UTC().Truncate(24*time.Hour))
	return list, err
}

// AddDecisions inserts the row of the day or adds to it.
func (t *tx) AddDecisions(day time.Time, endpoint string, result gatehouse.DecisionResult, n int64) error {
	return t.write(`INSERT INTO decision_count (tenant, day, endpoint, result, n) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, day, endpoint, result) DO UPDATE SET n = decision_count.n + excluded.n`,
		t.tenant, day.UTC().Truncate(24*time.Hour), endpoint, string(result), n)
}

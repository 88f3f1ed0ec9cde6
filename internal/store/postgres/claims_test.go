package postgres

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// TestClaimPlans checks the plans of dispatch's frequent statements for empty tables: each part
// must use an index and read no more than it returns.
func TestClaimPlans(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	ctx := context.Background()
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	wrong := regexp.MustCompile(`Seq Scan|Sort|Hash|Materialize|Bitmap|Join Filter|Filter: .*(due_at|picking|sent)`)
	for name, q := range map[string]struct {
		sql  string
		args []any
	}{
		"due tenants": {dueTenants, []any{"", shared.MaxText, int64(0), int64(0), int64(1), int64(16), int64(64)}},
		"claim": {claimPushes,
			[]any{"w", int64(1), int64(1), []string{"default"}, []int64{5}, []int64{3}, int64(0), int64(0)}},
		"marks": {pushMarks, nil},
		"next":  {nextPush, []any{"", shared.MaxText, int64(0), int64(0), []string{"acme"}}},
		"lane":  {dueInLane, []any{"default", "erp", int64(0)}},
	} {
		rows, err := c.Query(ctx, `EXPLAIN `+q.sql, append([]any{pgx.QueryExecModeCacheStatement}, q.args...)...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, line := range lines {
			if wrong.MatchString(line) && !strings.Contains(lines[i-1], "CTE Scan") {
				t.Errorf("%s: %s", name, line)
			}
		}
		if t.Failed() {
			for _, line := range lines {
				t.Log(line)
			}
		}
	}
}

package postgres

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// plansAreAlike compares the plan of each statement with and without the row security policies:
// a policy is checked on rows that an index finds, and prevents no index.
func plansAreAlike(t *testing.T, url string, statements []string) {
	t.Helper()
	bound, free := planner(t, url), planner(t, pgtest.Superuser(url))
	compared := 0
	for _, sql := range statements {
		with, without := bound(sql), free(sql)
		if with == nil {
			continue
		}
		compared++
		if !slices.Equal(with, without) {
			t.Errorf("%s\nwith row security:\n%s\nwithout:\n%s", sql, strings.Join(with, "\n"), strings.Join(without, "\n"))
		}
	}
	if compared < 80 {
		t.Errorf("%d statements only", compared)
	}
}

var (
	plannable = regexp.MustCompile(`(?i)^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
	access    = regexp.MustCompile(`(Seq Scan|Index Scan|Index Only Scan|Bitmap \w+ Scan|Tid Scan|Sort|Memoize).*`)
)

// planner returns a function that explains statements as the store prepares them: how each part
// reaches its rows, and by which index. Index-only scans may become index scans, because a
// policy reads the tenant column.
func planner(t *testing.T, url string) func(sql string) []string {
	t.Helper()
	ctx := context.Background()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range settings() {
		config.RuntimeParams[name] = value
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(ctx) })
	return func(sql string) (plan []string) {
		t.Helper()
		if !plannable.MatchString(sql) {
			return nil
		}
		d, err := c.Prepare(ctx, "p", sql)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		defer func() {
			if _, err := c.Exec(ctx, `DEALLOCATE p`); err != nil {
				t.Error(err)
			}
		}()
		call := `EXPLAIN (COSTS OFF) EXECUTE p`
		if n := len(d.ParamOIDs); n > 0 {
			call += `(` + strings.Repeat(`NULL, `, n-1) + `NULL)`
		}
		rows, err := c.Query(ctx, call, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		plan = []string{}
		for _, line := range lines {
			if a := access.FindString(line); a != "" {
				plan = append(plan, strings.Replace(a, "Index Only Scan", "Index Scan", 1))
			} else if _, by, ok := strings.Cut(line, "Cond: "); ok && len(plan) > 0 {
				plan[len(plan)-1] += " by " + by
			}
		}
		slices.Sort(plan) // the order of the parts of a plan does not matter
		return plan
	}
}

// acrossTenants calls the methods of an UpdateQueues transaction, which covers all tenants.
func acrossTenants(t *testing.T, s *Store) {
	t.Helper()
	err := s.UpdateQueues(t.Context(), func(q gatehouse.Queues) error {
		for _, ask := range []func() error{
			func() error { _, err := q.ExpiredActions(1); return err },
			func() error { _, err := q.(queues).readTx.ExpiredActions(1); return err },
			func() error { _, err := q.ExpiredLeases(1); return err },
			func() error { _, err := q.NextPushAt("acme"); return err },
			func() error { _, err := q.DueTenants("acme", 1, 1); return err },
			func() error {
				_, err := q.ClaimPushes("w", time.Minute, gatehouse.PushShare{Tenant: "acme", Limit: 1, Most: 1})
				return err
			},
			func() error { _, err := q.PurgeIdempotency(q.Now(), 1); return err },
			func() error { _, err := q.UnnumberedLeaves(1); return err },
			func() error {
				return q.InsertCeremony(&gatehouse.Ceremony{Tenant: "acme", Data: []byte{1}, ExpiresAt: q.Now()})
			},
		} {
			if err := ask(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

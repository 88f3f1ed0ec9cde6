package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// holdBatches lets Reads wait in the queue. release starts a batch of them once n wait.
func holdBatches(t testing.TB, s *Store) (release func(n int)) {
	q := &s.reads
	q.mu.Lock()
	q.busy = true
	q.mu.Unlock()
	return func(n int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Microsecond) {
			q.mu.Lock()
			waiting := len(q.waiting)
			if waiting == n || time.Now().After(end) {
				q.busy = false
				s.startReads()
				q.mu.Unlock()
				if waiting != n {
					t.Errorf("%d Reads wait, want %d", waiting, n)
				}
				return
			}
			q.mu.Unlock()
		}
	}
}

// readTogether makes the calls form one batch, and returns their errors.
func readTogether(t testing.TB, s *Store, calls ...func() error) []error {
	t.Helper()
	release := holdBatches(t, s)
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
	}
	release(len(calls))
	wg.Wait()
	return errs
}

// seenVersions reads active versions and has no condition on the tenant.
var seenVersions = reads[tenantRow](`
SELECT r.n, a.version
FROM (SELECT tenant, n FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $2) r
CROSS JOIN LATERAL (SELECT version FROM policy_active OFFSET 0) a`)

// brokenVersions fails on the server.
var brokenVersions = reads[tenantRow](`
SELECT r.n, 1 / (r.n - r.n)
FROM (SELECT tenant, n FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $2) r`)

// slowVersions waits for the sequence called free, for at most 20 s. It waits for no lock, because of lock_timeout.
var slowVersions = reads[tenantRow](`
SELECT r.n, 1
FROM (SELECT tenant, n FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $2) r, wait_until_free()`)

// versions is a Read that wants the versions that a statement finds.
func versions(ctx context.Context, s *Store, tenant string, from statementOf[tenantRow], want ...int64) func() error {
	return func() error {
		var got []int64
		err := s.view(ctx, tenant, true, func(t *readTx) error {
			got = nil
			return t.read(from.ask(func(r *row) error { got = append(got, r.Int()); return nil }, tenantRow{tenant}))
		})
		slices.Sort(got)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%s reads %v, want %v", tenant, got, want)
		}
		return err
	}
}

// withPolicies stores the tenants with a policy each: of version 1 for the first tenant, of version 2 for the
// second, and so on.
func withPolicies(t testing.TB, s *Store, tenants ...string) {
	t.Helper()
	for n, tenant := range tenants {
		err := s.Update(t.Context(), tenant, func(tx gatehouse.Tx) error {
			err := tx.InsertTenant(&gatehouse.Tenant{ID: tenant, CreatedAt: tx.Now()})
			for range n + 1 {
				p := &gatehouse.PolicyVersion{Tenant: tenant, Source: "version: 1", AppliedBy: "a", AppliedAt: tx.Now()}
				_, not := tx.InsertPolicy(p)
				err = errors.Join(err, not)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadBatchOfTenants: a batch is one round trip, and each member sees the rows of its own tenant only. A
// statement that does not name the tenant sees those of the batch's tenants, and no others.
func TestReadBatchOfTenants(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record})
	tenants := []string{"acme", "globex", "initech"}
	withPolicies(t, s, append(tenants, "umbrella")...)
	var calls []func() error
	for range 5 {
		for n, tenant := range tenants {
			calls = append(calls, versions(t.Context(), s, tenant, seenVersions, 1, 2, 3),
				versions(t.Context(), s, tenant, activeVersions, int64(n+1)))
		}
	}
	trips := counter.count(t, "batch", func() {
		if err := errors.Join(readTogether(t, s, calls...)...); err != nil {
			t.Error(err)
		}
	})
	if trips != 1 {
		t.Errorf("%d round trips, want 1", trips)
	}
}

// TestReadBatchOfFailures: a member that fails does not make the others fail.
func TestReadBatchOfFailures(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openTest(t, Config{})
	withPolicies(t, s, "acme")
	own := errors.New("own")
	good := versions(ctx, s, "acme", activeVersions, 1)
	errs := readTogether(t, s, good,
		versions(ctx, s, "acme", brokenVersions),
		func() error { return s.Read(ctx, "acme", func(tx gatehouse.ReadTx) error { tx.Now(); return own }) },
		func() error {
			return s.Read(ctx, "acme", func(tx gatehouse.ReadTx) error {
				_, err := tx.ActivePolicyVersion()
				if _, second := tx.ActivePolicyVersion(); !errors.Is(second, errSecondRead) {
					err = errors.Join(err, fmt.Errorf("a second read: %w", second))
				}
				return err
			})
		}, good)
	if errs[1] == nil || !errors.Is(errs[2], own) {
		t.Errorf("the failures are %v", errs)
	}
	errs[1], errs[2] = nil, nil
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// TestReadBatchMemberGone: a caller who gives up returns at once, whether it waits for a batch or its batch
// waits for the server. The others get their answers. A Read that begins while the batch waits succeeds.
func TestReadBatchMemberGone(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record})
	withPolicies(t, s, "acme")
	statement(t, s.config.URL, `CREATE SEQUENCE free`)
	statement(t, s.config.URL, `CREATE FUNCTION wait_until_free() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..4000 LOOP
    EXIT WHEN (SELECT last_value FROM free) = 2;
    PERFORM pg_sleep(0.005);
  END LOOP;
END $$`)
	release := holdBatches(t, s)
	others := make(chan error, 4)
	start := func(call func() error) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- call() }()
		return ended
	}
	for range 3 {
		go func() { others <- versions(context.Background(), s, "acme", activeVersions, 1)() }()
	}
	go func() { others <- versions(context.Background(), s, "acme", slowVersions, 1)() }()
	early, giveUpEarly := context.WithCancel(t.Context())
	late, giveUpLate := context.WithCancel(t.Context())
	first := start(versions(early, s, "acme", activeVersions, 1))
	second := start(versions(late, s, "acme", activeVersions, 1))
	giveUpEarly()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("a member that waited: %v", err)
	}
	counter.count(t, "batch", func() {
		release(5)
		for sent := 0; sent == 0; time.Sleep(time.Millisecond) {
			counter.mu.Lock()
			sent = len(counter.trips)
			counter.mu.Unlock()
		}
	})
	giveUpLate()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("a member of a batch under way: %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := versions(soon, s, "acme", activeVersions, 1)(); err != nil {
		t.Errorf("while the batch waits: %v", err)
	}
	if len(others) > 0 {
		t.Error("the batch did not wait")
	}
	statement(t, s.config.URL, `SELECT setval('free', 2)`)
	for range 4 {
		if err := <-others; err != nil {
			t.Error(err)
		}
	}
}

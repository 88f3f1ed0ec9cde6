package proof

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// TestFailover loses the primary under load and promotes the standby that its
// commits waited for; the long form repeats this. The replicas find the standby
// by address, and nothing that was answered is lost, repeated or left behind. A data folder has no standby.
func TestFailover(t *testing.T) {
	t.Parallel()
	e := onPostgres
	inLegs(t, e, "failover", goal{"failovers", 1, 100, 10}, func(t *testing.T, l *leg, n int) { failover(t, e, l, n) })
}

func failover(t *testing.T, e engine, l *leg, n int) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	e.dsn = func(testing.TB) string { return pgtest.ClustersURL("postgres", primary, standby) }
	w := newWorldOn(t, e, 4000*n, "")
	load := newLoad(t, w, l.rng, 8)
	for i := range n {
		if i > 0 {
			must(primary.Follow(standby))
			primary, standby = standby, primary
		}
		must(primary.AwaitReplication())
		must(primary.Synchronous(true))
		load.fresh.Store(0)
		load.acks(t, 2*crashAcks)
		must(primary.Down(true))
		must(standby.Promote())
		load.fresh.Store(0)
		load.acks(t, 2*crashAcks)
		l.add("failovers", 1)
	}
	load.stop()
	w.heal(t, 90*time.Second)
	l.add("acknowledgements", load.journal.acks)
	l.add("calls without an answer", int(load.lost.Load()))
	l.add("calls told to come again", int(load.busy.Load()))
	l.add("commits looked up", w.log.said("postgres: an unclear commit was looked up"))
	db := openStore(t, w.gate)
	defer db.Close()
	if lost := rowsOf(t, db,
		`SELECT p.operation, u.connector, u.status, u.error_code, count(*) AS n FROM push u
			JOIN proposal p ON p.seq = u.action_seq
		WHERE u.status <> 'applied' AND NOT (u.status = 'unknown' AND p.operation = 'once') GROUP BY 1, 2, 3, 4`); len(
		lost) > 0 {
		t.Errorf("approved changes were not applied: %v", lost)
	}
	w.check(t, load.journal)
}

package proof

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	usecases "github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
)

// TestArchiveDies makes a server archive actions that ended at least a month ago and kill itself at each
// failpoint on the way. After each death every action is unchanged and in exactly one place, and
// only whole batches are archived. In the end at least half of the actions are archived, and every
// invariant holds.
func TestArchiveDies(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		t.Parallel()
		e.replicas = 1 // so that no other server continues meanwhile
		oneLeg(t, e, "archive", func(t *testing.T, l *leg) { archiveAndDie(t, e, l) })
	})
}

func archiveAndDie(t *testing.T, e engine, l *leg) {
	o := newOld(t, e)
	before, total := o.actions(t), 0
	for _, name := range failpoint.ArchiveNames() {
		nth := 1
		if name == "archive/recorded" {
			nth = 2 // after one that is committed
		}
		o.die(t, name, nth)
		l.add("SIGKILLs at failpoints", 1)
		l.Points[name]++
		n := o.compare(t, name, before)
		if want := map[string]bool{"archive/recorded": true, "archive/committed": true}[name]; (n > total) != want {
			t.Errorf("after %s %d are archived, before it were %d", name, n, total)
		}
		total = n
	}
	s := o.open(t)
	gate := usecases.New(s, nil, silent{}, usecases.Config{}, slog.New(slog.DiscardHandler))
	a, err := gate.NewArchiver(gatehouse.MinRetention, nil)
	if err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		if _, more, err = a.Batch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	n := o.compare(t, "the end", before)
	if n <= total || n < len(before)/2 {
		t.Errorf("%d of %d are archived, %d of them by servers that died", n, len(before), total)
	}
	l.add("actions archived", n)
	(&world{gate: o.gate}).checkDoctor(t)
}

// silent drops hints.
type silent struct{}

func (silent) Notify(string) {}

func (silent) Subscribe(...string) (<-chan struct{}, func()) { return nil, func() {} }

// old is a gate whose store was filled more than a year ago and in which
// everything open expired a month ago.
type old struct{ *gate }

func newOld(t *testing.T, e engine) *old {
	o := &old{&gate{t: t, data: filepath.Join(e.dir(t), "data"), dsn: e.database(t)}}
	if err := os.MkdirAll(o.data, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(o.data, "gatehouse.yaml"), "retention: {finished: 30d}\n")
	o.addServers(e)
	path, err := mortal()
	if err != nil {
		t.Fatal(err)
	}
	o.servers[0].binary, o.servers[0].args = path, []string{"--roles", "sweeper"}

	clock := gatetest.NewClock()
	const day = 24 * time.Hour
	clock.Advance(time.Since(clock.Now()) - gatehouse.MaxCeilingWindow - 40*day)
	s := o.openAt(t, clock.Now)
	w := gatetest.New(t, s, clock)
	w.Fill()
	clock.Advance(gatehouse.MaxCeilingWindow + 8*day)
	for n := 1; n > 0; {
		if n, err = w.Gate.SweepExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Worker.Rescue(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Number()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *old) open(t *testing.T) gatehouse.Store { return o.openAt(t, nil) }

func (o *old) openAt(t *testing.T, clock func() time.Time) gatehouse.Store {
	t.Helper()
	var s gatehouse.Store
	var err error
	if log := slog.New(slog.DiscardHandler); o.dsn != "" {
		s, err = postgres.Open(t.Context(), postgres.Config{URL: o.dsn, Clock: clock, Logger: log, MaxConns: 4})
	} else {
		s, err = sqlite.Open(t.Context(),
			sqlite.Config{Path: filepath.Join(o.data, "gatehouse.db"), Clock: clock, Logger: log})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// actions reads every listed action with all its rows.
func (o *old) actions(t *testing.T) map[string]*gatehouse.Record {
	t.Helper()
	s := o.open(t)
	all := map[string]*gatehouse.Record{}
	if err := s.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error {
		clear(all)
		for _, tenant := range []string{gatehouse.DefaultTenant, "acme"} {
			tx := q.In(tenant)
			for _, archived := range []bool{false, true} {
				page, err := tx.ListActions(gatehouse.ActionFilter{Archived: archived, Limit: gatehouse.MaxLimit})
				if err != nil {
					return err
				}
				if page.NextCursor != "" {
					return fmt.Errorf("%s has more than a page of actions", tenant)
				}
				for _, listed := range page.Items {
					if all[listed.ID] != nil {
						t.Errorf("%s is in both lists", listed.ID)
					}
					if all[listed.ID], err = recordOf(tx, listed.ID); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// recordOf reads an action with its push and receipts, archived or not.
func recordOf(tx gatehouse.ReadTx, id string) (*gatehouse.Record, error) {
	a, err := tx.FindAction(id)
	if err != nil {
		return nil, err
	}
	r := &gatehouse.Record{Action: a}
	if a.Push != nil {
		if r.Push, err = tx.FindPush(a.Push.ID); err != nil {
			return nil, err
		}
	}
	if a.ArchivedAt == nil {
		if a.Comments, err = tx.ListComments(id); err != nil {
			return nil, err
		}
		r.Receipts, err = tx.ListReceipts(id)
		return r, err
	}
	kept, err := tx.FindArchived(id)
	if err != nil {
		return nil, err
	}
	whole, err := kept.Record()
	if err == nil {
		r.Receipts = whole.Receipts
	}
	return r, err
}

// compare compares all actions with their earlier state and counts the archived
// ones.
func (o *old) compare(t *testing.T, after string, want map[string]*gatehouse.Record) (archived int) {
	t.Helper()
	got := o.actions(t)
	for _, r := range got {
		if r.Action.ArchivedAt != nil {
			archived++
			r.Action.ArchivedAt = nil
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("after %s (-before +after):\n%s", after, d)
	}
	return archived
}

// die runs the server until it kills itself at the nth pass of a failpoint.
func (o *old) die(t *testing.T, name string, nth int) {
	t.Helper()
	s := o.servers[0]
	env := s.env
	s.env = append(env[:len(env):len(env)], "GATEHOUSE_FAILPOINT="+name+":"+strconv.Itoa(nth))
	err := s.launch()
	s.env = env
	if err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		select {
		case err = <-s.exited:
			s.cmd = nil
		case <-ctx.Done():
			t.Fatalf("the archiver does not reach %s %d times", name, nth)
		}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("it did not die at %s: %v\n%s", name, err, o.log.String())
	}
}

package gate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

const day = 24 * time.Hour

func (w *world) archiver(retention time.Duration) *gate.Archiver {
	w.t.Helper()
	a, err := w.gate.NewArchiver(retention, nil)
	must(w.t, err)
	return a
}

// pass lets an archiver make one pass over the store.
func (w *world) pass(a *gate.Archiver) (n int) {
	w.t.Helper()
	for {
		one, more, err := a.Batch(w.t.Context())
		if err != nil {
			w.t.Error(err)
		}
		if n += one; !more || err != nil {
			return n
		}
	}
}

func (w *world) reject(ctx context.Context, a *gatehouse.Action) {
	w.t.Helper()
	if _, err := w.gate.Decide(ctx, a.ID,
		gatehouse.Decision{Decision: gatehouse.Reject, Digest: a.Digest, Notes: "no"}); err != nil {
		w.t.Fatal(err)
	}
}

func TestRetentionHasALeast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	if _, err := w.gate.NewArchiver(gatehouse.MinRetention-1, nil); err == nil {
		t.Error("an archiver with a retention below the minimum was accepted")
	}
}

// TestArchiverKeepsTheRetention: nothing is archived before its time, even when the
// clock goes back.
func TestArchiverKeepsTheRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	old := w.propose(bot, nil)
	w.clock.Advance(time.Hour)
	w.reject(ana, old)
	pending := w.propose(bot, nil)
	a := w.archiver(60 * day)
	w.clock.Advance(60 * day)
	if n := w.pass(a); n != 0 {
		t.Errorf("%d were archived at the end of the retention, not after it", n)
	}
	w.clock.Advance(-59 * day)
	young := w.propose(bot, nil) // the store's clock does not go back
	w.reject(ana, young)
	w.clock.Advance(59*day + time.Second)
	if n := w.pass(a); n != 1 {
		t.Errorf("%d were archived", n)
	}
	if w.find(old.ID).ArchivedAt == nil || w.find(young.ID).ArchivedAt != nil || w.find(pending.ID).ArchivedAt != nil {
		t.Error("the archiver took the wrong ones")
	}
	if n := w.leaves(gatehouse.EventArchived); n != 1 {
		t.Errorf("%d leaves", n)
	}
}

// TestArchivedAnswers: an archived action gives the same answers as any other ended
// action.
func TestArchivedAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	keyed := func(p *gatehouse.Proposal) { p.IdempotencyKey = "order-7" }
	a := w.propose(bot, keyed)
	w.reject(ana, a)
	want, err := w.gate.Evidence(w.admin, a.ID)
	must(t, err)
	ask := func() (answers []string) {
		t.Helper()
		say := func(what string, v any, err error) {
			var e *gatehouse.Error
			code := ""
			if errors.As(err, &e) {
				code = string(e.Code)
			} else if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			answers = append(answers, fmt.Sprintf("%s: %v %s", what, v, code))
		}
		d := gatehouse.Decision{Digest: a.Digest}
		for _, kind := range []gatehouse.DecisionKind{gatehouse.Approve, gatehouse.Reject} {
			d.Decision = kind
			answer, err := w.gate.Decide(ana, a.ID, d)
			result := ""
			if answer != nil {
				result = string(answer.Result)
			}
			say("decide "+string(kind), result, err)
			short, err := w.gate.Answer(ana, a.Approval.ID, d)
			result = ""
			if short != nil {
				result = string(short.Status)
			}
			say("answer "+string(kind), result, err)
		}
		_, err := w.gate.Cancel(bot, a.ID)
		say("cancel", nil, err)
		_, err = w.gate.Reverse(bot, a.ID, gatehouse.ReverseRequest{})
		say("reverse", nil, err)
		_, err = w.gate.Revise(bot, a.ID, &a.Proposal)
		say("revise", nil, err)
		waited, err := w.gate.WaitAction(w.admin, a.ID, time.Minute, gatehouse.UntilFinished)
		say("wait", waited.Status, err)
		return answers
	}
	before := ask()
	w.clock.Advance(31 * day)
	if n := w.pass(w.archiver(gatehouse.MinRetention)); n != 1 {
		t.Fatalf("%d were archived", n)
	}
	if d := cmp.Diff(before, ask()); d != "" {
		t.Errorf("answers (-live +archived):\n%s", d)
	}
	got, err := w.gate.Evidence(w.admin, a.Approval.ID)
	must(t, err)
	if got.Action.ArchivedAt == nil {
		t.Error("it is not archived")
	}
	got.Action.ArchivedAt = nil
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("evidence (-live +archived):\n%s", d)
	}
	same, replayed, err := w.gate.Propose(bot, proposal(keyed))
	if err != nil || !replayed || same.ID != a.ID {
		t.Errorf("its key again: %v, replayed %v, %v", same, replayed, err)
	}
	other := proposal(keyed)
	other.Rationale = "something else"
	if _, _, err := w.gate.Propose(bot, other); gatehouse.CodeOf(err) != gatehouse.CodeDuplicateKey {
		t.Errorf("its key for something else: %v", err)
	}
}

// dying is a store whose process dies by SIGKILL around a commit: before or after
// the commit of the nth Update.
type dying struct {
	gatehouse.Store
	n     int
	after bool
}

func (s *dying) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	s.n--
	err := s.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
		err := fn(tx)
		if err == nil && s.n == 0 && !s.after {
			die()
		}
		return err
	})
	if s.n == 0 && s.after {
		die()
	}
	return err
}

func (s *dying) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	s.n--
	err := s.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		err := fn(q)
		if err == nil && s.n == 0 && !s.after {
			die()
		}
		return err
	})
	if s.n == 0 && s.after {
		die()
	}
	return err
}

func die() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	panic(fmt.Sprint("it lives on: ", err))
}

const dyingFile, dyingWhen = "GATEHOUSE_TEST_ARCHIVE_FILE", "GATEHOUSE_TEST_ARCHIVE_WHEN"

// TestArchiverDies kills an archiver during a batch and right after one. Each
// action is whole and in one place, and the next archiver continues.
func TestArchiverDies(t *testing.T) {
	later := time.Date(2027, 11, 20, 12, 0, 0, 0, time.UTC)
	if file := os.Getenv(dyingFile); file != "" {
		archiveAndDie(t, file, later)
		return
	}
	t.Parallel()
	const actions, batch = 40, 16
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	want := map[string]*gatehouse.Action{}
	for range actions {
		a := w.propose(bot, nil)
		w.reject(ana, a)
		want[a.ID] = w.find(a.ID)
	}
	must(t, w.store.Close())
	for i, c := range []struct {
		when     string
		archived int
	}{{"before 1", 0}, {"after 1", batch}, {"before 2", 2 * batch}} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestArchiverDies$")
		cmd.Env = append(os.Environ(), dyingFile+"="+w.path, dyingWhen+"="+c.when)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Exited() {
			t.Fatalf("the archiver was not killed: %v\n%s", err, out)
		}
		store := migratedfile.Open(t, w.path, func() time.Time { return later })
		archived := 0
		err = store.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
			for id, before := range want {
				a, err := tx.FindAction(id)
				if err != nil {
					return err
				}
				if a.ArchivedAt != nil {
					archived++
				}
				a.ArchivedAt = nil
				if d := cmp.Diff(before, a); d != "" {
					t.Errorf("after death %d (-before +after):\n%s", i, d)
				}
			}
			page, err := tx.ListActions(gatehouse.ActionFilter{Limit: gatehouse.MaxLimit})
			if len(page.Items) != actions-archived {
				t.Errorf("%d of %d are archived, %d are live", archived, actions, len(page.Items))
			}
			return err
		})
		must(t, err)
		if archived != c.archived {
			t.Errorf("killed %s: %d are archived, want %d", c.when, archived, c.archived)
		}
		report, err := audit.Check(t.Context(), store, gatehouse.DefaultTenant)
		if err == nil {
			err = report.Err()
		}
		must(t, errors.Join(err, store.Close()))
	}
}

func archiveAndDie(t *testing.T, file string, now time.Time) {
	t.Helper()
	store := migratedfile.Open(t, filepath.Clean(file), func() time.Time { return now })
	s := &dying{Store: store}
	when, n, _ := strings.Cut(os.Getenv(dyingWhen), " ")
	if _, err := fmt.Sscan(n, &s.n); err != nil {
		t.Fatal(err)
	}
	s.after = when == "after"
	g := gate.New(s, &targets{}, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	a, err := g.NewArchiver(gatehouse.MinRetention, nil)
	for err == nil {
		_, _, err = a.Batch(context.Background())
	}
	t.Fatal(err)
}

// TestArchiversSideBySide runs several replicas on one store.
func TestArchiversSideBySide(t *testing.T) {
	t.Parallel()
	const actions = 50
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	for range actions {
		w.reject(ana, w.propose(bot, nil))
	}
	w.clock.Advance(31 * day)
	total := make(chan int)
	for range 3 {
		go func() { total <- w.pass(w.archiver(gatehouse.MinRetention)) }()
	}
	if n := <-total + <-total + <-total; n != actions {
		t.Errorf("%d were archived, of %d", n, actions)
	}
}

// planning is a store whose plans of the archive are given.
type planning struct {
	gatehouse.Store
	plans []gatehouse.ArchivePlan
}

type planningQueues struct {
	gatehouse.ReadQueues
	store *planning
}

func (s *planning) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error { return fn(planningQueues{q, s}) })
}

func (q planningQueues) PlanArchive(int64, time.Time, int) (*gatehouse.ArchivePlan, error) {
	plan := q.store.plans[0]
	q.store.plans = q.store.plans[1:]
	return &plan, nil
}

type behind []time.Duration

func (*behind) Archived(int)             {}
func (b *behind) Behind(d time.Duration) { *b = append(*b, d) }

// TestArchiverBehind: the metric measures the oldest action of a pass, wherever the scan finds that action.
func TestArchiverBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	before := w.clock.Now().Add(-gatehouse.MinRetention)
	late := func(d time.Duration, next int64) gatehouse.ArchivePlan {
		return gatehouse.ArchivePlan{Oldest: before.Add(-d), Next: next}
	}
	s := &planning{w.store, []gatehouse.ArchivePlan{late(time.Hour, 5), late(3*time.Hour, 9), late(time.Minute, 0), {}}}
	g := gate.New(s, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	var got behind
	a, err := g.NewArchiver(gatehouse.MinRetention, &got)
	must(t, err)
	for range 4 {
		_, _, err := a.Batch(t.Context())
		must(t, err)
	}
	if want := (behind{time.Hour, 3 * time.Hour, 3 * time.Hour, 0}); !slices.Equal(got, want) {
		t.Errorf("behind by %v, want %v", got, want)
	}
}

// choking is a store that fails every transaction that archives one certain action.
type choking struct {
	gatehouse.Store
	on string
}

type chokingTx struct {
	gatehouse.Tx
	on string
}

var errChoked = errors.New("choked")

type chokingQueues struct {
	gatehouse.Queues
	on string
}

func (q chokingQueues) In(tenant string) gatehouse.Tx { return chokingTx{q.Queues.In(tenant), q.on} }

func (s *choking) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return s.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error { return fn(chokingQueues{q, s.on}) })
}

func (tx chokingTx) PutArchived(list []*gatehouse.Archived) error {
	for _, a := range list {
		if a.ID == tx.on {
			return errChoked
		}
	}
	return tx.Tx.PutArchived(list)
}

// TestOneThatFails: an action that cannot be archived does not block the others,
// and is retried in the next pass.
func TestOneThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	var ids []string
	for range 5 {
		a := w.propose(bot, nil)
		w.reject(ana, a)
		ids = append(ids, a.ID)
	}
	w.clock.Advance(31 * day)
	s := &choking{w.store, ids[2]}
	g := gate.New(s, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	a, err := g.NewArchiver(gatehouse.MinRetention, nil)
	must(t, err)
	for range 2 {
		if _, more, err := a.Batch(t.Context()); !errors.Is(err, errChoked) || more {
			t.Errorf("more %v, error %v", more, err)
		}
		for i, id := range ids {
			if archived := w.find(id).ArchivedAt != nil; archived != (i != 2) {
				t.Errorf("action %d is archived: %v", i, archived)
			}
		}
	}
	s.on = ""
	if n, _, err := a.Batch(t.Context()); n != 1 || err != nil {
		t.Errorf("%d are archived in the end, %v", n, err)
	}
}

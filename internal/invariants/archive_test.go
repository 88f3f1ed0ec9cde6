package invariants

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// TestArchivingChangesNoAnswer fills a store, archives it batch by batch, and
// repeats the same queries after each batch: every action by its id, its
// approval and its key, its evidence, its push, and the answer of each
// modifying call. The log only grows.
func TestArchivingChangesNoAnswer(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := migratedfile.New(t)
		clock := gatetest.NewClock()
		s := migratedfile.Open(t, path, clock.Now)
		archiving(t, s, clock, func(t *testing.T) (*Target, error) { return OpenFile(t.Context(), path, quiet()) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn := migrated.Database(t)
		clock := gatetest.NewClock()
		s := migrated.Open(t, dsn, clock.Now)
		archiving(t, s, clock, func(t *testing.T) (*Target, error) { return OpenDatabase(t.Context(), dsn, quiet()) })
	})
}

func archiving(t *testing.T, s gatehouse.Store, clock *gatetest.Clock, open func(*testing.T) (*Target, error)) {
	t.Helper()
	w := gatetest.New(t, s, clock)
	w.Fill()
	w.FillRuns()
	// Past every ceiling's window; pending actions expire.
	clock.Advance(gatehouse.MaxCeilingWindow + time.Hour)
	for n := 1; n > 0; {
		var err error
		if n, err = w.Gate.SweepExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Worker.Rescue(t.Context()); err != nil {
		t.Fatal(err)
	}
	purge(t, s)
	w.Number()
	before := answers(t, w)
	if len(before) < 25 {
		t.Fatalf("%d actions", len(before))
	}
	head := headOf(t, s)
	a, err := w.Gate.NewArchiver(gatehouse.MinRetention, nil)
	must(t, err)
	archived := 0
	for more := true; more; {
		n, again, err := a.Batch(t.Context())
		must(t, err)
		archived, more = archived+n, again
		compare(t, before, answers(t, w))
	}
	w.Number()
	inArchive := 0
	for id, after := range answers(t, w) {
		pinned := !ended(after.action) || after.action.Target.EntityRef == "late"
		if after.action.ArchivedAt != nil {
			inArchive++
		}
		if after.action.ArchivedAt != nil && pinned {
			t.Errorf("%s (%s, %s) is archived", id, after.action.Target.EntityRef, after.action.Status)
		}
	}
	// The rest belongs to the other tenant.
	if inArchive < 10 || archived != 2*inArchive {
		t.Errorf("%d were archived, %d of them of one of two tenants", archived, inArchive)
	}
	r := check(t, func() (*Target, error) { return open(t) }, Options{KnownHeads: []gatehouse.LogHead{head}})
	for _, i := range r.Invariants {
		for _, v := range i.Listed {
			t.Errorf("%d %s: %+v", i.Number, i.Title, v)
		}
	}
	must(t, s.Close())
}

// purge deletes sessions and their step-ups, as servers do after a month.
func purge(t *testing.T, s gatehouse.Store) {
	t.Helper()
	err := s.UpdateQueues(t.Context(), func(q gatehouse.Queues) error {
		_, err := q.PurgeSessions(q.Now().Add(-gatehouse.SessionKept), 1000)
		return err
	})
	must(t, err)
}

func headOf(t *testing.T, s gatehouse.Store) (head gatehouse.LogHead) {
	t.Helper()
	err := s.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) (err error) {
		head, err = audit.Head(tx, gatehouse.DefaultTenant)
		return err
	})
	must(t, err)
	return head
}

// told is the result of every query about one action.
type told struct {
	action   *gatehouse.Action
	receipts []*gatehouse.Receipt
	entries  []*gatehouse.Entry
	said     []string
}

// answers runs the queries for all actions of the default tenant.
func answers(t *testing.T, w *gatetest.World) map[string]*told {
	t.Helper()
	out := map[string]*told{}
	for _, archive := range []bool{false, true} {
		f := gatehouse.ActionFilter{Archived: archive, Limit: 7}
		for {
			page, err := w.Gate.ListActions(w.Admin(), f)
			must(t, err)
			for _, a := range page.Items {
				if out[a.ID] != nil {
					t.Errorf("%s is listed twice", a.ID)
				}
				if archive != (a.ArchivedAt != nil) {
					t.Errorf("%s is in the wrong list", a.ID)
				}
				out[a.ID] = ask(t, w, a)
			}
			if f.Cursor = page.NextCursor; f.Cursor == "" {
				break
			}
		}
	}
	return out
}

func ask(t *testing.T, w *gatetest.World, listed *gatehouse.Action) *told {
	t.Helper()
	e, err := w.Gate.Evidence(w.Admin(), listed.ID)
	must(t, err)
	out := &told{action: e.Action, receipts: e.Receipts, entries: e.Entries}
	same := func(what string, a *gatehouse.Action, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s of %s: %v", what, listed.ID, err)
		}
		want, got := *e.Action, *a
		if got.Comments == nil { // lists and the store read neither Comments nor CanceledBy
			want.Comments = nil
		}
		if got.CanceledBy == "" {
			want.CanceledBy = ""
		}
		if reflect.DeepEqual(want, got) { // which takes a tenth of the time of a diff
			return
		}
		if d := cmp.Diff(&want, &got); d != "" {
			t.Errorf("%s of %s (-evidence +this):\n%s", what, listed.ID, d)
		}
	}
	same("the list's row", listed, nil)
	a, err := w.Gate.FindAction(w.Admin(), listed.ID)
	same("the id", a, err)
	if listed.Approval != nil {
		a, err = w.Gate.FindAction(w.Admin(), listed.Approval.ID)
		same("the approval", a, err)
	}
	err = w.Store.View(t.Context(), listed.Tenant, func(tx gatehouse.ReadTx) (err error) {
		a, err = tx.FindActionByKey(listed.IdempotencyKey)
		return err
	})
	same("the key", a, err)
	if a.ContentHash == ([32]byte{}) {
		t.Errorf("%s has lost its content hash", a.ID)
	}
	if !ended(listed) {
		return out // the modifying calls below could change an open action
	}
	say := func(what string, err error) {
		t.Helper()
		var e *gatehouse.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%s of %s: %v", what, listed.ID, err)
		}
		out.said = append(out.said, fmt.Sprintf("%s: %s", what, gatehouse.CodeOf(err)))
	}
	for _, kind := range []gatehouse.DecisionKind{gatehouse.Approve, gatehouse.Reject} {
		_, err = w.Gate.Decide(w.As("ben"), listed.ID, gatehouse.Decision{Decision: kind, Digest: listed.Digest})
		say("decide "+string(kind), err)
	}
	_, err = w.Gate.Cancel(w.As("bot"), listed.ID)
	say("cancel", err)
	_, err = w.Gate.Revise(w.As("bot"), listed.ID, &gatehouse.Proposal{})
	say("revise", err)
	if p := listed.Push; p != nil {
		_, err = w.Gate.ResolvePush(w.Admin(), p.ID, gatehouse.Resolution{Outcome: "failed", Reason: "r"})
		say("resolve", err)
		answer, err := w.Gate.ReplayDeadLetters(w.Admin(), gatehouse.ReplayRequest{IDs: []string{p.ID}})
		if say("replay", err); err == nil {
			// Its receipt is in the archive now; the result is the same.
			out.said = append(out.said, "replay: "+answer.Results[0].Skipped)
		}
	}
	if listed.ArchivedAt != nil {
		_, err = w.Gate.Reverse(w.As("bot"), listed.ID, gatehouse.ReverseRequest{})
		if gatehouse.CodeOf(err) != gatehouse.CodeNotReversible {
			t.Errorf("reversing %s, which is archived: %v", listed.ID, err)
		}
	}
	return out
}

func compare(t *testing.T, before, after map[string]*told) {
	t.Helper()
	if d := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))); d != "" {
		t.Fatalf("actions (-before +after):\n%s", d)
	}
	for id, want := range before {
		got := *after[id]
		a := *got.action
		a.ArchivedAt = nil
		got.action = &a
		if reflect.DeepEqual(*want, got) {
			continue
		}
		if d := cmp.Diff(*want, got, cmp.AllowUnexported(told{})); d != "" {
			t.Errorf("%s (-before +after):\n%s", id, d)
		}
	}
}

// TestDocuments packs random actions into documents and reads them back.
func TestDocuments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 20, -1)
		now := time.UnixMicro(rapid.Int64Range(0, 1<<50).Draw(t, "now")).UTC()
		deep := gatehouse.JSON(`1e400`)
		for range rapid.IntRange(0, gatehouse.MaxDepth-1).Draw(t, "depth") {
			deep = gatehouse.ArrayJSON(deep)
		}
		a := &gatehouse.Action{
			ID: "act_1", Tenant: "default", Revision: 1, Status: gatehouse.StatusApplied, ProposedAt: now, FinishedAt: &now,
			DecidedAt: &now,
			Proposal: gatehouse.Proposal{
				ActionType: text.Draw(t, "type"), ProposedChange: deep, CurrentState: gatehouse.StringJSON(text.Draw(t, "state")),
				Rationale: text.Draw(t, "rationale"), IdempotencyKey: text.Draw(t, "key"),
				Target: gatehouse.Target{EntityRef: text.Draw(t, "ref")},
			},
			Policy: gatehouse.PolicyOutcome{Rules: rapid.SliceOf(text).Draw(t, "rules")},
		}
		copy(a.ContentHash[:], text.Draw(t, "hash"))
		p := &gatehouse.Push{ID: "psh_1", Tenant: a.Tenant, ActionID: a.ID, Status: gatehouse.PushApplied,
			AttemptBase: rapid.IntRange(0, 9).Draw(t, "base"), CreatedAt: now, NotBefore: now}
		in := &gatehouse.Record{Action: a, Push: p,
			Receipts: []*gatehouse.Receipt{{ID: "rcp_1", Error: text.Draw(t, "error"), RequestMetadata: deep, At: now}}}
		archived, err := gatehouse.NewArchived(in, "arc_1", now)
		if err != nil {
			t.Fatal(err)
		}
		out, err := archived.Record()
		if err != nil {
			t.Fatal(err)
		}
		want := *a
		want.Push, want.Receipt, want.ArchivedAt = p.Summary(), in.Receipts[0], &now
		if d := cmp.Diff(&want, out.Action); d != "" {
			t.Errorf("the action (-in +out):\n%s", d)
		}
		if d := cmp.Diff(p, out.Push); d != "" {
			t.Errorf("the push (-in +out):\n%s", d)
		}
		// One changed byte makes the document unreadable.
		i := rapid.IntRange(0, len(archived.Document)-1).Draw(t, "byte")
		bytes := []byte(archived.Document)
		bytes[i] ^= 1
		archived.Document = gatehouse.JSON(bytes)
		if _, err := archived.Record(); !errors.Is(err, gatehouse.ErrArchiveDamaged) {
			t.Errorf("a document with another byte at %d: %v", i, err)
		}
	})
}

// ended reports whether an action can no longer change.
func ended(a *gatehouse.Action) bool {
	open := a.Status == gatehouse.StatusFailed && a.Target.EntityRef != "discarded"
	return a.Status.Archivable() && !open
}

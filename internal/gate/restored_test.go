package gate_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// TestMarkUnknown marks pushes under way in a store of two tenants: each
// administrator marks the pushes of their own tenant, up to a limit, once. Earlier
// lease holders can write no more.
func TestMarkUnknown(t *testing.T) {
	t.Parallel()
	clock := gatetest.NewClock()
	store := migratedfile.Open(t, migratedfile.New(t), clock.Now)
	w := gatetest.New(t, store, clock)
	w.Fill()
	keeper := keyHolder(t, w, w.AcmeKey)
	made := clock.Now().Add(time.Second)
	clock.Advance(time.Minute)
	after := w.Propose("made after the restore", "note", 1)

	underWay := func(tenant string) (list []*gatehouse.Push) {
		t.Helper()
		must(t, store.View(t.Context(), tenant, func(tx gatehouse.ReadTx) error {
			list = nil
			for _, status := range []gatehouse.PushStatus{gatehouse.PushQueued, gatehouse.PushPicking, gatehouse.PushSent} {
				page, err := tx.ListPushes(gatehouse.PushFilter{Status: status, Limit: gatehouse.MaxLimit})
				if err != nil {
					return err
				}
				list = append(list, page.Items...)
			}
			return nil
		}))
		return list
	}
	held := underWay(gatehouse.DefaultTenant)
	leased := 0
	for _, p := range held {
		if p.LeaseOwner != "" {
			leased++
		}
	}
	if len(held) < 3 || leased == 0 {
		t.Fatalf("%d pushes are under way, %d of them leased", len(held), leased)
	}
	mark := func(ctx context.Context, r gatehouse.MarkUnknownRequest) *gatehouse.MarkUnknownAnswer {
		t.Helper()
		r.Before = made
		out, err := w.Gate.MarkUnknown(ctx, r)
		must(t, err)
		return out
	}
	no := false

	if _, err := w.Gate.MarkUnknown(w.As("bot"),
		gatehouse.MarkUnknownRequest{Before: made}); gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
		t.Errorf("an agent marks: %v", err)
	}
	if _, err := w.Gate.MarkUnknown(w.Admin(),
		gatehouse.MarkUnknownRequest{}); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("without a time: %v", err)
	}
	if _, err := w.Gate.MarkUnknown(w.Admin(),
		gatehouse.MarkUnknownRequest{Before: made, Tenant: "acme"}); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Errorf("an administrator of default names acme: %v", err)
	}
	for _, m := range mark(w.Admin(), gatehouse.MarkUnknownRequest{}).Items {
		if m.Tenant != gatehouse.DefaultTenant {
			t.Errorf("an administrator of default is shown %+v", m)
		}
	}
	if len(underWay("acme")) == 0 {
		t.Fatal("nothing of acme is under way")
	}
	if _, err := w.Gate.MarkUnknown(keeper,
		gatehouse.MarkUnknownRequest{Before: made, Tenant: gatehouse.DefaultTenant}); gatehouse.CodeOf(
		err) != gatehouse.CodeNotFound {
		t.Errorf("another tenant's: %v", err)
	}
	if _, err := w.Gate.MarkUnknown(w.Admin(),
		gatehouse.MarkUnknownRequest{Before: made, Tenant: "nobody"}); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Errorf("of a tenant that does not exist: %v", err)
	}
	for _, m := range mark(keeper, gatehouse.MarkUnknownRequest{DryRun: &no}).Items {
		if m.Tenant != "acme" {
			t.Errorf("the administrator of acme has marked %+v", m)
		}
	}
	if n := len(underWay("acme")); n != 0 {
		t.Errorf("%d are left in acme", n)
	}
	first := mark(w.Admin(), gatehouse.MarkUnknownRequest{DryRun: &no, Limit: 1})
	if first.Marked != 1 || !first.More {
		t.Errorf("one of several: %+v", first)
	}
	rest := mark(w.Admin(), gatehouse.MarkUnknownRequest{DryRun: &no})
	if rest.More || rest.Marked+first.Marked+1 != len(held) {
		t.Errorf("%d and %d are marked, of %d, one of them made later", first.Marked, rest.Marked, len(held))
	}
	if again := mark(w.Admin(), gatehouse.MarkUnknownRequest{DryRun: &no}); again.Marked != 0 || len(again.Items) != 0 {
		t.Errorf("marked twice: %+v", again)
	}
	left := underWay(gatehouse.DefaultTenant)
	if len(left) != 1 || left[0].ActionID != after.ID {
		t.Errorf("%d are left, besides the one that was made later", len(left))
	}
	for _, p := range held {
		if p.ActionID == after.ID {
			continue
		}
		err := store.Update(
			t.Context(),
			p.Tenant,
			func(tx gatehouse.Tx) error { return tx.UpdatePush(p, p.Status, p.Generation) },
		)
		if !errors.Is(err, gatehouse.ErrConflict) {
			t.Errorf("the former holder of a push that was %s writes: %v", p.Status, err)
		}
		a, err := w.Gate.FindAction(w.Admin(), p.ActionID)
		must(t, err)
		if a.Status != gatehouse.StatusUnknown || a.Push.Status != gatehouse.PushUnknown || a.Push.Attempts < 1 ||
			a.FinishedAt == nil {
			t.Errorf("it was %s, and is %s with %+v", p.Status, a.Status, a.Push)
		}
	}
}

// oneUpdateStore fails every transaction of Update but the first.
type oneUpdateStore struct {
	gatehouse.Store
	updates int
}

func (s *oneUpdateStore) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	if s.updates++; s.updates > 1 {
		return errors.New("the store is away")
	}
	return s.Store.Update(ctx, tenant, fn)
}

// TestMarkUnknownFailsMidway: pushes that are marked before a failure are in the answer, and the failure is in the
// log. The next call returns the failure.
func TestMarkUnknownFailsMidway(t *testing.T) {
	t.Parallel()
	clock := gatetest.NewClock()
	store := migratedfile.Open(t, migratedfile.New(t), clock.Now)
	w := gatetest.New(t, store, clock)
	w.Fill()
	w.Gate.Store = &oneUpdateStore{Store: store}
	var logged bytes.Buffer
	w.Gate.Log = slog.New(slog.NewTextHandler(&logged, nil))
	no := false
	r := gatehouse.MarkUnknownRequest{Before: clock.Now().Add(time.Second), DryRun: &no}
	if out, err := w.Gate.MarkUnknown(w.Admin(), r); err != nil || out.Marked != 1 || len(out.Items) != 1 || !out.More {
		t.Errorf("%+v, %v", out, err)
	}
	if text := logged.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "the store is away") {
		t.Errorf("logged %q", text)
	}
	if _, err := w.Gate.MarkUnknown(w.Admin(), r); err == nil {
		t.Error("the failure is lost")
	}
}

// TestPreviewArchiveOfOneTenant: each administrator sees the counts of their own tenant.
func TestPreviewArchiveOfOneTenant(t *testing.T) {
	t.Parallel()
	clock := gatetest.NewClock()
	store := migratedfile.Open(t, migratedfile.New(t), clock.Now)
	w := gatetest.New(t, store, clock)
	w.Fill()
	keeper := keyHolder(t, w, w.AcmeKey)
	no := false
	marked, err := w.Gate.MarkUnknown(keeper,
		gatehouse.MarkUnknownRequest{Before: clock.Now().Add(time.Second), DryRun: &no})
	if err != nil || marked.Marked == 0 {
		t.Fatalf("%+v, %v", marked, err)
	}
	for _, p := range marked.Items {
		applied, err := w.Gate.ResolvePush(keeper, p.PushID,
			gatehouse.Resolution{Outcome: "applied", Reason: "it is there"})
		if err != nil || applied.ErrorCode != "" || applied.LastError != "" {
			t.Fatalf("%+v, %v", applied, err)
		}
	}
	clock.Advance(40 * day)
	// The plan of the whole store has the right counts: a preview that counts all
	// tenants differs from them.
	want := map[string]int64{}
	err = store.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error {
		plan, err := q.PlanArchive(0, q.Now().Add(-31*day), 1000)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, f := range plan.Families {
			if !seen[f.IDs[0]] {
				seen[f.IDs[0]] = true
				want[f.Tenant] += int64(len(f.IDs))
			}
		}
		return nil
	})
	if err != nil || want["acme"] == 0 || want[gatehouse.DefaultTenant] == 0 {
		t.Fatalf("the plan has %v, %v", want, err)
	}
	for tenant, ctx := range map[string]context.Context{"acme": keeper, gatehouse.DefaultTenant: w.Admin()} {
		p, err := w.Gate.PreviewArchive(ctx, 31*day)
		must(t, err)
		if len(p.Tenants) != 1 || p.Tenants[0].Tenant != tenant || p.Actions == 0 || p.Tenants[0].Actions != p.Actions {
			t.Errorf("%s is told %+v", tenant, p)
		}
		if int64(p.Actions) != want[tenant] {
			t.Errorf("%s gets %d actions, its own are %d", tenant, p.Actions, want[tenant])
		}
	}
}

// keyHolder returns a context of the principal with a key.
func keyHolder(t *testing.T, w *gatetest.World, key string) context.Context {
	t.Helper()
	p, err := w.Gate.Authenticate(t.Context(), key)
	must(t, err)
	return gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: p, StepUp: true, Via: gatehouse.ViaAPI})
}

// TestPreviewArchive counts what the archiver then moves, and moves nothing itself.
func TestPreviewArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	var ended []*gatehouse.Action
	for range 3 {
		a := w.propose(bot, nil)
		w.reject(ana, a)
		ended = append(ended, w.find(a.ID))
		w.clock.Advance(time.Hour)
	}
	old := w.propose(bot, nil)
	if _, err := w.gate.Revise(bot, old.ID, proposal(nil)); err != nil { // a family, one of which stays open
		t.Fatal(err)
	}
	if _, err := w.gate.PreviewArchive(w.admin, 0); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("without any retention: %v", err)
	}
	if _, err := w.gate.PreviewArchive(ana, 30*day); gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
		t.Errorf("for anybody: %v", err)
	}
	w.clock.Advance(31*day - 2*time.Hour)
	for range 2 { // a preview changes nothing
		p, err := w.gate.PreviewArchive(w.admin, gatehouse.MinRetention)
		must(t, err)
		if p.Actions != 3 || !p.Complete || p.Bytes == 0 || len(p.Tenants) != 1 || p.Tenants[0].Actions != 3 ||
			!p.Oldest.Equal(ended[0].EndedAt()) || !p.Newest.Equal(ended[2].EndedAt()) || p.Configured != nil {
			t.Errorf("%+v", p)
		}
	}
	if p, err := w.gate.PreviewArchive(w.admin, 31*day-30*time.Minute); err != nil || p.Actions != 2 {
		t.Errorf("the third is younger: %+v, %v", p, err)
	}
	if n := w.pass(w.archiver(gatehouse.MinRetention)); n != 3 {
		t.Errorf("%d were archived", n)
	}
	if p, err := w.gate.PreviewArchive(w.admin, gatehouse.MinRetention); err != nil || p.Actions != 0 || p.Oldest != nil {
		t.Errorf("after the archiver: %+v, %v", p, err)
	}
}

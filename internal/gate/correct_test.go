package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// dead brings an approved action's push to failed or unknown, as the dispatcher would.
func (w *world) dead(a *gatehouse.Action, to gatehouse.PushStatus, code, says string) {
	w.t.Helper()
	err := w.store.Update(w.t.Context(), a.Tenant, func(tx gatehouse.Tx) error {
		p, err := tx.LockPush(a.Push.ID)
		if err != nil {
			return err
		}
		now := tx.Now()
		until := now.Add(time.Minute)
		for _, next := range []gatehouse.PushStatus{gatehouse.PushPicking, gatehouse.PushSent, to} {
			from, generation := p.Status, p.Generation
			p.Status = next
			switch next {
			case gatehouse.PushPicking:
				p.Generation++
				p.LeaseOwner, p.LeaseUntil, p.PickedAt, p.NextAttempt = "me", &until, &now, nil
			case gatehouse.PushSent:
				p.Attempts, p.SentAt = 1, &now
			default:
				p.ErrorCode, p.LastError, p.FinishedAt, p.LeaseOwner, p.LeaseUntil = code, "refused", &now, "", nil
			}
			if err := tx.UpdatePush(p, from, generation); err != nil {
				return err
			}
		}
		p.TargetSays = says
		if err := tx.MarkDeadLetter(p, a.EffectHash()); err != nil {
			return err
		}
		end := gatehouse.StatusFailed
		if to == gatehouse.PushUnknown {
			end = gatehouse.StatusUnknown
		}
		for _, m := range []gatehouse.ActionMove{
			{From: gatehouse.StatusApproved, To: gatehouse.StatusPushing},
			{From: gatehouse.StatusPushing, To: end, Finished: true, Failure: &gatehouse.Failure{Code: code, Detail: "refused"}},
		} {
			m.ID = a.ID
			if err := tx.MoveAction(m); err != nil {
				return err
			}
		}
		return nil
	})
	must(w.t, err)
}

// TestCorrect: an operator edits what the target refused. The correction is a new
// action that people approve, and the dead letter of the old one is closed with it.
func TestCorrect(t *testing.T) {
	t.Parallel()
	// The policy would allow the correction by itself.
	w := newWorld(t, "version: 1\nrisk: {price_change: 2}\nrules:\n  - {id: all, when: 'true', then: allow}\n")
	bot, ana, oz := w.agent(), w.person("ana"), w.principal("oz", gatehouse.KindPerson, gatehouse.RoleOperator)
	a := w.propose(bot, nil)
	w.dead(a, gatehouse.PushFailed, "http_422", "price is too high")
	page, err := w.gate.ListDeadLetters(oz, gatehouse.DeadLetterFilter{})
	if err != nil || len(page.Items) != 1 || !slices.Contains(page.Items[0].Acts, gatehouse.ActCorrect) {
		t.Fatalf("the dead letters are %+v, %v", page.Items, err)
	}

	_, err = w.gate.Edit(ana, a.ID, editOf(a, "9.00", false)) // no operator
	wantCode(t, err, gatehouse.CodeAlreadyDecided)
	_, err = w.gate.Edit(oz, a.ID, editOf(a, "9.00", true))
	wantCode(t, err, gatehouse.CodeCannotEdit)
	plain, err := gatehouse.CallerFrom(oz)
	must(t, err)
	bare := *plain
	bare.StepUp = false
	_, err = w.gate.Edit(gatehouse.NewContext(t.Context(), &bare), a.ID, editOf(a, "9.00", false))
	wantCode(t, err, gatehouse.CodeEditTokenRequired)
	dry := editOf(a, "9.00", false)
	dry.DryRun = true
	if tried, err := w.gate.Edit(oz, a.ID, dry); err != nil || tried.Status != gatehouse.StatusPending {
		t.Fatalf("the dry run is %+v, %v", tried, err)
	}
	if got := w.find(a.ID); got.Superseded != "" || got.Failure.Retry != gatehouse.RetryNever {
		t.Errorf("a dry run has changed it: %+v", got)
	}

	b := w.edit(oz, a, "9.00")
	switch {
	case b.Status != gatehouse.StatusPending, b.Supersedes != a.ID, b.EditedBy != "oz", b.ProposerID != a.ProposerID,
		b.Edit.Of != a.ID, b.IdempotencyKey == a.IdempotencyKey:
		t.Errorf("the correction is %+v", b)
	case !strings.Contains(strings.Join(b.Policy.Reasons, ";"), "people approve it"):
		t.Errorf("its reasons are %q", b.Policy.Reasons)
	}
	old := w.find(a.ID)
	if old.Status != gatehouse.StatusFailed || old.Superseded != b.ID {
		t.Errorf("the old action is %s, superseded by %q", old.Status, old.Superseded)
	}
	if page, err := w.gate.ListDeadLetters(oz, gatehouse.DeadLetterFilter{}); err != nil || len(page.Items) != 0 {
		t.Errorf("dead letters after the correction: %v, %v", page.Items, err)
	}
	replayed, err := w.gate.ReplayDeadLetters(w.admin, gatehouse.ReplayRequest{IDs: []string{a.Push.ID, a.Push.ID}})
	if err != nil || replayed.Replayed != 0 || !strings.Contains(replayed.Results[0].Detail, "corrected by "+b.ID) {
		t.Errorf("a replay of a corrected push: %+v, %v", replayed, err)
	}
	_, err = w.gate.Edit(oz, a.ID, editOf(a, "8.00", false))
	wantCode(t, err, gatehouse.CodeAlreadyDecided)
	w.wantCode("the corrector's approval", w.code(oz, b, gatehouse.Approve), gatehouse.CodeRoleRequired)
	w.wantCode("an approver's", w.code(ana, b, gatehouse.Approve), "")
}

// TestCorrectorDoesNotApprove: the corrector of a failed change cannot approve it, even if the
// policy lets editors approve.
func TestCorrectorDoesNotApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\nrisk: {price_change: 2}\nedits: {approve_up_to: 3}\n"+
		"rules:\n  - {id: all, when: 'true', then: allow}\n")
	bot, ana := w.agent(), w.person("ana")
	oz := w.principal("oz", gatehouse.KindPerson, gatehouse.RoleOperator, gatehouse.RoleApprover)
	a := w.propose(bot, nil)
	w.dead(a, gatehouse.PushFailed, "http_422", "price is too high")
	b := w.edit(oz, a, "9.00")
	w.wantCode("the corrector's approval", w.code(oz, b, gatehouse.Approve), gatehouse.CodeSelfApproval)
	c := w.edit(ana, b, "8.00")
	w.wantCode("of a further edit", w.code(oz, c, gatehouse.Approve), gatehouse.CodeSelfApproval)
	w.wantCode("an approver's", w.code(ana, c, gatehouse.Approve), "")
}

// TestNotCorrectable: a correction helps only where the target refused the change, and
// only while the dead letter is open.
func TestNotCorrectable(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		"version: 1\nrisk: {price_change: 2}\nrules:\n  - {id: dear, when: 'dec(change.price) > 100', then: deny}\n"+
			"  - {id: all, when: 'true', then: allow}\n")
	bot, oz := w.agent(), w.principal("oz", gatehouse.KindPerson, gatehouse.RoleOperator, gatehouse.RoleApprover)
	refused := func(to gatehouse.PushStatus, code string) *gatehouse.Action {
		a := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = code })
		w.dead(a, to, code, "no")
		return a
	}
	for _, code := range []string{"target_changed", "authority_revoked", "not_as_approved", "http_503", "http_401",
		"retries_exhausted", "secret_missing"} {
		a := refused(gatehouse.PushFailed, code)
		_, err := w.gate.Edit(oz, a.ID, editOf(a, "9.00", false))
		w.wantCode(code, gatehouse.CodeOf(err), gatehouse.CodeAlreadyDecided)
	}
	a := refused(gatehouse.PushUnknown, "http_500")
	_, err := w.gate.Edit(oz, a.ID, editOf(a, "9.00", false))
	w.wantCode("unknown", gatehouse.CodeOf(err), gatehouse.CodeAlreadyDecided)

	a = refused(gatehouse.PushFailed, "sql_error")
	_, err = w.gate.Edit(oz, a.ID, editOf(a, "101.00", false))
	w.wantCode("denied", gatehouse.CodeOf(err), gatehouse.CodeCannotEdit)
	if _, err := w.gate.DiscardDeadLetters(oz, gatehouse.DiscardRequest{
		DeadLetterSelection: gatehouse.DeadLetterSelection{IDs: []string{a.Push.ID}}, Reason: "over",
	}); err != nil {
		t.Fatal(err)
	}
	_, err = w.gate.Edit(oz, a.ID, editOf(a, "9.00", false))
	w.wantCode("discarded", gatehouse.CodeOf(err), gatehouse.CodeCannotEdit)
}

// TestGroupDeadLetters: errors that differ only in ids and amounts are one group, and a group
// selects its dead letters page by page and for a command.
func TestGroupDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\nrisk: {price_change: 2}\nrules:\n  - {id: all, when: 'true', then: allow}\n")
	bot, oz := w.agent(), w.principal("oz", gatehouse.KindPerson, gatehouse.RoleOperator)
	add := func(to gatehouse.PushStatus, code, says string) {
		a := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = code + says })
		w.clock.Advance(time.Second)
		w.dead(a, to, code, says)
	}
	add(gatehouse.PushUnknown, "http_500", "SKU-0 is locked")
	add(gatehouse.PushFailed, "http_422", "SKU-0 is sold")
	add(gatehouse.PushFailed, "http_422", "SKU-0 is locked")
	add(gatehouse.PushFailed, "http_422", "SKU-1 is locked")
	add(gatehouse.PushFailed, "http_422", "SKU-1 is sold")
	add(gatehouse.PushFailed, "http_422", "SKU-2 is locked")
	groups, err := w.gate.GroupDeadLetters(oz, gatehouse.DeadLetterFilter{})
	must(t, err)
	var got []string
	for _, g := range groups.Items {
		got = append(got, strconv.Itoa(g.Count)+" "+g.ErrorCode+" "+string(g.Status)+" "+g.Words)
		if g.OldestAt.After(g.NewestAt) || g.Count > 1 && !g.OldestAt.Before(g.NewestAt) {
			t.Errorf("%s: oldest %s, newest %s", g.Words, g.OldestAt, g.NewestAt)
		}
	}
	want := []string{"3 http_422 failed SKU-2 is locked", "2 http_422 failed SKU-1 is sold",
		"1 http_500 unknown SKU-0 is locked"}
	if !slices.Equal(got, want) || groups.Seen != 6 || groups.Capped {
		t.Fatalf("the groups are %q, seen %d", got, groups.Seen)
	}
	unknown, err := w.gate.GroupDeadLetters(oz, gatehouse.DeadLetterFilter{Status: gatehouse.PushUnknown})
	if err != nil || len(unknown.Items) != 1 {
		t.Errorf("the unknown groups are %+v, %v", unknown, err)
	}

	// The pages of a group skip the other rows, and their cursors lead to the whole group.
	locked := gatehouse.DeadLetterFilter{Group: groups.Items[0].Key, Limit: 2}
	var ids []string
	for pages := 0; ; pages++ {
		page, err := w.gate.ListDeadLetters(oz, locked)
		if err != nil || pages == 0 && len(page.Items) != 2 || pages > 3 {
			t.Fatal(pages, len(page.Items), err)
		}
		for _, d := range page.Items {
			ids = append(ids, d.ID)
			if d.Group != locked.Group {
				t.Errorf("%s is of the group %s", d.TargetSays, d.Group)
			}
		}
		if locked.Cursor = page.NextCursor; locked.Cursor == "" {
			break
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 3 {
		t.Errorf("the group has %q", ids)
	}
	locked.Limit = 2
	first, err := w.gate.ListDeadLetters(oz, locked)
	if err != nil || first.NextCursor == "" {
		t.Fatalf("the first page ends with the cursor %q, %v", first.NextCursor, err)
	}
	// An act on the group begins at the group's first dead letter, whatever page the caller has seen.
	act := gatehouse.DeadLetterFilter{Group: groups.Items[0].Key, Cursor: first.NextCursor}
	done, err := w.gate.DiscardDeadLetters(oz, gatehouse.DiscardRequest{
		DeadLetterSelection: gatehouse.DeadLetterSelection{Filter: &act}, Reason: "over",
	})
	if err != nil || done.Done != 3 || done.Skipped != 0 {
		t.Fatalf("discarded %+v, %v", done, err)
	}
	// If the rest has been settled meanwhile, the next page is empty and has no cursor.
	locked.Cursor = first.NextCursor
	if page, err := w.gate.ListDeadLetters(oz, locked); err != nil || len(page.Items) > 0 || page.NextCursor != "" {
		t.Errorf("%d dead letters, and the cursor %q, %v", len(page.Items), page.NextCursor, err)
	}
	if left, err := w.gate.GroupDeadLetters(oz, gatehouse.DeadLetterFilter{}); err != nil || left.Seen != 3 {
		t.Errorf("left %+v, %v", left, err)
	}
}

// TestDispatchHealth counts what waits and what failed, and derives the queue of the
// last day from the times of the pushes.
func TestDispatchHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\nrisk: {price_change: 2}\nrules:\n  - {id: all, when: 'true', then: allow}\n")
	bot, oz := w.agent(), w.principal("oz", gatehouse.KindPerson, gatehouse.RoleOperator)
	old := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "old" })
	w.clock.Advance(30 * time.Hour)
	w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "waits" })
	w.clock.Advance(2 * time.Hour)
	w.dead(w.propose(bot, nil), gatehouse.PushFailed, "http_422", "price is too high")
	h, err := w.gate.DispatchHealth(oz)
	must(t, err)
	if len(h.Queue) != gatehouse.HealthPoints || len(h.Connectors) != 1 {
		t.Fatalf("the health is %+v", h)
	}
	x := h.Connectors[0]
	if x.Connector != old.Connector || x.Queued != 2 || x.FailedLastHour != 1 || x.AppliedLastHour != 0 ||
		x.LastSuccessAt != nil ||
		x.LastErrorCode != "http_422" || x.LastWords != "price is too high" || x.OldestAt == nil ||
		!x.OldestAt.Equal(old.ProposedAt) {
		t.Errorf("the connector is %+v", x)
	}
	first, last := h.Queue[0], h.Queue[len(h.Queue)-1]
	if first.Depth != 1 || first.Oldest.D() < 8*time.Hour || last.Depth != 2 || last.Oldest.D() != 32*time.Hour ||
		!last.At.Equal(h.At) {
		t.Errorf("the queue goes from %+v to %+v", first, last)
	}
	w.dead(old, gatehouse.PushUnknown, "timeout", "")
	if h, err = w.gate.DispatchHealth(oz); err != nil || h.Queue[len(h.Queue)-1].Depth != 1 ||
		h.Connectors[0].FailedLastHour != 2 {
		t.Errorf("after the oldest has ended: %+v, %v", h, err)
	}
}

// TestInsightsByDayAndGroup: each proposal counts on its day, and for each group that it asks; days
// without proposals are zeros.
func TestInsightsByDayAndGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		"version: 1\nrisk: {price_change: 3}\nrules:\n  - {id: all, when: 'true', then: needs_approval, groups: [finance]}\n")
	bot, ana := w.agent(), w.person("ana")
	w.group("finance", "ana")
	ana = w.again(ana)
	since := w.clock.Now()
	w.wantCode("the first", w.code(ana, w.propose(bot, nil), gatehouse.Approve), "")
	w.clock.Advance(48 * time.Hour)
	w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "later" })
	x, err := w.gate.Insights(w.admin, gatehouse.InsightFilter{Since: since})
	must(t, err)
	var days []string
	for _, d := range x.ByDay {
		days = append(days, d.Name+" "+strconv.Itoa(d.Proposed)+" "+strconv.Itoa(d.Approved))
	}
	if want := []string{"2026-11-20 1 1", "2026-11-21 0 0", "2026-11-22 1 0"}; !slices.Equal(days, want) {
		t.Errorf("the days are %q", days)
	}
	if len(x.ByGroup) != 1 || x.ByGroup[0].Name != "finance" || x.ByGroup[0].Proposed != 2 || x.ByGroup[0].Pending != 1 {
		t.Errorf("the groups are %+v", x.ByGroup)
	}
	page, err := w.gate.ListActions(w.admin, gatehouse.ActionFilter{AskedGroup: "finance"})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("asked of finance: %d, %v", len(page.Items), err)
	}
}

// endlessStore has dead letters without end, and counts those that are read, and the transactions.
type endlessStore struct {
	gatehouse.Store
	read, views int
}

// endlessTx is a transaction of an endlessStore.
type endlessTx struct {
	gatehouse.ReadTx
	store *endlessStore
}

func (t endlessTx) ListPushes(f gatehouse.PushFilter) (page gatehouse.Page[*gatehouse.Push], err error) {
	if t.store.read += f.Limit; t.store.read > 2*gatehouse.MaxGrouped {
		return page, errors.New("it reads on")
	}
	page.Items, page.NextCursor = slices.Repeat([]*gatehouse.Push{{}}, f.Limit), strconv.Itoa(t.store.read)
	return page, nil
}

func (s *endlessStore) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	s.views++
	return s.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) error { return fn(endlessTx{tx, s}) })
}

// TestRareGroup: a page of a group that has no dead letter among very many others ends, with a cursor.
func TestRareGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	store := &endlessStore{Store: w.store}
	g := gate.New(store, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	page, err := g.ListDeadLetters(w.admin, gatehouse.DeadLetterFilter{Group: "rare", Limit: 1})
	if err != nil || len(page.Items) > 0 || page.NextCursor != strconv.Itoa(gatehouse.MaxGrouped) {
		t.Errorf("%d dead letters, and the cursor %q, %v", len(page.Items), page.NextCursor, err)
	}
}

// TestDeadLettersAreReadPageByPage: no transaction reads more than a page of the dead letters, however many there are.
func TestDeadLettersAreReadPageByPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	for name, walk := range map[string]func(*gate.Gate) error{
		"group": func(g *gate.Gate) error {
			_, err := g.GroupDeadLetters(w.admin, gatehouse.DeadLetterFilter{})
			return err
		},
		"replay": func(g *gate.Gate) error {
			_, err := g.ReplayDeadLetters(w.admin, gatehouse.ReplayRequest{
				Filter: &gatehouse.DeadLetterFilter{Group: "rare"},
			})
			if err != nil && err.Error() == "it reads on" {
				return nil
			}
			return err
		},
	} {
		store := &endlessStore{Store: w.store}
		g := gate.New(store, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
		if err := walk(g); err != nil || store.read < gatehouse.MaxGrouped || store.views < store.read/gatehouse.MaxLimit {
			t.Errorf("%s: %d dead letters in %d transactions, %v", name, store.read, store.views, err)
		}
	}
}

package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// later returns a time after the end of everything that the suite has created.
func (s *suite) later() time.Time { return s.now().Add(time.Hour) }

// plan lists all archivable families, a few per call.
func (s *suite) plan(before time.Time) (families []gatehouse.ActionFamily) {
	s.Helper()
	for after := int64(0); ; {
		var p *gatehouse.ArchivePlan
		s.viewQueues(func(q gatehouse.ReadQueues) (err error) { p, err = q.PlanArchive(after, before, 3); return err })
		families = append(families, p.Families...)
		if p.Next == 0 {
			return families
		}
		if p.Next <= after {
			s.Fatalf("the plan goes from %d on to %d", after, p.Next)
		}
		after = p.Next
	}
}

func planned(families []gatehouse.ActionFamily) (ids []string) {
	for _, f := range families {
		ids = append(ids, f.IDs...)
	}
	slices.Sort(ids)
	return ids
}

// lockAndArchive locks and archives families one by one, and returns the ids of the archived actions.
func lockAndArchive(tx gatehouse.Tx, families []gatehouse.ActionFamily, before time.Time) (ids []string, err error) {
	for _, f := range families {
		records, err := tx.LockEnded([]gatehouse.ActionFamily{f}, before)
		if err != nil {
			return nil, err
		}
		var list []*gatehouse.Archived
		for _, r := range records {
			a, err := gatehouse.NewArchived(r, "arc_1", tx.Now().Add(time.Hour))
			if err != nil {
				return nil, err
			}
			list, ids = append(list, a), append(ids, a.ID)
		}
		if err := tx.PutArchived(list); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// archive archives all actions that ended before the given time and can be archived.
func (s *suite) archive(before time.Time) (ids []string) {
	s.Helper()
	families := s.plan(before)
	s.update(func(tx gatehouse.Tx) (err error) { ids, err = lockAndArchive(tx, families, before); return err })
	slices.Sort(ids)
	return ids
}

// settle brings a queued action to applied, with two receipts, a mirror, and
// its ceilings released.
func (s *suite) settle(a *gatehouse.Action, p *gatehouse.Push) {
	s.Helper()
	for _, to := range path(gatehouse.StatusApplied)[1:] {
		from := gatehouse.StatusApproved
		if to == gatehouse.StatusApplied {
			from = gatehouse.StatusPushing
		}
		s.as(a.Tenant).update(func(tx gatehouse.Tx) error { return tx.MoveAction(move(a, from, to)) })
	}
	s.as(a.Tenant).update(func(tx gatehouse.Tx) error {
		now := tx.Now()
		until := now.Add(time.Minute)
		next := *p
		next.Status, next.Generation, next.LeaseOwner, next.LeaseUntil, next.PickedAt = gatehouse.PushPicking, 1, "w", &until,
			&now
		if err := tx.UpdatePush(&next, gatehouse.PushQueued, 0); err != nil {
			return err
		}
		next.Status, next.Attempts, next.SentAt = gatehouse.PushSent, 1, &now
		if err := tx.UpdatePush(&next, gatehouse.PushPicking, 1); err != nil {
			return err
		}
		next.Status, next.AppliedAt, next.FinishedAt, next.AttemptBase = gatehouse.PushApplied, &now, &now, 1
		if err := tx.UpdatePush(&next, gatehouse.PushSent, 1); err != nil {
			return err
		}
		receipt := gatehouse.Receipt{
			ID: "rcp_" + a.ID[4:] + "a", Tenant: a.Tenant, ActionID: a.ID, PushID: p.ID, IdempotencyKey: p.IdempotencyKey,
			Attempt: 1, Generation: 1,
			Outcome: gatehouse.ReceiptApplied, ExternalID: "x <1>", RequestMetadata: `{"n":1.10}`,
			ResponseMetadata: `{"é":"\u0001"}`,
			Reversible:       true,
			Reversal:         &gatehouse.Reversal{Operation: "update", Target: a.Target, ProposedChange: `{"price":"1"}`},
			Source:           "call", At: now,
		}
		late := receipt
		late.ID, late.Late, late.Outcome = "rcp_"+a.ID[4:]+"b", true, gatehouse.ReceiptTransient
		return errors.Join(
			tx.InsertReceipt(&receipt), tx.InsertReceipt(&late),
			tx.InsertMirror(&gatehouse.AppliedMirror{
				Tenant: a.Tenant, ActionID: a.ID, ActionType: a.ActionType, Connector: a.Connector, Operation: a.Operation,
				Target: a.Target,
				Before: `{"price":"10.00"}`, After: `{"price":"12.50"}`, Digest: a.Digest, ReceiptID: receipt.ID, AppliedAt: now,
			}),
			reserve(tx, a.ID, claim("2.50")),
			tx.ReleaseCeilings(a.ID),
		)
	})
}

// archiveRoundTrip archives an action with all fields set and reads it back
// unchanged.
func (s *suite) archiveRoundTrip() {
	full := s.full(s.now())
	full.Status, full.IdempotencyKey = gatehouse.StatusPending, "the client's own"
	s.update(func(tx gatehouse.Tx) error { return tx.InsertAction(full) })
	var p *gatehouse.Push
	s.update(func(tx gatehouse.Tx) (err error) { p, err = approve(tx, full, tx.Now()); return err })
	s.settle(full, p)
	denied, stays := s.in(gatehouse.StatusDenied), s.pending()
	s.leaf(tenant, full.ID)

	want, wantDenied, wantPush := s.find(full.ID), s.find(denied.ID), s.findPush(p.ID)
	if want.Callback.Sealed == "" || want.Receipt == nil || want.Push == nil || len(want.Approval.Votes) == 0 {
		s.Fatalf("the action lacks fields that it should keep: %+v", want)
	}
	var wantReceipts []*gatehouse.Receipt
	s.view(func(tx gatehouse.ReadTx) (err error) {
		wantReceipts, err = tx.ListReceipts(full.ID)
		return err
	})
	size := s.waiting(10)

	before := s.later()
	s.same("archived", s.archive(before), []string{full.ID, denied.ID})
	s.same("archived again", s.archive(before), []string(nil))

	var archived *gatehouse.Archived
	s.view(func(tx gatehouse.ReadTx) (err error) { archived, err = tx.FindArchived(p.ID); return err })
	want.ArchivedAt = &archived.ArchivedAt
	want.Callback.Sealed = "" // the archive does not keep the task token
	s.same("by its id", s.find(full.ID), want)
	s.same("by its approval's id", s.find(full.Approval.ID), want)
	got := s.find(denied.ID)
	wantDenied.ArchivedAt = got.ArchivedAt
	s.same("without an approval", got, wantDenied)
	s.view(func(tx gatehouse.ReadTx) (err error) {
		got, err = tx.FindActionByKey(full.IdempotencyKey)
		return err
	})
	s.same("by its key", got, want)
	if err := s.store.Read(context.Background(), tenant,
		func(tx gatehouse.ReadTx) (err error) { got, err = tx.FindAction(full.ID); return err }); err != nil {
		s.Fatalf("Read: %v", err)
	}
	s.same("by Read", got, want)
	s.update(func(tx gatehouse.Tx) (err error) { got, err = tx.LockAction(full.ID); return err })
	s.same("locked", got, want)
	s.same("its push", s.findPush(p.ID), wantPush)
	var locked *gatehouse.Push
	s.update(func(tx gatehouse.Tx) (err error) { locked, err = tx.LockPush(p.ID); return err })
	s.same("its push, locked", locked, wantPush)

	record, err := archived.Record()
	if err != nil {
		s.Fatal(err)
	}
	s.same("its receipts", record.Receipts, wantReceipts)
	if record.Mirror == nil || record.Mirror.After != `{"price":"12.50"}` || len(record.Claims) != 1 ||
		record.Claims[0].Amount != 2_500_000 ||
		record.Claims[0].ReleasedAt == nil {
		s.Errorf("the record lacks its mirror or its claim: %+v", record)
	}
	again, err := gatehouse.NewArchived(record, archived.Batch, archived.ArchivedAt)
	if err != nil {
		s.Fatal(err)
	}
	s.same("the same document, made from its own record", again, archived)
	s.same("the log", s.waiting(10), size)
	s.gone(full, p)
	if s.find(stays.ID).ArchivedAt != nil {
		s.Error("a pending action is archived")
	}
}

// gone checks that an archived action is in no list of the main tables.
func (s *suite) gone(a *gatehouse.Action, p *gatehouse.Push) {
	s.Helper()
	s.view(func(tx gatehouse.ReadTx) error {
		actions, err := tx.ListActions(gatehouse.ActionFilter{})
		for _, x := range actions.Items {
			if x.ID == a.ID {
				s.Error("the list of actions has it")
			}
		}
		named, e := tx.ListActions(gatehouse.ActionFilter{Query: p.ID})
		pushes, e2 := tx.ListPushes(gatehouse.PushFilter{})
		mirror, e3 := tx.ListMirror("", "", 0)
		corpus, e4 := tx.ListCorpus("", "", 0)
		receipts, e5 := tx.ListReceipts(a.ID)
		if n := len(named.Items) + len(pushes.Items) + len(mirror.Items) + len(corpus.Items) + len(receipts); n > 0 {
			s.Errorf("lists outside the archive have %d rows of the archived action", n)
		}
		if _, err := tx.SuccessReceipt(p.IdempotencyKey); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("the archived action's receipt is not archived: error %v", err)
		}
		return errors.Join(err, e, e2, e3, e4, e5)
	})
}

// archivePins checks what must not be archived, whatever its age.
func (s *suite) archivePins() {
	w := s.workflow(tenant, "triage", 1)
	ana := s.insertPrincipal()
	session := s.insertSession(ana, 1)
	states := map[gatehouse.Status]*gatehouse.Action{}
	var want []string
	for _, status := range gatehouse.Statuses() {
		states[status] = s.in(status)
		switch status {
		case gatehouse.StatusPending, gatehouse.StatusApproved, gatehouse.StatusPushing, gatehouse.StatusUnknown,
			gatehouse.StatusFailed:
		default:
			want = append(want, states[status].ID)
		}
	}
	rejected := func() *gatehouse.Action { return s.in(gatehouse.StatusRejected) }
	// A queued, failed or unknown push keeps its action out of the archive.
	for _, status := range []gatehouse.PushStatus{gatehouse.PushQueued, gatehouse.PushFailed, gatehouse.PushUnknown} {
		p := s.pushIn(status)
		a := s.find(p.ActionID)
		s.update(func(tx gatehouse.Tx) error {
			return tx.MoveAction(move(a, gatehouse.StatusApproved, gatehouse.StatusCanceled))
		})
	}
	// An action with a discarded dead letter can be archived, an action with an open dead letter cannot.
	discarded := s.in(gatehouse.StatusApproved)
	open := s.in(gatehouse.StatusApproved)
	for _, a := range []*gatehouse.Action{discarded, open} {
		p := push(a, s.now())
		s.update(func(tx gatehouse.Tx) error { return tx.InsertPush(p) })
		until := s.now().Add(time.Hour)
		p.Status, p.Generation, p.LeaseUntil = gatehouse.PushPicking, 1, &until
		s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, gatehouse.PushQueued, 0) })
		p.Status = gatehouse.PushFailed
		s.update(func(tx gatehouse.Tx) error {
			m := move(a, gatehouse.StatusApproved, gatehouse.StatusFailed)
			m.Finished, m.Failure = true, &gatehouse.Failure{Code: "http_422", Detail: "no"}
			return errors.Join(tx.UpdatePush(p, gatehouse.PushPicking, 1), tx.MoveAction(m))
		})
		if a == discarded {
			s.same("planned before it was closed", planned(s.plan(s.later())), sorted(want))
			s.update(func(tx gatehouse.Tx) error { return tx.ClosePush(p.ID, "oz", "not needed") })
		}
	}
	want = append(want, discarded.ID)
	// An action that a run waits for cannot be archived until the run has ended.
	awaited, done := rejected(), rejected()
	for _, a := range []*gatehouse.Action{awaited, done} {
		r, st := s.one(w)
		s.moveRun(r, gatehouse.RunRunning)
		s.moveStep(st, gatehouse.StepRunning)
		s.moveStep(st, gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = a.ID })
		if a == done {
			s.moveStep(st, gatehouse.StepCanceled)
			s.moveRun(r, gatehouse.RunCanceled)
			want = append(want, a.ID)
		}
	}
	// A ceiling claim that is not released, and a step-up, keep an action out of the archive.
	holds, proven := rejected(), rejected()
	s.update(func(tx gatehouse.Tx) error {
		return errors.Join(reserve(tx, holds.ID, claim("1")), tx.InsertStepUp(&gatehouse.StepUp{
			ID: "stu_1", Tenant: tenant, SessionID: session.ID, ActionID: proven.ID, Digest: "sha256:1",
			Method: gatehouse.StepUpPasskey, At: tx.Now(),
		}))
	})
	s.same("planned before actions ended", planned(s.plan(states[gatehouse.StatusPending].ProposedAt)), []string(nil))
	slices.Sort(want)
	before := s.later()
	s.same("planned", planned(s.plan(before)), want)

	// Planned families are checked again under the lock.
	for what, a := range map[string]*gatehouse.Action{"awaited": awaited, "holds": holds,
		"pending": states[gatehouse.StatusPending]} {
		s.update(func(tx gatehouse.Tx) error {
			list, err := tx.LockEnded([]gatehouse.ActionFamily{{Tenant: tenant, IDs: []string{a.ID}}}, before)
			if len(list) > 0 {
				s.Errorf("%s was locked for the archive", what)
			}
			return err
		})
	}
	s.update(func(tx gatehouse.Tx) error { return tx.ReleaseCeilings(holds.ID) })
	want = append(want, holds.ID)
	slices.Sort(want)
	s.same("archived", s.archive(before), want)
	s.same("used of a ceiling", s.used(-time.Hour), gatehouse.Decimal("0"))
}

// archiveFamilies archives related actions together or not at all.
func (s *suite) archiveFamilies() {
	first := s.in(gatehouse.StatusSuperseded)
	second := s.pending(func(a *gatehouse.Action) { a.Supersedes = first.ID })
	s.update(func(tx gatehouse.Tx) error { return tx.LinkSuperseded(first.ID, second.ID) })
	applied := s.in(gatehouse.StatusApplied)
	reversal := s.pending(func(a *gatehouse.Action) { a.Reverses = applied.ID })
	refused := s.pending(func(a *gatehouse.Action) { a.Reverses = applied.ID })
	s.update(func(tx gatehouse.Tx) error {
		return tx.MoveAction(move(refused, gatehouse.StatusPending, gatehouse.StatusRejected))
	})
	before := s.later()
	s.same("while one of each is open", planned(s.plan(before)), []string(nil))
	s.update(func(tx gatehouse.Tx) error {
		return tx.MoveAction(move(second, gatehouse.StatusPending, gatehouse.StatusExpired))
	})
	families := s.plan(before)
	s.same("the revised one and its revision", planned(families), []string{first.ID, second.ID})
	if len(families) != 1 {
		s.Fatalf("%d families", len(families))
	}
	s.update(func(tx gatehouse.Tx) error {
		list, err := tx.LockEnded([]gatehouse.ActionFamily{{Tenant: tenant, IDs: []string{first.ID}}}, before)
		if len(list) > 0 {
			s.Error("a part of a family was locked")
		}
		return err
	})
	s.same("archived", s.archive(before), []string{first.ID, second.ID})
	from := gatehouse.StatusPending
	for _, to := range path(gatehouse.StatusApplied) {
		s.update(func(tx gatehouse.Tx) error { return tx.MoveAction(move(reversal, from, to)) })
		from = to
	}
	s.update(func(tx gatehouse.Tx) error {
		m := move(applied, gatehouse.StatusApplied, gatehouse.StatusReversed)
		m.ReversedBy = reversal.ID
		return tx.MoveAction(m)
	})
	want := []string{applied.ID, reversal.ID, refused.ID}
	s.same("reversed, with its reversals", s.archive(before), want)
	if got := s.find(first.ID); got.Superseded != second.ID {
		s.Errorf("superseded by %q", got.Superseded)
	}
	if got := s.find(applied.ID); got.ReversedBy != reversal.ID {
		s.Errorf("reversed by %q", got.ReversedBy)
	}
}

// archiveStays checks that nothing can write to an archived action.
func (s *suite) archiveStays() {
	a, p := s.queued(func(a *gatehouse.Action) { a.IdempotencyKey = "k" })
	s.settle(a, p)
	before := s.later()
	s.same("archived", s.archive(before), []string{a.ID})
	record := func() *gatehouse.Archived {
		var out *gatehouse.Archived
		s.view(func(tx gatehouse.ReadTx) (err error) { out, err = tx.FindArchived(a.ID); return err })
		return out
	}
	was := record()
	s.updateReturns(gatehouse.ErrConflict, "another action of its key", func(tx gatehouse.Tx) error {
		return tx.InsertAction(s.action(tx.Now(), func(n *gatehouse.Action) { n.IdempotencyKey = "k" }))
	})
	s.updateReturns(gatehouse.ErrConflict, "a move", func(tx gatehouse.Tx) error {
		return tx.MoveAction(move(a, gatehouse.StatusApplied, gatehouse.StatusReversed))
	})
	s.updateReturns(gatehouse.ErrNotFound, "a reversal", func(tx gatehouse.Tx) error {
		return tx.InsertAction(s.action(tx.Now(), func(n *gatehouse.Action) { n.Reverses = a.ID }))
	})
	s.updateReturns(gatehouse.ErrNotFound, "a receipt", func(tx gatehouse.Tx) error {
		return tx.InsertReceipt(&gatehouse.Receipt{
			ID: "rcp_late", Tenant: tenant, ActionID: a.ID, PushID: p.ID, IdempotencyKey: "k", Outcome: gatehouse.ReceiptApplied,
			Late: true, Source: "call", At: tx.Now(),
		})
	})
	s.updateReturns(gatehouse.ErrConflict, "archiving it again",
		func(tx gatehouse.Tx) error { return tx.PutArchived([]*gatehouse.Archived{was}) })
	s.same("the row", record(), was)

	// A step that waits for an archived action continues at once.
	w := s.workflow(tenant, "triage", 1)
	st := s.inState(w, gatehouse.StepRunning)
	s.moveStep(st, gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = a.ID })
	s.wakes("parked on what is archived", st, true)
}

// archiveUndone checks that a transaction that archives and then fails changes nothing.
func (s *suite) archiveUndone() {
	a, p := s.queued()
	s.settle(a, p)
	want, before := s.find(a.ID), s.later()
	families := s.plan(before)
	boom := errors.New("boom")
	s.updateReturns(boom, "a batch that fails", func(tx gatehouse.Tx) error {
		if _, err := lockAndArchive(tx, families, before); err != nil {
			return err
		}
		return boom
	})
	s.same("after it", s.find(a.ID), want)
	s.same("once more", s.archive(before), []string{a.ID})
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

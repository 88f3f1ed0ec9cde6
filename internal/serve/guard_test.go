package serve

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

type guardRefund struct {
	Order  string `json:"order"`
	Amount string `json:"amount"`
	ID     int64  `json:"id,omitempty"`
}

// TestGuard puts a Go function behind the gate, with a person who decides.
func TestGuard(t *testing.T) {
	t.Parallel()
	s, creds := serveSource(t,
		`{connectors: {erp: {type: worker, operations: {refund: {}, ship: {}}}}, dispatch: {hold: 0s, backoff: [100ms]}}`)
	admin := servetest.MustClient(t, s.URL, *creds)
	api := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent,
		gatehouse.RoleProposer, gatehouse.RoleWorker)

	var runs atomic.Int64
	guarded := func(g *client.Guard, fails func(n int64) error) *client.GuardedFunc[guardRefund, string] {
		f, err := client.Guarded(g, client.GuardTool[guardRefund]{
			ActionType: "refund", Connector: "erp", Operation: "refund",
			Target: func(r guardRefund) gatehouse.Target {
				return gatehouse.Target{EntityType: "order", EntityRef: r.Order}
			},
		}, func(_ context.Context, r guardRefund) (string, error) {
			n := runs.Add(1)
			if fails != nil {
				if err := fails(n); err != nil {
					return "", err
				}
			}
			return "refunded " + r.Amount, nil
		})
		must(t, err)
		return f
	}
	// calls makes a call in parallel with the decision.
	calls := func(f *client.GuardedFunc[guardRefund, string], r guardRefund, decision gatehouse.DecisionKind) (string,
		error) {
		t.Helper()
		runs.Store(0)
		decided := make(chan struct{})
		go func() {
			defer close(decided)
			servetest.DecideOnly(t, admin, decision)
		}()
		out, err := f.Call(t.Context(), r)
		<-decided
		return out, err
	}
	refund := guarded(client.NewGuard(api, time.Minute), nil)
	big := guardRefund{Order: "G-1", Amount: "12.50", ID: 9007199254740993}
	if out, err := calls(refund, big, gatehouse.Approve); err != nil || out != "refunded 12.50" || runs.Load() != 1 {
		t.Errorf("approved: %q, %v after %d runs", out, err, runs.Load())
	}
	if out, err := refund.Call(t.Context(), big); err != nil || out != "refunded 12.50" || runs.Load() != 1 {
		t.Errorf("the same call again: %q, %v after %d runs", out, err, runs.Load())
	}
	var not *client.NotApplied
	_, err := calls(refund, guardRefund{Order: "G-2"}, gatehouse.Reject)
	if !errors.Is(err, client.ErrRejected) || !errors.As(err, &not) || runs.Load() != 0 {
		t.Errorf("rejected: %v", err)
	}
	broke := errors.New("broke")
	_, err = calls(guarded(client.NewGuard(api, time.Minute), func(int64) error { return broke }),
		guardRefund{Order: "G-3"}, gatehouse.Approve)
	if !errors.Is(err, client.ErrUnknown) || !errors.Is(err, broke) || runs.Load() != 1 {
		t.Errorf("a function that fails: %v after %d runs", err, runs.Load())
	}
	_, err = calls(guarded(client.NewGuard(api, time.Minute), func(int64) error { return client.NoEffect(broke, false) }),
		guardRefund{Order: "G-4"}, gatehouse.Approve)
	if !errors.Is(err, client.ErrFailed) {
		t.Errorf("a function that changed nothing: %v", err)
	}
	again := func(n int64) error {
		if n == 1 {
			return client.NoEffect(broke, true)
		}
		return nil
	}
	out, err := calls(guarded(client.NewGuard(api, time.Minute), again), guardRefund{Order: "G-5", Amount: "1"},
		gatehouse.Approve)
	if err != nil || out != "refunded 1" || runs.Load() != 2 {
		t.Errorf("another attempt: %q, %v after %d runs", out, err, runs.Load())
	}

	// What another program carries out waits for that program.
	ship, _, err := api.Propose(t.Context(), &gatehouse.Proposal{
		ActionType: "ship", Connector: "erp", Operation: "ship", ProposedChange: `{"order":"S-1"}`,
		Target: gatehouse.Target{EntityType: "order", EntityRef: "S-1"},
	})
	must(t, err)
	servetest.DecideOnly(t, admin, gatehouse.Approve)
	if out, err := calls(refund, guardRefund{Order: "S-2"}, gatehouse.Approve); err != nil {
		t.Errorf("beside another program's change: %q, %v", out, err)
	}
	ship, err = api.FindAction(t.Context(), ship.ID)
	must(t, err)
	if ship.Status != gatehouse.StatusApproved || ship.Push.Attempts != 0 {
		t.Errorf("another program's change is %s after %d attempts", ship.Status, ship.Push.Attempts)
	}

	// A revision for another target does not run.
	a, err := refund.Propose(t.Context(), guardRefund{Order: "G-6"})
	must(t, err)
	_, err = api.Revise(t.Context(), a.ID, &gatehouse.Proposal{
		ActionType: a.ActionType, Connector: a.Connector, Operation: a.Operation, Target: a.Target,
		ProposedChange: `{"order":"B-6","amount":"1"}`,
	})
	must(t, err)
	if _, err = calls(refund, guardRefund{Order: "G-6"}, gatehouse.Approve); !errors.Is(err, client.ErrFailed) ||
		!errors.As(err, &not) || not.Action.Failure.Code != "other_target" || runs.Load() != 0 {
		t.Errorf("another target: %v", err)
	}

	// A worker carries out actions that others wait for; a call that runs out of patience cancels
	// nothing.
	_, err = guarded(client.NewGuard(api, time.Millisecond), nil).Call(t.Context(), guardRefund{Order: "G-7"})
	if !errors.Is(err, client.ErrWaiting) || !errors.As(err, &not) {
		t.Fatalf("out of patience: %v", err)
	}
	servetest.DecideOnly(t, admin, gatehouse.Approve)
	worker := client.NewGuard(api, time.Minute)
	guarded(worker, nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Work(ctx, true) }()
	done, err := api.WaitAction(t.Context(), not.Action.ID, time.Minute, gatehouse.UntilFinished)
	if err != nil || done.Status != gatehouse.StatusApplied {
		t.Errorf("by a worker: %+v, %v", done, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the worker ended with %v", err)
	}
	if _, err := client.Guarded(worker, client.GuardTool[guardRefund]{},
		func(context.Context, guardRefund) (int, error) { return 0, nil }); err == nil {
		t.Error("a tool without a name is accepted")
	}
	if err := client.NewGuard(servetest.MustClient(t, s.URL, gatehouse.Credentials{Key: "gth_wrong"}),
		0).Work(t.Context(), true); err == nil {
		t.Error("a worker with a wrong key continues")
	}
}

// TestGuardInTwoPrograms: an agent that may not carry out changes waits for the worker that does.
func TestGuardInTwoPrograms(t *testing.T) {
	t.Parallel()
	s, creds := serveSource(t,
		`{connectors: {erp: {type: worker, workers: [refunder], operations: {refund: {}}}}, dispatch: {hold: 0s}}`)
	admin := servetest.MustClient(t, s.URL, *creds)
	guarded := func(g *client.Guard, by string) *client.GuardedFunc[guardRefund, string] {
		f, err := client.Guarded(g, client.GuardTool[guardRefund]{
			ActionType: "refund", Connector: "erp", Operation: "refund",
			Target: func(r guardRefund) gatehouse.Target {
				return gatehouse.Target{EntityType: "order", EntityRef: r.Order}
			},
		}, func(context.Context, guardRefund) (string, error) { return "refunded by " + by, nil })
		must(t, err)
		return f
	}
	worker := client.NewGuard(servetest.NewClient(t, s.Gate, s.URL, creds, "refunder", gatehouse.KindService,
		gatehouse.RoleWorker), 0)
	guarded(worker, "refunder")

	for refusal, roles := range map[gatehouse.Code][]gatehouse.Role{
		gatehouse.CodeRoleRequired:     {gatehouse.RoleProposer},
		gatehouse.CodeWorkerNotAllowed: {gatehouse.RoleProposer, gatehouse.RoleWorker},
	} {
		name := string(refusal)
		api := servetest.NewClient(t, s.Gate, s.URL, creds, name, gatehouse.KindAgent, roles...)
		impatient := client.NewGuard(api, 100*time.Millisecond)
		refund := guarded(impatient, name)
		_, err := refund.Propose(t.Context(), guardRefund{Order: name})
		must(t, err)
		servetest.DecideOnly(t, admin, gatehouse.Approve)
		if out, err := refund.Call(t.Context(), guardRefund{Order: name}); !errors.Is(err, client.ErrWaiting) {
			t.Errorf("%s without a worker: %q, %v", name, out, err)
		}
		if err := impatient.Work(t.Context(), true); gatehouse.CodeOf(err) != refusal {
			t.Errorf("%s works: %v", name, err)
		}

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- worker.Work(ctx, false) }()
		out, err := guarded(client.NewGuard(api, time.Minute), name).Call(t.Context(), guardRefund{Order: name})
		if err != nil || out != "refunded by refunder" {
			t.Errorf("%s with a worker: %q, %v", name, out, err)
		}
		stop()
		must(t, <-ended)
	}
}

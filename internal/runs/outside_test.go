package runs_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// onERP proposes a change under the connector of type worker and gets it
// approved.
func (w *world) onERP(operation, ref string) *gatehouse.Action {
	w.Helper()
	return w.onOutside("bot", "erp", operation, ref)
}

// onOutside is onERP for an agent and a connector of type worker.
func (w *world) onOutside(agent, conn, operation, ref string) *gatehouse.Action {
	w.Helper()
	a, _, err := w.gate.Propose(w.as(agent), &gatehouse.Proposal{
		ActionType: "price_change", Connector: conn, Operation: operation,
		Target: gatehouse.Target{EntityType: "item", EntityRef: ref}, ProposedChange: `{"price":"3"}`,
	})
	w.must(err)
	w.must(w.decide(a, "ana", gatehouse.Approve))
	return a
}

func (w *world) leasePush(lease time.Duration) gatehouse.LeasedPush {
	w.Helper()
	got, err := w.runs.LeasePushes(w.as("bot"), gatehouse.PushLeaseRequest{
		Connectors: []string{"erp"}, Wait: gatehouse.Duration(30 * time.Second), Lease: gatehouse.Span(lease),
	})
	w.must(err)
	if len(got) != 1 {
		w.Fatalf("leased %d pushes", len(got))
	}
	return got[0]
}

func (w *world) settled(a *gatehouse.Action, want gatehouse.Status) *gatehouse.Action {
	w.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		got, err := w.gate.WaitAction(w.as("admin"), a.ID, time.Second, gatehouse.UntilFinished)
		w.must(err)
		if got.Status == want {
			return got
		}
		if time.Now().After(deadline) {
			w.Fatalf("the action is %s, want %s", got.Status, want)
		}
	}
}

// TestWorkersOfAConnector: only the workers that a connector or a tool names lease its work.
func TestWorkersOfAConnector(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.person("teller", gatehouse.KindService, gatehouse.RoleWorker)
		w.person("clerk", gatehouse.KindAgent, gatehouse.RoleProposer)
		own, others := w.onOutside("bot", "bank", "post", "X"), w.onOutside("clerk", "bank", "post", "Y")
		lease := func(name string, r gatehouse.PushLeaseRequest) ([]gatehouse.LeasedPush, error) {
			r.Connectors, r.Max = append(r.Connectors, "bank"), 10
			return w.runs.LeasePushes(w.as(name), r)
		}
		for _, r := range []gatehouse.PushLeaseRequest{{}, {Own: true}, {Connectors: []string{"erp"}}} {
			if got, err := lease("bot", r); gatehouse.CodeOf(err) != gatehouse.CodeWorkerNotAllowed {
				t.Errorf("the proposer leases %+v, %v", got, err)
			}
		}
		for _, r := range []gatehouse.PushLeaseRequest{{ProposedBy: w.people["ana"].ID}, {Own: true}} {
			if got, err := lease("teller", r); err != nil || len(got) > 0 {
				t.Errorf("%+v: %+v, %v", r, got, err)
			}
		}
		for _, r := range []gatehouse.PushLeaseRequest{
			{Own: true, ProposedBy: w.people["bot"].ID}, {ProposedBy: "nobody"}, {Operations: map[string][]string{"erp": {"post"}}},
			{Operations: map[string][]string{"bank": {}}}, {Operations: map[string][]string{"bank": make([]string, 51)}},
		} {
			if got, err := lease("teller", r); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Errorf("%+v: %+v, %v", r, got, err)
			}
		}
		other := gatehouse.PushLeaseRequest{Operations: map[string][]string{"bank": {"other"}}}
		if got, err := lease("teller", other); err != nil || len(got) > 0 {
			t.Errorf("another operation: %+v, %v", got, err)
		}
		for agent, want := range map[string]*gatehouse.Action{"clerk": others, "bot": own} {
			proposer := map[string]string{"clerk": "Clerk", "bot": w.people["bot"].ID}[agent]
			got, err := lease("teller", gatehouse.PushLeaseRequest{ProposedBy: proposer})
			w.must(err)
			if len(got) != 1 || got[0].ActionID != want.ID {
				t.Fatalf("leased for %s: %+v", agent, got)
			}
			done := gatehouse.PushResult{Generation: got[0].Lease.Generation}
			_, err = w.runs.CompletePush(w.as("bot"), got[0].Push.ID, done)
			if gatehouse.CodeOf(err) != gatehouse.CodeLeaseLost {
				t.Errorf("the proposer reports the outcome of the worker's call: %v", err)
			}
			_, err = w.runs.CompletePush(w.as("teller"), got[0].Push.ID, done)
			w.must(err)
			w.settled(want, gatehouse.StatusApplied)
		}

		w.apply("paging", "name: paging\nsteps:\n  - {id: page, uses: worker.page, with: {}}\n")
		w.start("paging", `{}`)
		tools := gatehouse.LeaseRequest{Tools: []string{"other", "page"}, Wait: gatehouse.Duration(20 * time.Second)}
		if got, err := w.runs.LeaseSteps(w.as("bot"), tools); gatehouse.CodeOf(err) != gatehouse.CodeWorkerNotAllowed {
			t.Errorf("another worker leases %+v, %v", got, err)
		}
		steps, err := w.runs.LeaseSteps(w.as("teller"), tools)
		if err != nil || len(steps) != 1 {
			t.Errorf("the tool's worker leases %+v, %v", steps, err)
		}
	}, func(c *runs.Config, _ *runs.RuntimeConfig) {
		c.Workers = func(tool string) gatehouse.WorkerNames {
			return map[string]gatehouse.WorkerNames{"page": {"teller"}}[tool]
		}
	})
}

// TestPushesOfWorkersOutside: pushes for external workers take the usual path:
// checked, recorded as sent before they are handed out, fenced by generation,
// settled with a receipt.
func TestPushesOfWorkersOutside(t *testing.T) { onBoth(t, testPushesOfWorkersOutside) }

func testPushesOfWorkersOutside(t *testing.T, w *world) {
	a := w.onERP("post", "X")
	p := w.leasePush(time.Minute)
	if p.ActionID != a.ID || p.Digest != a.Digest || p.ProposedChange != `{"price":"3"}` || p.Attempt != 1 ||
		p.Push.Status != gatehouse.PushSent {
		t.Fatalf("leased %+v", p)
	}
	if again, err := w.runs.LeasePushes(w.as("bot"),
		gatehouse.PushLeaseRequest{Connectors: []string{"erp"}}); err != nil || len(again) != 0 {
		t.Fatalf("leased twice: %v, %v", again, err)
	}
	g := p.Lease.Generation
	w.person("other", gatehouse.KindAgent, gatehouse.RoleWorker)
	for name, call := range map[string]func() error{
		"another worker's": func() error {
			_, err := w.runs.CompletePush(w.as("other"), p.Push.ID, gatehouse.PushResult{Generation: g})
			return err
		},
		"a stale one": func() error {
			_, err := w.runs.CompletePush(w.as("bot"), p.Push.ID, gatehouse.PushResult{Generation: g + 1})
			return err
		},
		"a stale heartbeat": func() error {
			_, err := w.runs.HeartbeatPush(w.as("bot"), p.Push.ID, gatehouse.Heartbeat{Generation: g + 1})
			return err
		},
	} {
		if code := gatehouse.CodeOf(call()); code != gatehouse.CodeLeaseLost {
			t.Errorf("%s: %q, want lease_lost", name, code)
		}
	}
	_, err := w.runs.HeartbeatPush(w.as("bot"), p.Push.ID, gatehouse.Heartbeat{Generation: g})
	w.must(err)
	done := gatehouse.PushResult{Generation: g, ExternalID: "doc-7", ResponseMetadata: `{"posted":true}`}
	for range 2 { // the second is a retry after a lost answer
		_, err = w.runs.CompletePush(w.as("bot"), p.Push.ID, done)
		w.must(err)
	}
	if p, err := w.runs.CompletePush(w.as("other"), p.Push.ID, done); gatehouse.CodeOf(err) != gatehouse.CodeLeaseLost {
		t.Errorf("another worker reads the result of the call: %+v, %v", p, err)
	}
	got := w.settled(a, gatehouse.StatusApplied)
	if got.Receipt == nil || got.Receipt.ExternalID != "doc-7" {
		t.Errorf("receipt %+v", got.Receipt)
	}
	e, err := w.gate.Evidence(w.as("admin"), a.ID)
	w.must(err)
	if len(e.Receipts) != 1 {
		t.Errorf("%d receipts of one call", len(e.Receipts))
	}
	if code := gatehouse.CodeOf(func() error {
		_, err := w.runs.FailPush(w.as("bot"), "psh_none", gatehouse.PushFailure{Generation: 1, Kind: "terminal", Code: "x",
			Detail: "x"})
		return err
	}()); code != gatehouse.CodeNotFound {
		t.Errorf("an unknown push: %q", code)
	}
}

func TestFailuresOfWorkersOutside(t *testing.T) { onBoth(t, testFailuresOfWorkersOutside) }

func testFailuresOfWorkersOutside(t *testing.T, w *world) {
	fail := func(p gatehouse.LeasedPush, kind string) {
		t.Helper()
		_, err := w.runs.FailPush(w.as("bot"), p.Push.ID,
			gatehouse.PushFailure{Generation: p.Lease.Generation, Kind: kind, Code: "erp_down", Detail: "no answer"})
		w.must(err)
	}
	// Transient: it comes again under the same key; then terminal.
	a := w.onERP("post", "X")
	first := w.leasePush(time.Minute)
	fail(first, "transient")
	second := w.leasePush(time.Minute)
	if second.IdempotencyKey != first.IdempotencyKey || second.Attempt != 2 ||
		second.Lease.Generation <= first.Lease.Generation {
		t.Fatalf("the second attempt: %+v", second)
	}
	fail(second, "terminal")
	if got := w.settled(a, gatehouse.StatusFailed); got.Failure == nil || got.Failure.Code != "erp_down" {
		t.Errorf("failure %+v", got.Failure)
	}
	// When a worker goes silent, class A goes to the next worker and class C
	// becomes unknown.
	a = w.onERP("post", "Y")
	lost := w.leasePush(time.Second)
	again := w.leasePush(time.Minute)
	if again.ActionID != a.ID || again.Lease.Generation <= lost.Lease.Generation {
		t.Fatalf("after the lease: %+v", again)
	}
	if _, err := w.runs.CompletePush(w.as("bot"), lost.Push.ID,
		gatehouse.PushResult{Generation: lost.Lease.Generation}); gatehouse.CodeOf(err) != gatehouse.CodeLeaseLost {
		t.Fatalf("the worker that was lost: %v", err)
	}
	_, err := w.runs.CompletePush(w.as("bot"), again.Push.ID, gatehouse.PushResult{Generation: again.Lease.Generation})
	w.must(err)
	w.settled(a, gatehouse.StatusApplied)
	a = w.onERP("once", "Z")
	w.leasePush(time.Second)
	w.settled(a, gatehouse.StatusUnknown)
}

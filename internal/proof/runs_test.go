package proof

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
)

// journey is a workflow with twenty steps of every kind. Four steps, counting
// items, have an effect on a target; two ask people.
const journey = `name: journey
steps:
  - {id: begin, uses: transform, with: {sku: "${{ input.sku }}"}}
  - id: classify
    uses: model.local
    with: {model: small, prompt: "What is ${{ steps.begin.output.sku }}?"}
    retry: {max: 20, backoff: [50ms]}
  - {id: left, needs: [classify], uses: transform, with: {side: left}}
  - {id: right, needs: [classify], uses: transform, with: {side: right}}
  - id: note
    needs: [left]
    uses: connector.crm.update
    action_type: note
    risk: low
    retry: {max: 20, backoff: [50ms]}
    with: {target: {entity_type: contact, entity_ref: "${{ input.ref }}-note"}, change: {value: "${{ input.ref }}"}}
  - id: page
    needs: [right]
    for_each: input.two
    uses: worker.page
    retry: {max: 20, backoff: [50ms]}
    with: {n: "${{ item }}"}
  - {id: join, needs: [note, page], uses: transform, with: {pages: "${{ steps.page.output }}"}}
  - id: ask
    uses: approval
    retry: {max: 20, backoff: [50ms]}
    with: {rationale: "go on?"}
  - {id: nap, uses: wait, with: {for: 20ms}}
  - id: price
    uses: connector.shop.update
    action_type: price_change
    risk: med
    retry: {max: 20, backoff: [50ms]}
    with: {target: {entity_type: item, entity_ref: "${{ input.sku }}", version: "1"},
      current_state: {price: "10.00"}, change: {price: "12.50"}}
  - id: tag
    for_each: input.two
    uses: connector.crm.update
    action_type: note
    risk: low
    retry: {max: 20, backoff: [50ms]}
    with: {target: {entity_type: contact, entity_ref: "${{ input.ref }}-tag-${{ index }}"},
      change: {value: "${{ index }}"}}
  - {id: child, uses: workflow.errand, with: {ref: "${{ input.ref }}"}, retry: {max: 20, backoff: [50ms]}}
  - {id: skipped, if: 'input.ref == ""', uses: transform, with: {}}
  - {id: w1, needs: [child], uses: worker.page, with: {n: 1}, retry: {max: 20, backoff: [50ms]}}
  - {id: w2, needs: [child], uses: worker.page, with: {n: 2}, retry: {max: 20, backoff: [50ms]}}
  - {id: end, needs: [skipped, w1, w2], uses: transform, with: {price: "${{ steps.price.output.action_id }}"}}
output: "${{ steps.end.output }}"
`

// errand is the child workflow of journey.
const errand = `name: errand
steps:
  - id: send
    uses: connector.crm.update
    action_type: note
    risk: low
    retry: {max: 20, backoff: [50ms]}
    with: {target: {entity_type: contact, entity_ref: "${{ input.ref }}-errand"}, change: {value: sent}}
`

// effectsOfJourney is the number of actions of one run, including its child's.
const effectsOfJourney = 6

// runWorld is a world whose servers execute workflows.
type runWorld struct {
	*world
	people  []*person
	starter *person
	worker  *workerProcess
	journal *journal

	mu    sync.Mutex
	begun map[string]string // acknowledged runs, by trigger_ref
	fresh atomic.Int64      // acknowledgements since the last reset
	wrong []string

	// hang, when set, blocks the model's answers; asked counts the calls that
	// it has blocked.
	hang  atomic.Pointer[chan struct{}]
	asked atomic.Int64
}

func newRunWorld(t *testing.T, e engine, items int, lease string) *runWorld {
	t.Helper()
	w := &runWorld{begun: map[string]string{}, journal: newJournal()}
	model := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if hang := w.hang.Load(); hang != nil {
			w.asked.Add(1)
			<-*hang
		}
		answerJSON(rw, http.StatusOK, object{"id": "x", "object": "chat.completion", "model": "small",
			"choices": []object{
				{"index": 0, "finish_reason": "stop", "message": object{"role": "assistant", "content": "a thing"}}},
			"usage": object{"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
	}))
	t.Cleanup(model.Close)
	more := "\nruns: {workers: 8, lease: " + lease + "}\nmodels: {local: {type: openai, base_url: \"" + model.URL +
		"\", allow_private: true}}\n"
	w.world = newWorldOn(t, e, items, quick+more)
	for _, name := range []string{"ana", "ben"} {
		w.people = append(w.people, w.admin.create(t, name, "person", "approver"))
	}
	w.starter = w.admin.create(t, "starter", "service", "proposer")
	for name, source := range map[string]string{"errand": errand, "journey": journey} {
		file := filepath.Join(t.TempDir(), name+".yaml")
		write(t, file, source)
		if out, err := w.cli(w.admin, "workflow", "apply", file); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	w.worker = newWorker(t, w.gate, w.admin.create(t, "pager", "service", "worker").key)
	return w
}

// maxOpenRuns bounds the runs of one client that have not ended. A slow machine
// would otherwise spend minutes on the backlog of a storm.
const maxOpenRuns = 8

// start starts runs one after another until ctx ends or few items are left, and records the answers.
// A call without an answer is repeated under its trigger_ref.
func (w *runWorld) start(ctx context.Context, name string) {
	var open []string
	for n := 0; ctx.Err() == nil && w.next.Load() < w.items-8; n++ {
		for len(open) >= maxOpenRuns && ctx.Err() == nil {
			if w.hasEnded(open[0]) {
				open = open[1:]
				continue
			}
			time.Sleep(100 * time.Millisecond)
		}
		ref := fmt.Sprintf("%s-%d", name, n)
		body := object{"trigger_ref": ref, "input": object{"sku": w.sku(), "ref": ref, "two": []int{1, 2}}}
		for ctx.Err() == nil {
			res := w.starter.post("/workflows/journey/runs", body)
			if res.err != nil || res.status == http.StatusServiceUnavailable {
				time.Sleep(5 * time.Millisecond)
				continue
			}
			w.mu.Lock()
			if id := res.str("id"); res.status/100 == 2 && id != "" {
				w.begun[ref] = id
				open = append(open, id)
			} else {
				w.wrong = append(w.wrong, "a start was answered "+res.String())
			}
			w.mu.Unlock()
			w.fresh.Add(1)
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// hasEnded says that a run is known to have ended. Without an answer, nothing is known.
func (w *runWorld) hasEnded(id string) bool {
	status := gatehouse.RunStatus(w.starter.get("/runs/" + id).str("status"))
	return status.Final()
}

// review approves pending actions, each as a random one of the people, until ctx ends.
func (w *runWorld) review(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		res := w.admin.get("/proposed-actions?status=pending&limit=50")
		items, _ := res.body["items"].([]any)
		for _, item := range items {
			one, _ := item.(object)
			id, _ := one["id"].(string)
			digest, _ := one["digest"].(string)
			who := w.people[rng.IntN(len(w.people))]
			res := who.decide(&gatehouse.Action{ID: id, Digest: gatehouse.Digest(digest)}, "approved")
			if res.status == http.StatusOK {
				w.journal.decide(id, "approved", who.name)
				w.fresh.Add(1)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestRunStorm repeatedly kills servers and the external worker with SIGKILL
// while runs of twenty steps pass through them: at random times, and servers at
// the failpoints of runs, too (see failpointsOn). Every acknowledged run
// succeeds, each effect is in the target's own ledger once, and every invariant
// holds.
func TestRunStorm(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		t.Parallel()
		inLegs(t, e, "runs", goal{"SIGKILLs under runs", 3, 1000, 50},
			func(t *testing.T, l *leg, n int) { runStorm(t, e, l, n) })
	})
}

func runStorm(t *testing.T, e engine, l *leg, kills int) {
	names := failpointsOn(e, failpoint.RunNames())
	w := newRunWorld(t, e, 100+40*(kills+len(names)), "1s")
	path, err := mortal()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range w.servers {
		s.binary = path
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reviewing, done := context.WithCancel(t.Context())
	defer done()
	var load, reviewers sync.WaitGroup
	for i := range 2 {
		load.Go(func() { w.start(ctx, fmt.Sprint("client-", i)) })
	}
	mine := rand.New(rand.NewPCG(l.rng.Uint64(), 1))
	reviewers.Go(func() { w.review(reviewing, mine) })
	for range kills {
		w.fresh.Store(0)
		until(t, "acknowledgements", func() bool { return w.fresh.Load() >= 4 })
		time.Sleep(time.Duration(l.rng.IntN(50_000)) * time.Microsecond)
		if l.rng.IntN(2) == 0 {
			w.worker.kill()
			l.add("SIGKILLs of the worker", 1)
			w.worker.start()
		}
		victim := w.servers[l.rng.IntN(len(w.servers))]
		victim.kill()
		l.add("SIGKILLs under runs", 1)
		victim.start()
		w.worker.tell()
	}
	l.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i, name := range names {
		w.die(t, l, w.servers[i%len(w.servers)], name)
		w.worker.tell()
	}
	w.revive()
	w.worker.tell()
	cancel()
	load.Wait()
	ended := w.ended(t)
	done()
	reviewers.Wait()
	l.add("runs of twenty steps", ended)
	if ended < kills+len(names) || len(l.Points) != len(names) {
		t.Errorf("the storm does not count: %d runs ended, it died at %d of %d failpoints", ended, len(l.Points), len(names))
	}
	w.checkRuns(t)
	w.check(t, w.journal)
	w.stop()
}

// die starts a server that kills itself at a failpoint, and waits for its
// death. The server may already be dead. It is then started again, unless it is
// the only one.
func (w *runWorld) die(t *testing.T, l *leg, victim *server, name string) {
	t.Helper()
	nth := 1 + l.rng.IntN(4)
	env := victim.env
	victim.env = append(env[:len(env):len(env)], "GATEHOUSE_FAILPOINT="+name+":"+strconv.Itoa(nth))
	if victim.cmd != nil {
		victim.kill()
	}
	err := victim.launch()
	victim.env = env
	w.worker.tell()
	if err == nil { // it serves, for now
		select {
		case err = <-victim.exited:
		case <-time.After(60 * time.Second):
			t.Fatalf("the load does not reach %s %d times", name, nth)
		}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("it did not die at %s: %v", name, err)
	}
	l.add("SIGKILLs at failpoints of runs", 1)
	l.Points[name]++
	victim.cmd = nil
	if len(w.servers) > 1 {
		victim.start()
	}
}

// ended waits until every run has ended and has its evidence, and counts the
// runs of the journey.
func (w *runWorld) ended(t *testing.T) (n int) {
	t.Helper()
	db := openStore(t, w.gate)
	defer db.Close()
	const open = `SELECT id, workflow, status FROM run
WHERE status NOT IN ('succeeded', 'failed_terminal', 'canceled') OR evidence = ''`
	const steps = `SELECT s.key, s.status, s.attempts, s.due_at, s.lease_owner FROM step s JOIN run r ON r.seq = s.run_seq
WHERE r.status NOT IN ('succeeded', 'failed_terminal', 'canceled') AND s.status NOT IN ('succeeded', 'blocked') LIMIT 8`
	eventually(t, 90*time.Second, func() error {
		if left := rowsOf(t, db, open); len(left) > 0 {
			return fmt.Errorf("%d runs do not end, such as %v; their steps: %v",
				len(left), left[:min(3, len(left))], rowsOf(t, db, steps))
		}
		return nil
	})
	return count(t, db, `SELECT count(*) FROM run WHERE workflow = 'journey'`)
}

// checkRuns compares every run with what its client was told, and with the
// targets' own ledgers.
func (w *runWorld) checkRuns(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	seen := map[string]string{}
	for ref, id := range w.begun {
		if seen[id] != "" {
			t.Errorf("the run %s was given to %s and %s", id, ref, seen[id])
		}
		seen[id] = ref
		var run gatehouse.RunDetail
		w.admin.get("/runs/"+id+"/detail").decode(t, &run)
		if run.TriggerRef != ref {
			t.Errorf("invariant 2: the run %s was answered for %s, and has %q", id, ref, run.TriggerRef)
		}
		if run.Status != gatehouse.RunSucceeded {
			t.Errorf("the run %s of %s is %s: %+v", id, ref, run.Status, run.Failure)
			continue
		}
		if len(run.Steps) != 20 ||
			slices.ContainsFunc(run.Steps, func(s *gatehouse.Step) bool { return s.Status != gatehouse.StepSucceeded }) {
			t.Errorf("the run %s has succeeded, but not all of its %d steps have", id, len(run.Steps))
		}
		// The last action belongs to the child run and counts for both runs.
		if len(run.Actions) != effectsOfJourney-1 || run.Writes != effectsOfJourney {
			t.Errorf("the run %s made %d actions, and counts %d", id, len(run.Actions), run.Writes)
		}
	}
	// Each effect is in the ledger once: only one run wrote each place.
	effects := map[string]int{}
	w.target.mu.Lock()
	for ref, n := range w.target.version {
		effects[ref] = n
	}
	w.target.mu.Unlock()
	for ref := range w.begun {
		for _, place := range []string{"-note", "-tag-0", "-tag-1", "-errand"} {
			if n := effects[ref+place]; n != 1 {
				t.Errorf("invariant 5: %s%s was written %d times", ref, place, n)
			}
		}
	}
	db := openStore(t, w.gate)
	defer db.Close()
	for what, query := range map[string]string{
		"two successful receipts under one key": `SELECT p.idempotency_key, count(*) FROM receipt r
			JOIN push p ON p.id = r.push_id
			WHERE r.outcome = 'applied' AND NOT r.late GROUP BY p.tenant, p.idempotency_key HAVING count(*) > 1`,
		"a step that an attempt settled twice": `SELECT step_id, count(*) FROM step_attempt
			WHERE outcome IN ('succeeded', 'waiting_approval') GROUP BY step_id HAVING count(*) > 1`,
		"a final step with a lease": `SELECT id, status FROM step WHERE status <> 'running' AND lease_owner <> ''`,
	} {
		if rows := rowsOf(t, db, query); len(rows) > 0 {
			t.Errorf("%s: %s", what, strings.Join(rows[:1], ""))
		}
	}
}

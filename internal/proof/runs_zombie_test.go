package proof

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	slowModel = `name: asking
steps:
  - {id: ask, uses: model.local, with: {model: small, prompt: "x"}, retry: {max: 20, backoff: [50ms]}}
`
	slowPage = `name: paging
steps:
  - {id: page, uses: worker.page, with: {until: "${{ input.until }}"}, retry: {max: 20, backoff: [50ms]}}
`
)

// TestRunZombies stops the holder of a step (SIGSTOP) until its lease is over
// and another, if there is one, has done the step; then the holder continues. It
// is a server during a model call, or an external worker. The holder is fenced
// off: its late result changes nothing.
func TestRunZombies(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		t.Parallel()
		inLegs(t, e, "run zombies", goal{"stopped holders of steps", 4, 200, 20},
			func(t *testing.T, l *leg, n int) { runZombies(t, e, l, n) })
	})
}

func runZombies(t *testing.T, e engine, l *leg, rounds int) {
	w := newRunWorld(t, e, 10, "1s")
	for name, source := range map[string]string{"asking": slowModel, "paging": slowPage} {
		file := filepath.Join(t.TempDir(), name+".yaml")
		write(t, file, source)
		if out, err := w.cli(w.admin, "workflow", "apply", file); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	db := openStore(t, w.gate)
	defer db.Close()
	other := newWorker(t, w.gate, w.worker.key)
	for round := range rounds {
		if round%2 == 0 {
			w.stopServer(t, db, round)
		} else {
			w.stopWorker(t, db, round, other)
		}
		l.add("stopped holders of steps", 1)
	}
	w.ended(t)
	w.check(t, newJournal())
	w.stop()
}

func (w *runWorld) begin(t *testing.T, name string, round int, input object) string {
	t.Helper()
	res := w.starter.post("/workflows/"+name+"/runs", object{"trigger_ref": fmt.Sprint("round-", round), "input": input})
	if res.status != http.StatusCreated {
		t.Fatalf("start: %s", res)
	}
	return res.str("id")
}

func (w *runWorld) succeeded(t *testing.T, id string) *gatehouse.RunDetail {
	t.Helper()
	run := new(gatehouse.RunDetail)
	eventually(t, 30*time.Second, func() error {
		w.admin.get("/runs/"+id+"/detail").decode(t, run)
		if run.Status != gatehouse.RunSucceeded {
			return fmt.Errorf("the run %s is %s: %+v", id, run.Status, run.Steps[0])
		}
		return nil
	})
	return run
}

// stopServer stops the server that waits for a model.
func (w *runWorld) stopServer(t *testing.T, db *look, round int) {
	t.Helper()
	hang := make(chan struct{})
	w.asked.Store(0)
	w.hang.Store(&hang)
	id := w.begin(t, "asking", round, object{})
	until(t, "model call", func() bool { return w.asked.Load() > 0 })
	var victim *server
	until(t, "holder of the step", func() bool {
		for _, s := range w.servers {
			if count(t, db, `SELECT count(*) FROM step WHERE run_id = ? AND status = 'running' AND `+owned, id,
				strconv.Itoa(s.pid())) > 0 {
				victim = s
			}
		}
		return victim != nil
	})
	if err := victim.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// The old call is answered after its lease has ended, when nobody can use
	// the answer; later calls are answered at once.
	time.Sleep(1050 * time.Millisecond)
	w.hang.Store(nil)
	close(hang)
	if len(w.servers) > 1 { // the other server does it meanwhile
		until(t, "end of the run by another", func() bool {
			return count(t, db, `SELECT count(*) FROM run WHERE id = ? AND status = 'succeeded'`, id) == 1
		})
	}
	before := rowsOf(t, db, `SELECT status, generation, attempts, finished_at FROM step WHERE run_id = ?`, id)
	words := w.log.said("the lease of a step was lost")
	if err := victim.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	run := w.succeeded(t, id)
	if len(w.servers) > 1 {
		until(t, "word of the lost lease", func() bool { return w.log.said("the lease of a step was lost") > words })
		if after := rowsOf(t, db, `SELECT status, generation, attempts, finished_at FROM step WHERE run_id = ?`,
			id); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("the zombie changed %v to %v", before, after)
		}
	}
	w.once(t, run)
}

// stopWorker stops an external worker that has leased a step.
func (w *runWorld) stopWorker(t *testing.T, db *look, round int, other *workerProcess) {
	t.Helper()
	release := filepath.Join(t.TempDir(), "release") // what the first holder waits for
	id := w.begin(t, "paging", round, object{"until": release})
	until(t, "lease of a worker", func() bool {
		return count(t, db, `SELECT count(*) FROM step WHERE run_id = ? AND attempts > 0`, id) == 1
	})
	// Either of the two may hold the step: both stop, and a third worker does the step.
	for _, p := range []*workerProcess{w.worker, other} {
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "end of the lease", func() bool {
		return count(t, db, `SELECT count(*) FROM step WHERE run_id = ? AND status <> 'running'`, id) == 1
	})
	third := newWorker(t, w.gate, w.worker.key)
	run := w.succeeded(t, id)
	before := rowsOf(t, db, `SELECT status, generation, attempts, finished_at FROM step WHERE run_id = ?`, id)
	write(t, release, "")
	for _, p := range []*workerProcess{w.worker, other} {
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	lost := run.Steps[0].ID + " lease_lost"
	until(t, "word of the lost lease", func() bool { return w.worker.said.has(lost) || other.said.has(lost) })
	if after := rowsOf(t, db, `SELECT status, generation, attempts, finished_at FROM step WHERE run_id = ?`,
		id); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the zombie changed %v to %v", before, after)
	}
	w.once(t, run)
	third.kill()
}

// once checks that a run's step succeeded once, under its last lease.
func (w *runWorld) once(t *testing.T, run *gatehouse.RunDetail) {
	t.Helper()
	var won []*gatehouse.StepAttempt
	for _, a := range run.Attempts {
		if a.Outcome == string(gatehouse.StepSucceeded) {
			won = append(won, a)
		}
	}
	if s := run.Steps[0]; len(won) != 1 || won[0].Generation != s.Generation || s.Generation < 2 || len(run.Attempts) < 2 {
		t.Errorf("the step of %s at generation %d has %d successes among %d attempts", run.ID, s.Generation, len(won),
			len(run.Attempts))
	}
}

package cli

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// pagingSource is a workflow whose steps the example workers execute: one succeeds at once, one
// fails first, and one takes longer than a lease.
const pagingSource = `name: paging
input: {type: object, required: [people]}
steps:
  - id: each
    for_each: input.people
    uses: worker.page
    with: {who: "${{ item }}"}
  - {id: busy, needs: [], uses: worker.page, with: {who: ben, pager: busy}, retry: {max: 2, backoff: [50ms]}}
  - {id: long, needs: [], uses: worker.page, with: {who: cleo, seconds: 12}}
output: {paged: "${{ steps.each.output }}", busy: "${{ steps.busy.output.paged }}",
  long: "${{ steps.long.output.paged }}"}
`

// endlessSource is a workflow that only a cancellation ends.
const endlessSource = `name: endless
steps:
  - {id: wait, uses: worker.page, with: {who: dan, seconds: 600}}
`

// TestExamplesAgainstTheServer runs the workers of examples/ against a server,
// from the workflow's text to the run's end.
func TestExamplesAgainstTheServer(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{"worker.py": pythonPath(t), "worker.ts": nodeWithTypes(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := filepath.Abs(filepath.Join("..", "..", "examples", name))
			must(t, err)
			testExampleWorker(t, command, file)
		})
	}
}

func pythonPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("examples/worker.py needs python3: %v", err)
	}
	return path
}

// nodeWithTypes returns a Node that runs TypeScript: the machine's own, or that of scripts/tools
// if the machine has none or too old a one.
func nodeWithTypes(t *testing.T) string {
	t.Helper()
	installed, err := filepath.Abs(filepath.Join("..", "..", ".tools", "node", "node_modules", ".bin", "node"))
	must(t, err)
	for _, path := range []string{"node", installed} {
		if out, err := exec.Command(path, "-p", "process.features.typescript").Output(); err == nil &&
			strings.TrimSpace(string(out)) == "strip" {
			return path
		}
	}
	t.Fatal("examples/worker.ts needs Node 22.18 or later: run scripts/tools")
	return ""
}

func testExampleWorker(t *testing.T, command, file string) {
	dev := startDev(t, t.TempDir())
	admin := servetest.MustClient(t, strings.TrimSuffix(dev.api, "/api/v1"), devEnv(t, dev.cmd.Dir, "admin"))
	create := func(name string, role gatehouse.Role) *gatehouse.Credentials {
		made, err := admin.CreatePrincipal(t.Context(),
			gatehouse.NewPrincipal{Name: name, Kind: gatehouse.KindService, Roles: []gatehouse.Role{role}})
		must(t, err)
		return made
	}
	worker := create("pager", gatehouse.RoleWorker)
	starter := servetest.MustClient(t, strings.TrimSuffix(dev.api, "/api/v1"),
		*create("starter", gatehouse.RoleProposer))
	for name, source := range map[string]string{"paging": pagingSource, "endless": endlessSource} {
		if _, _, err := admin.ApplyWorkflow(t.Context(), name, source); err != nil {
			t.Fatal(err)
		}
	}
	start := func(name string, input gatehouse.JSON) *gatehouse.Run {
		run, _, err := starter.StartRun(t.Context(), name, gatehouse.NewRun{Input: input})
		must(t, err)
		return run
	}
	run, hung := start("paging", `{"people":["ana","ben","cleo"]}`), start("endless", `{}`)
	p := startWorker(t, command, file, strings.TrimSuffix(dev.api, "/api/v1"), worker.Key)

	waitRun(t, admin, hung.ID, "running",
		func(r *gatehouse.Run) bool { return r.Steps[0].Status == gatehouse.StepRunning })
	if _, err := starter.CancelRun(t.Context(), hung.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	hung = waitRun(t, admin, hung.ID, "ended", func(r *gatehouse.Run) bool { return r.Status.Final() })
	if hung.Status != gatehouse.RunCanceled || hung.Steps[0].Attempts != 1 {
		t.Errorf("the canceled run is %s after %d attempts", hung.Status, hung.Steps[0].Attempts)
	}
	run = waitRun(t, admin, run.ID, "ended", func(r *gatehouse.Run) bool { return r.Status.Final() })
	want := fmt.Sprintf(
		`{"busy":"ben","long":"cleo","paged":[{"key":"%[1]s:each[0]","paged":"ana"},{"key":"%[1]s:each[1]",`+
			`"paged":"ben"},{"key":"%[1]s:each[2]","paged":"cleo"}]}`, run.ID)
	if run.Status != gatehouse.RunSucceeded || string(run.Output) != want {
		t.Errorf("the run is %s (%+v) with\n%s, want\n%s", run.Status, run.Failure, run.Output, want)
	}
	// heartbeats kept the lease of the long step
	for key, attempts := range map[string]int{"each[1]": 1, "busy": 2, "long": 1} {
		if s := run.StepOf(key); s == nil || s.Attempts != attempts {
			t.Errorf("%s: %+v, want %d attempts", key, s, attempts)
		}
	}
	p.stop(t)
	dev.stop()
}

func waitRun(t *testing.T, c *client.Client, id, what string, ok func(*gatehouse.Run) bool) *gatehouse.Run {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		run, err := c.WaitRun(t.Context(), id, time.Second)
		must(t, err)
		if ok(run) {
			return run
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run %s is not %s: %+v", id, what, run)
		}
	}
}

// exampleProcess is a running example with a lease of ten seconds.
type exampleProcess struct {
	*exec.Cmd
	mu    sync.Mutex
	text  bytes.Buffer
	ended chan error
}

func (p *exampleProcess) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func startWorker(t *testing.T, command, file, url, key string) *exampleProcess {
	t.Helper()
	p := &exampleProcess{Cmd: exec.Command(command, file), ended: make(chan error, 1)}
	p.Env = cleanEnv("GATEHOUSE_URL="+url, "GATEHOUSE_KEY="+key, "WORKER_LEASE=10")
	p.Stdout, p.Stderr = p, p
	must(t, p.Start())
	go func() { p.ended <- p.Wait() }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("%s said:\n%s", filepath.Base(file), p.text.String())
		}
	})
	return p
}

// stop asks it to end, and waits until its steps have ended.
func (p *exampleProcess) stop(t *testing.T) {
	t.Helper()
	must(t, p.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("told to stop, the worker ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the worker continues")
	}
}

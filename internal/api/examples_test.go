package api

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestExampleWorkers runs the workers of examples/ and checks the rules for
// workers.
func TestExampleWorkers(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]func(*testing.T) []string{
		"worker.py": func(t *testing.T) []string { return []string{python(t)} },
		"worker.ts": func(t *testing.T) []string { return []string{nodeWithTypes(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testExampleWorker(t, append(command(t), filepath.Join("..", "..", "examples", name)))
		})
		t.Run(name+" without answers", func(t *testing.T) {
			t.Parallel()
			testWithoutAnswers(t, append(command(t), filepath.Join("..", "..", "examples", name)))
		})
	}
}

func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("examples/worker.py needs python3: %v", err)
	}
	return path
}

// nodeWithTypes returns a Node that runs TypeScript: the installed one, or the
// one of scripts/tools if that is too old.
func nodeWithTypes(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"node", filepath.Join("..", "..", ".tools", "node", "node_modules", ".bin", "node")} {
		if out, err := exec.Command(path, "-p", "process.features.typescript").Output(); err == nil &&
			strings.TrimSpace(string(out)) == "strip" {
			return path
		}
	}
	t.Fatal("examples/worker.ts needs Node 22.18 or later: run scripts/tools")
	return ""
}

// process is a running example.
type process struct {
	*exec.Cmd
	output bytes.Buffer
	ended  chan struct{}
	err    error // after it has ended
}

func startExample(t *testing.T, command []string, server, key string, more ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.Env = append(p.Environ(), "GATEHOUSE_URL="+server, "GATEHOUSE_KEY="+key, "WORKER_LEASE=4")
	p.Env = append(p.Env, more...)
	p.Stdout, p.Stderr = &p.output, &p.output
	must(t, p.Start())
	go func() {
		p.err = p.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%s said:\n%s", command[len(command)-1], p.output.String())
		}
	})
	return p
}

// end waits for the process to end.
func (p *process) end(t *testing.T) error {
	t.Helper()
	select {
	case <-p.ended:
		return p.err
	case <-time.After(time.Minute):
		t.Fatal("the worker continues")
		return nil
	}
}

func testExampleWorker(t *testing.T, command []string) {
	b, server := newWorkbench(t)
	b.lose, b.half = "/steps/stp_good/complete", "/steps/stp_long/heartbeat"
	good, busy, bad := b.put("good", `{"who":"ana"}`), b.put("busy", `{"pager":"busy","who":"ben"}`), b.put("bad", `{}`)
	long, canceled, lost := b.put("long", `{"seconds":6,"who":"cleo"}`), b.put("canceled", `{"seconds":600,"who":"dan"}`),
		b.put("lost", `{"seconds":600,"who":"eve"}`)
	p := startExample(t, command, server.URL, "gth_work")

	b.waitFor(t, canceled, gatehouse.StepRunning)
	b.waitFor(t, lost, gatehouse.StepRunning)
	b.do(func() {
		canceled.cancel = true
		// Another worker holds it now.
		until := time.Now().Add(time.Hour)
		lost.Generation, lost.LeaseUntil = lost.Generation+1, &until
	})
	b.waitFor(t, canceled, gatehouse.StepFailed)
	b.until(t, "the lost step's worker to be told", func() bool { return lost.refused > 0 })
	for _, s := range []*benchStep{good, busy, long} {
		b.waitFor(t, s, gatehouse.StepSucceeded)
	}
	b.waitFor(t, bad, gatehouse.StepFailed)

	must(t, p.Process.Signal(syscall.SIGTERM))
	if err := p.end(t); err != nil {
		t.Errorf("told to stop, it ended with %v", err)
	}
	// An example with an unknown key ends and reports why.
	stranger := startExample(t, command, server.URL, "gth_nobody")
	if err := stranger.end(t); err == nil || !strings.Contains(stranger.output.String(), "unauthenticated") {
		t.Errorf("with an unknown key it ended with %v: %s", err, stranger.output.String())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if want := gatehouse.JSON(`{"key":"run_1:good","paged":"ana"}`); good.Output != want || good.Attempts != 1 ||
		!strings.Contains(p.output.String(), "good: complete") {
		t.Errorf("good: %s after %d attempts", good.Output, good.Attempts)
	}
	if len(busy.failures) != 1 || !busy.failures[0].Retryable || busy.failures[0].Detail == "" || busy.Attempts != 2 {
		t.Errorf("busy: %+v after %d attempts", busy.failures, busy.Attempts)
	}
	if len(bad.failures) != 1 || bad.failures[0].Retryable || bad.Attempts != 1 {
		t.Errorf("bad: %+v after %d attempts", bad.failures, bad.Attempts)
	}
	if long.heartbeats < 2 || long.Attempts != 1 || long.refused != 0 {
		t.Errorf("long: %d heartbeats, %d attempts, %d refusals", long.heartbeats, long.Attempts, long.refused)
	}
	if len(canceled.failures) != 1 || canceled.failures[0].Retryable {
		t.Errorf("canceled: %+v", canceled.failures)
	}
	if lost.Status != gatehouse.StepRunning || lost.Generation != 2 || len(lost.failures) != 0 {
		t.Errorf("lost: %s, generation %d, %+v", lost.Status, lost.Generation, lost.failures)
	}
	if b.batch < 5 {
		t.Errorf("leased %d steps at most in one request", b.batch)
	}
}

// testWithoutAnswers: a worker goes on after half an answer to its request for leases, and keeps a lease although a
// heartbeat gets no answer.
func testWithoutAnswers(t *testing.T, command []string) {
	b, server := newWorkbench(t)
	b.half, b.hang = "/steps/lease", "/steps/stp_long/heartbeat"
	long := b.put("long", `{"seconds":9,"who":"cleo"}`)
	p := startExample(t, command, server.URL, "gth_work", "WORKER_LEASE=6")
	b.waitFor(t, long, gatehouse.StepSucceeded)
	close(b.released)
	must(t, p.Process.Signal(syscall.SIGTERM))
	if err := p.end(t); err != nil {
		t.Errorf("told to stop, it ended with %v", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.half != "" || b.hang != "" || long.Attempts != 1 || long.refused != 0 {
		t.Errorf("not asked: %q %q; %d attempts, %d refusals", b.half, b.hang, long.Attempts, long.refused)
	}
}

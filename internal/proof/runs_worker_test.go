package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// envWorker turns this binary into a worker. It names the file with the
// servers' addresses and the worker's key.
const envWorker = "GATEHOUSE_PROOF_WORKER"

// orders is the content of a worker's file. A restarted server has another
// address.
type orders struct {
	URLs []string
	Key  string
}

// work is an external worker of the tool page. It runs until it is killed.
func work(file string) int {
	ctx := context.Background()
	for n := 0; ; n++ {
		var o orders
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &o)
		}
		if err != nil || len(o.URLs) == 0 {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		c, err := client.New(o.URLs[n%len(o.URLs)], o.Key, client.WithRetries(0, time.Millisecond))
		if err != nil {
			return 1
		}
		steps, err := c.LeaseSteps(ctx, gatehouse.LeaseRequest{
			Tools: []string{"page"}, Max: 8, Lease: gatehouse.Span(time.Second),
			Wait: gatehouse.Duration(200 * time.Millisecond),
		})
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		for i, l := range steps {
			if i == 0 && l.Step.Attempts == 1 && strings.HasSuffix(l.Step.Key, "[0]") { // some steps fail at first
				_, _ = c.FailStep(ctx, l.Step.ID,
					gatehouse.StepFailure{Generation: l.Lease.Generation, Code: "busy", Detail: "the pager is busy", Retryable: true})
				continue
			}
			if release, ok := l.Step.Input.Get("until"); ok && l.Step.Attempts == 1 { // it is stopped meanwhile
				var path string
				for err := json.Unmarshal([]byte(release), &path); err == nil; time.Sleep(10 * time.Millisecond) {
					if _, err := os.Stat(path); err == nil {
						break
					}
				}
			}
			// A result that does not arrive is not sent again: the lease ends, and the step is leased again.
			_, err := c.CompleteStep(ctx, l.Step.ID,
				gatehouse.StepResult{Generation: l.Lease.Generation, Output: gatehouse.StringJSON(fmt.Sprint(os.Getpid()))})
			fmt.Println(l.Step.ID, gatehouse.CodeOf(err))
		}
	}
}

// workerProcess is an external worker that can be killed.
type workerProcess struct {
	t    testing.TB
	gate *gate
	file string
	key  string
	cmd  *exec.Cmd
	said said
}

// said is the output of a worker.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) has(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), line)
}

func newWorker(t testing.TB, g *gate, key string) *workerProcess {
	t.Helper()
	w := &workerProcess{t: t, gate: g, file: filepath.Join(t.TempDir(), "orders"), key: key}
	w.tell()
	w.start()
	t.Cleanup(w.kill)
	return w
}

// tell writes the servers' addresses to the file.
func (w *workerProcess) tell() {
	w.t.Helper()
	o := orders{Key: w.key}
	for _, s := range w.gate.servers {
		if url, _ := s.url.Load().(string); url != "" {
			o.URLs = append(o.URLs, url)
		}
	}
	raw, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	write(w.t, w.file+".new", string(raw))
	if err := os.Rename(w.file+".new", w.file); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workerProcess) start() {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	w.cmd = exec.Command(self)
	w.cmd.Env = append(os.Environ(), envWorker+"="+w.file)
	w.cmd.Stdout = &w.said
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workerProcess) kill() {
	if w.cmd != nil {
		_ = w.cmd.Process.Signal(syscall.SIGKILL)
		_ = w.cmd.Wait()
		w.cmd = nil
	}
}

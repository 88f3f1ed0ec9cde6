//go:build unix

package dispatch

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// The environment of a child process that kills itself at a point.
const (
	childStore = "GATEHOUSE_TEST_CHILD_STORE"
	childPoint = "GATEHOUSE_TEST_CHILD_POINT"
	childClass = "GATEHOUSE_TEST_CHILD_CLASS"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childStore); path != "" {
		child(path, Point(os.Getenv(childPoint)), connector.Class(os.Getenv(childClass)))
	}
	flag.Parse()
	checks := "25" // of rapid, unless the command line says more
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			checks = f.Value.String()
		}
	})
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// child carries out the pushes of a store, or rescues them if the point is one of a rescue, and kills itself
// with SIGKILL at the point. It exits with 2 after an error, and with 3 if it never reached the point.
func child(path string, at Point, class connector.Class) {
	ctx := context.Background()
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	rescue := slices.Contains(RescuePoints(), at)
	clock := time.Now
	if rescue { // the lease of the earlier child must have expired
		clock = func() time.Time { return time.Now().Add(time.Minute) }
	}
	store, err := openStore(ctx, path, clock)
	fail(err)
	targets, err := NewRegistry(Target{Name: "shop", Connector: fileLedger{path + ".ledger", class}})
	fail(err)
	d, err := New(Dependencies{
		Store: store, Targets: targets, Authority: &authority{}, Owner: "child",
		Failpoint: func(p Point) {
			if p == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
	}, testConfig())
	fail(err)
	if rescue {
		_, err = d.Rescue(ctx)
	} else {
		_, err = d.Drain(ctx, "", 10)
	}
	fail(err)
	os.Exit(3)
}

// fileLedger is a target outside the process: a file with one line per call. A line has the idempotency key,
// and what the class makes of the call: effect, again or refused.
type fileLedger struct {
	path  string
	class connector.Class
}

func (f fileLedger) Fingerprint() string { return strings.Repeat("0c", 32) }

func (f fileLedger) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: f.class}, name == "update"
}

// lines counts the calls and effects under a key.
func (f fileLedger) lines(key string) (calls, effects int, err error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		switch s.Text() {
		case key + " effect":
			calls++
			effects++
		case key + " refused", key + " again":
			calls++
		}
	}
	return calls, effects, nil
}

func (f fileLedger) Execute(_ context.Context, c connector.Call) (connector.Result, error) {
	_, effects, err := f.lines(c.IdempotencyKey)
	if err != nil {
		return connector.Result{}, err
	}
	what := "effect"
	var refusal error
	switch {
	case effects > 0 && f.class == connector.ClassA:
		what = "again"
	case effects > 0 && f.class == connector.ClassB:
		what = "refused"
		refusal = &connector.Error{Kind: connector.Terminal, Code: "target_changed", Detail: "another version"}
	}
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return connector.Result{}, err
	}
	defer file.Close()
	if _, err := fmt.Fprintln(file, c.IdempotencyKey, what); err != nil {
		return connector.Result{}, err
	}
	return connector.Result{}, refusal
}

// TestKillAtEveryPoint kills a process with SIGKILL at every point, including
// inside transactions, and lets another process finish.
func TestKillAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, point := range Points() {
		for _, class := range []connector.Class{connector.ClassA, connector.ClassB, connector.ClassC} {
			t.Run(string(point)+"/"+string(class), func(t *testing.T) {
				t.Parallel()
				path := migratedfile.New(t)
				target := fileLedger{path + ".ledger", class}
				b, a := orphan(t, path, target)
				dieAt(t, path, point, class)

				b.clock.micros.Store(time.Now().Add(time.Minute).UnixMicro())
				b.open(b.clock.now)
				b.settle(b.dispatcher(testConfig(), owner("second")))
				s := b.state(a)
				assertSettled(t, s)
				calls, effects, err := target.lines(a.IdempotencyKey)
				must(t, err)
				want, wantCalls, wantEffects := gatehouse.PushApplied, 1, 1
				switch point {
				case PointSent:
					if class == connector.ClassC {
						want, wantCalls, wantEffects = gatehouse.PushUnknown, 0, 0
					}
				case PointCalled, PointOutcome, PointOutcomeCommit:
					if class != connector.ClassA {
						want = gatehouse.PushUnknown
					}
					if class != connector.ClassC {
						wantCalls = 2
					}
				}
				if s.push.Status != want || calls != wantCalls || effects != wantEffects {
					t.Errorf("%s, %d calls, %d effects; want %s, %d, %d", s.push.Status, calls, effects, want, wantCalls, wantEffects)
				}
				if s.push.Attempts < calls {
					t.Errorf("%d calls, only %d recorded intents", calls, s.push.Attempts)
				}
			})
		}
	}
}

// TestKillInRescue kills the process that rescues the push of a killed one:
// before the commit nothing has changed, after it everything has. Both results
// of a rescue pass both points: back to the queue, and to unknown.
func TestKillInRescue(t *testing.T) {
	t.Parallel()
	for _, point := range RescuePoints() {
		for class, end := range map[connector.Class]gatehouse.PushStatus{
			connector.ClassA: gatehouse.PushQueued, connector.ClassC: gatehouse.PushUnknown,
		} {
			t.Run(string(point)+"/"+string(class), func(t *testing.T) {
				t.Parallel()
				path := migratedfile.New(t)
				b, a := orphan(t, path, fileLedger{path + ".ledger", class})
				dieAt(t, path, PointSent, class)
				dieAt(t, path, point, class)
				b.clock.micros.Store(time.Now().Add(2 * time.Minute).UnixMicro())
				b.open(b.clock.now)
				want := end
				if point == PointRescue {
					want = gatehouse.PushSent
				}
				if got := b.state(a).push.Status; got != want {
					t.Errorf("the push is %s, want %s", got, want)
				}
				b.settle(b.dispatcher(testConfig(), owner("third")))
				assertSettled(t, b.state(a))
			})
		}
	}
}

// orphan makes a store with an approved action and closes it for a child.
func orphan(t *testing.T, path string, target fileLedger) (*bench, *gatehouse.Action) {
	t.Helper()
	b := &bench{t: t, path: path, authority: &authority{}, clock: newClock()}
	b.clock.micros.Store(time.Now().UnixMicro())
	b.open(b.clock.now)
	b.target(target)
	a := b.approve()
	must(t, b.store.Close())
	return b, a
}

// dieAt runs a child on the store; the child must kill itself at the point.
func dieAt(t *testing.T, path string, point Point, class connector.Class) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childStore+"="+path, childPoint+"="+string(point), childClass+"="+string(class))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed at %s: %v\n%s", point, err, out)
	}
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Options say what is measured, and how long.
type Options struct {
	// Scale is how many actions the figures on a filled store have; of them
	// 100,000 are pending, or all when it is less.
	Scale int
	// Parked is how many runs wait in the figure parked; 0 for 20,000.
	Parked int
	// Duration is how long each figure is measured, both sides and all rounds
	// together; filling the stores comes on top.
	Duration time.Duration
	// Rounds is how often the sides take turns; 5 at least in a run that counts.
	Rounds int
	// Clients are the numbers of concurrent clients that decide.
	Clients []int
	// Only names the figures to measure; empty for all.
	Only []string
	// Dir is where the stores are made, in a folder of their own that is
	// removed in the end; "" for the system's temporary folder.
	Dir string
	// DatabaseURL measures on PostgreSQL instead, in databases of their own on
	// this server, which are made and dropped; the one that is named here is
	// only connected to. The role must be allowed to create databases.
	DatabaseURL string
	// Workers is how many pushes are carried out at a time; 0 for 16.
	Workers int
	// Queue, when set, stands in the place of the baseline of dispatch, of steps
	// and, where it is [Handing], of handed. It is told where the gate's store is.
	Queue func(context.Context, Setup) (Queue, error)
	// Profiles, when set, takes CPU profiles of the rounds, but of the barest sides.
	Profiles string
	// Executable and Name start the program under test as a child process.
	Executable, Name string
	// Start serves a gate in this process.
	Start func(context.Context, Setup) (*Gate, error)
	// About is told what is measured on, Report takes each line as soon as it
	// is measured, Progress what is being done.
	About    func(string)
	Report   func(Line)
	Progress func(string)
}

// Setup is what a gate in this process is made of.
type Setup struct {
	Dir string
	// DatabaseURL, when set, is where the store is, instead of Dir.
	DatabaseURL string
	// Roles are those of the process; all when empty.
	Roles   []string
	Targets []dispatch.Target
	// Hold rests each approval before it is dispatched.
	Hold time.Duration
	// Hints may put something between the use cases and their hints.
	Hints func(usecase.Hints) usecase.Hints
	// Models answers what steps ask of models; nil for none.
	Models runs.Models
	// Idle leaves out all background work.
	Idle bool
}

// Gate is a gate in this process.
type Gate struct {
	// Addr is host:port.
	Addr  string
	Store gatehouse.Store
	App   *gate.Gate
	// Runs and Log are for the figures of runs.
	Runs  *runs.Runs
	Log   *slog.Logger
	Close func() error
}

// Line is one measured value beside its baseline.
type Line struct {
	Figure string `json:"figure"`
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Ours   Spread `json:"ours"`
	Bare   Spread `json:"baseline"`
	Ratio  Spread `json:"ratio"`
	// Baseline says what the other side is.
	Baseline string `json:"baseline_is"`
	// Target is what the ratio, or with Absolute the value itself, is to be:
	// at least, or at most where Lower is better. 0 for none.
	Target   float64 `json:"target,omitempty"`
	Absolute bool    `json:"target_is_absolute,omitempty"`
	Lower    bool    `json:"lower_is_better,omitempty"`
	Rounds   int     `json:"rounds"`
}

// Met reports whether the median meets the target.
func (l *Line) Met() bool {
	v := l.Ratio.Median
	if l.Absolute {
		v = l.Ours.Median
	}
	if l.Lower {
		return v <= l.Target
	}
	return v >= l.Target
}

// values are the two sides of a line, by round.
type values struct{ ours, bare []float64 }

func (v *values) add(ours, bare float64) {
	v.ours, v.bare = append(v.ours, ours), append(v.bare, bare)
}

// runner is one run.
type runner struct {
	Options
	base base
}

type figure struct {
	name  string
	about string
	run   func(*runner, context.Context) error
}

// figures in the order in which they are measured.
var figures = []figure{
	{"propose", "proposals over HTTP", (*runner).propose},
	{"decide", "decisions over HTTP", (*runner).decide},
	{"called", "from the committed decision to the call at the target", (*runner).called},
	{"dispatch", "pushes from claim to settled", (*runner).dispatch},
	{"inbox", "the inbox page of a filled store", (*runner).inbox},
	{"process", "memory and start-up of the real process", (*runner).process},
	{"sequence", "numbering of audit leaves", (*runner).sequence},
	{"verify", "verification of audit entries", (*runner).verify},
	{"policy", "policy evaluations", (*runner).policy},
	{"expiry", "decisions while many other actions expire", (*runner).expiry},
	{"steps", "steps of runs that do nothing", (*runner).steps},
	{"handed", "from the ready step to the worker", (*runner).handed},
	{"parked", "a server with many parked runs", (*runner).parked},
	{"fair", "a tenant's steps beside another one's backlog", (*runner).fair},
	{"triage", "whole runs with a model, an approval and a write", (*runner).triage},
	{"flat", "a filled store beside one with a tenth, on PostgreSQL", (*runner).flat},
}

// Names lists the figures, for help texts.
func Names() []string {
	names := make([]string, len(figures))
	for i, f := range figures {
		names[i] = f.name
	}
	return names
}

// Run measures. It removes what it stored, also when ctx ends.
func Run(ctx context.Context, o Options) (err error) {
	r := &runner{Options: o}
	if o.DatabaseURL != "" {
		r.base, err = openPG(ctx, o.DatabaseURL, o.Dir)
	} else {
		r.base, err = openLite(o.Dir)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.base.close()) }()
	r.About(r.base.about())
	for _, f := range figures {
		if len(o.Only) > 0 && !slices.Contains(o.Only, f.name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.run(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// slice is how long one side is measured in one round, of sides in all.
func (r *runner) slice(sides int) time.Duration {
	return r.Duration / time.Duration(sides*r.Rounds)
}

func (r *runner) say(format string, args ...any) { r.Progress(fmt.Sprintf(format, args...)) }

// report makes a line of values and hands it out.
func (r *runner) report(l Line, v values) {
	l.Ours, l.Bare, l.Ratio = spreadOf(v.ours), spreadOf(v.bare), spreadOf(ratios(v.ours, v.bare))
	l.Rounds = len(v.ours)
	r.Report(l)
}

// reportCPU reports CPU time, of server, client and background together. It
// says the same on a machine that is shared, where rates depend on the others.
func (r *runner) reportCPU(l Line, v values) {
	if slices.Max(v.ours) > 0 {
		l.Unit, l.Lower = "µs", true
		r.report(l, v)
	}
}

// profiled runs one side of one round, under the profiler where asked.
func (r *runner) profiled(name string, round int, fn func() (*outcome, error)) (*outcome, error) {
	runtime.GC()
	if r.Profiles == "" {
		return fn()
	}
	f, err := os.Create(filepath.Join(r.Profiles, fmt.Sprintf("%s.%d.pprof", name, round)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // a profile that is cut off says so
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	defer pprof.StopCPUProfile()
	return fn()
}

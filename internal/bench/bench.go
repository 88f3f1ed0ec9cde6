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
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Options say what to measure, and for how long.
type Options struct {
	// Scale is the number of actions for the figures on a filled store; 100,000 of them are
	// pending, or all if there are fewer.
	Scale int
	// Parked is the number of waiting runs for the figure parked; 0 for 20,000.
	Parked int
	// Duration is the time for each figure, for both sides and all rounds together. The figure decide
	// takes it for each number of clients, the figure cost for each comparison. The time to fill the
	// stores and the rest of child processes are not included.
	Duration time.Duration
	// Rounds is how often the sides alternate; use at least 5 for results.
	Rounds int
	// Clients are the numbers of concurrent clients that decide.
	Clients []int
	// Only names the figures to measure; empty for the figures that Table(false) lists.
	Only []string
	// Dir is the parent of a new folder for the stores, which is removed at the end; "" for the
	// system's temporary folder.
	Dir string
	// DatabaseURL selects PostgreSQL. The run creates its own databases on this server and drops
	// them; the database in the URL is only connected to. The role must have the right to create
	// databases.
	DatabaseURL string
	// Workers is the number of pushes carried out concurrently; 0 for 16.
	Workers int
	// Queue, when set, replaces the baseline of dispatch and of steps. Its Setup says where the gate's store is.
	Queue func(context.Context, Setup) (Queue, error)
	// Profiles, when set, is the folder for CPU profiles of the rounds of gates; bare sides are not
	// profiled.
	Profiles string
	// Executable and Name start the measured program as a child process.
	Executable, Name string
	// Start serves a gate in this process.
	Start func(context.Context, Setup) (*Gate, error)
	// About receives the description of the engine, Report each line as soon as it is measured,
	// Progress the present activity.
	About    func(string)
	Report   func(Line)
	Progress func(string)
}

// Setup configures a gate in this process.
type Setup struct {
	Dir string
	// DatabaseURL, when set, selects PostgreSQL instead of Dir.
	DatabaseURL string
	// Roles are the roles of the process; all when empty.
	Roles   []string
	Targets []dispatch.Target
	// Hold is how long an approved action waits before dispatch.
	Hold time.Duration
	// Hints, when set, wraps the hints of the use cases.
	Hints func(usecase.Hints) usecase.Hints
	// Models answers the model calls of steps; nil for none.
	Models runs.Models
	// Idle disables all background work.
	Idle bool
}

// Gate is a gate in this process.
type Gate struct {
	// Addr is host:port.
	Addr  string
	Store gatehouse.Store
	App   *gate.Gate
	// Runs and Log are used by the figures about runs.
	Runs  *runs.Runs
	Log   *slog.Logger
	Close func() error
}

// Line is a measured value and its baseline.
type Line struct {
	Figure string `json:"figure"`
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Ours   Spread `json:"ours"`
	Bare   Spread `json:"baseline"`
	Ratio  Spread `json:"ratio"`
	// Baseline describes the other side.
	Baseline string `json:"baseline_is"`
	// Target is the target for the ratio or, with Absolute, for the value itself: a minimum, or
	// with Lower a maximum. 0 for none.
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

// values are the values of a line's two sides, by round.
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
	// more says that the figure is measured only when it is named.
	more bool
}

// figures lists the figures in the order of measurement. If Options.Only is empty, the figures with more are left
// out.
var figures = []figure{
	{"propose", "proposals over HTTP", (*runner).propose, false},
	{"decide", "decisions over HTTP", (*runner).decide, false},
	{"cost", "decisions that read their target, under ceilings, of many tenants", (*runner).cost, false},
	{"called", "from the committed decision to the call at the target", (*runner).called, false},
	{"dispatch", "pushes from claim to settled", (*runner).dispatch, false},
	{"inbox", "the inbox page of a filled store", (*runner).inbox, false},
	{"process", "memory and start-up of the real process", (*runner).process, false},
	{"size", "what the store keeps of an applied action", (*runner).size, false},
	{"verify", "verification of audit entries", (*runner).verify, false},
	{"policy", "policy evaluations", (*runner).policy, false},
	{"steps", "steps of runs that do nothing", (*runner).steps, false},
	{"parked", "a server with many parked runs", (*runner).parked, true},
	{"triage", "whole runs with a model, an approval and a write", (*runner).triage, true},
	{"flat", "a filled store compared with one a tenth its size, on PostgreSQL", (*runner).flat, true},
}

// Names lists all figures.
func Names() []string {
	names := make([]string, len(figures))
	for i, f := range figures {
		names[i] = f.name
	}
	return names
}

// Table describes the figures, a line each; more selects those that are measured only when they are named.
func Table(more bool) string {
	var b strings.Builder
	for _, f := range figures {
		if f.more == more {
			fmt.Fprintf(&b, "  %-10s%s\n", f.name, f.about)
		}
	}
	return b.String()
}

// Run measures. It removes everything that it has stored, even if ctx ends.
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
		if len(o.Only) > 0 && !slices.Contains(o.Only, f.name) || len(o.Only) == 0 && f.more {
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

// slice is the time for one side in one round, with the given number of sides.
func (r *runner) slice(sides int) time.Duration {
	return r.Duration / time.Duration(sides*r.Rounds)
}

func (r *runner) say(format string, args ...any) { r.Progress(fmt.Sprintf(format, args...)) }

// report makes a line from values and reports it.
func (r *runner) report(l Line, v values) {
	l.Ours, l.Bare, l.Ratio = spreadOf(v.ours), spreadOf(v.bare), spreadOf(ratios(v.ours, v.bare))
	l.Rounds = len(v.ours)
	r.Report(l)
}

// reportCPU reports the CPU time of server, client and background together. On a shared machine, it
// is stable, while rates depend on other processes.
func (r *runner) reportCPU(l Line, v values) {
	if slices.Max(v.ours) > 0 {
		l.Unit, l.Lower = "µs", true
		r.report(l, v)
	}
}

// profiled runs one side of one round, with the profiler if requested.
func (r *runner) profiled(name string, round int, fn func() (*outcome, error)) (*outcome, error) {
	runtime.GC()
	if r.Profiles == "" {
		return fn()
	}
	f, err := os.Create(filepath.Join(r.Profiles, fmt.Sprintf("%s.%d.pprof", name, round)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // go tool pprof reports a truncated profile
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	defer pprof.StopCPUProfile()
	return fn()
}

package serve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/bench"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// BenchCommand compares a gate with bare baselines.
type BenchCommand struct {
	Scale    int           `help:"Actions in the filled store; at most 100,000 of them are pending." default:"100000" placeholder:"N"`
	Parked   int           `help:"Runs that wait in the figure parked." default:"20000" placeholder:"N"`
	Duration time.Duration `help:"How long each figure is measured, over all rounds." default:"20s" placeholder:"TIME"`
	Rounds   int           `help:"How often gate and baseline take turns." default:"5" placeholder:"N"`
	Clients  []int         `help:"Numbers of clients that decide." default:"1,64" placeholder:"N,…"`
	Only     []string      `help:"The figures to measure, of the lists below." placeholder:"NAME,…"`
	// Not from the environment, so that a bench never uses a database by accident.
	DatabaseURL DatabaseURL `help:"Measure on this PostgreSQL server, in databases of its own that are made and dropped." placeholder:"URL"`
	Data        string      `help:"Where to create the stores; the system's temporary folder by default." placeholder:"DIR"`
	// BareChild, BareListen and BareURL are for a child process of this program: the baseline of the
	// figure named process.
	BareChild  string `hidden:"" placeholder:"DIR"`
	BareListen string `hidden:"" placeholder:"HOST:PORT"`
	BareURL    string `hidden:"" env:"GATEHOUSE_BENCH_BARE_URL" placeholder:"URL"`
	Profiles   string `help:"Where to write CPU profiles of the rounds." placeholder:"DIR"`
}

// Help is shown by bench --help.
func (*BenchCommand) Help() string {
	return `Measures this machine with a gate and with a baseline of the same shape, in
turns, and prints both sides and their ratio: the median, and the least and the
greatest in brackets. Works in a folder of its own, which it removes; on PostgreSQL, in
databases of its own.

Figures:

` + bench.Table(false) + `
Only when named:

` + bench.Table(true) + `
Example: gatehouse bench --only decide --clients 64 --duration 30s`
}

// Run measures and prints.
func (c *BenchCommand) Run(g *term.IO) error {
	switch {
	case c.Scale < 1:
		return term.Usagef("--scale must be at least 1")
	case c.Parked < 1:
		return term.Usagef("--parked must be at least 1")
	case c.Rounds < 1 || c.Rounds > 1000:
		return term.Usagef("--rounds must be 1 to 1000")
	case c.Duration < time.Millisecond:
		return term.Usagef("--duration must be at least 1ms")
	case len(c.Clients) == 0:
		return term.Usagef("--clients must name a number")
	}
	for _, n := range c.Clients {
		if n < 1 || n > 4096 {
			return term.Usagef("--clients must be 1 to 4096 each")
		}
	}
	for _, name := range c.Only {
		if !slices.Contains(bench.Names(), name) {
			return term.Usagef("no figure is named %s; there are %s", gatehouse.Quote(name),
				strings.Join(bench.Names(), ", "))
		}
	}
	if slices.Contains(c.Only, "flat") && c.DatabaseURL == "" {
		return term.Usagef("the figure flat needs --database-url")
	}
	if c.BareChild != "" {
		return bench.ServeBareChild(g.Ctx, c.BareChild, c.BareURL, c.BareListen)
	}
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	adaptGarbage() // as a server does; the baseline benefits, too
	p := bench.NewPrinter(g.Stdout, g.Stderr, g.JSON, g.TTY)
	err = bench.Run(g.Ctx, bench.Options{
		Scale: c.Scale, Parked: c.Parked, Duration: c.Duration, Rounds: c.Rounds, Clients: c.Clients, Only: c.Only,
		Profiles: c.Profiles,
		Dir:      c.Data, DatabaseURL: string(c.DatabaseURL), Executable: executable, Name: os.Args[0],
		Start: startBench, About: p.About, Report: p.Line, Progress: p.Progress,
	})
	return errors.Join(err, p.Close())
}

// startBench serves a gate in this process, wired as serve wires it.
func startBench(ctx context.Context, s bench.Setup) (*bench.Gate, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	roles, err := parseRoles(s.Roles)
	if err != nil {
		return nil, err
	}
	n := &Node{config: &config.Config{}, Log: log}
	if n.Backplane, err = newBackplane(n.config, s.DatabaseURL, "", roles, log); err != nil {
		return nil, err
	}
	n.Hub = wake.Spread(&wake.Hub{}, n.carriers...)
	fail := func(err error) (*bench.Gate, error) { return nil, errors.Join(err, n.Close()) }
	if n.Registry, err = dispatch.NewRegistry(s.Targets...); err != nil {
		return fail(err)
	}
	if s.DatabaseURL != "" {
		n.Store, err = postgres.Open(ctx, postgres.Config{URL: s.DatabaseURL, Logger: log})
	} else {
		n.Store, err = sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(s.Dir, DatabaseFile), Logger: log})
	}
	if err != nil {
		return fail(err)
	}
	var hints usecase.Hints = n.Hub
	if s.Hints != nil {
		hints = s.Hints(hints)
	}
	n.Gate = gate.New(n.Store, n.Registry, hints, gate.Config{PolicySource: bench.Policy(), Hold: &s.Hold}, log)
	if n.Runs, err = newRuns(n.Gate, n.config); err != nil {
		return fail(err)
	}
	if s.Models != nil {
		n.Runs = runs.New(n.Gate, runs.Config{Models: s.Models})
	}
	if s.Idle {
		return &bench.Gate{Store: n.Store, App: n.Gate, Runs: n.Runs, Log: log, Close: n.Close}, nil
	}
	n.config.RateLimit = config.RateLimit{PerSecond: 1e6, Burst: 1e6} // measure the gate, not the limit
	n.secrets = newStoreSecrets(n.config, log)
	n.secrets.gate, n.secrets.registry, n.secrets.open = n.Gate, n.Registry, n.Gate.OpenSecrets
	n.stored = newStoreConnectors(n.config, n.secrets, log)
	n.stored.gate, n.stored.registry = n.Gate, n.Registry
	served, err := StartRoles(n, "127.0.0.1:0", roles)
	if err != nil {
		return nil, err
	}
	return &bench.Gate{
		Addr: strings.TrimPrefix(served.URL, "http://"), Store: n.Store, App: n.Gate, Runs: n.Runs, Log: log,
		Close: served.Close,
	}, nil
}

// Command river compares the gate with River, a job queue on PostgreSQL, on the same server. On one
// side, the gate claims, checks, sends and settles a push to a connector that does nothing, with receipt
// and audit log; on the other, River executes a job that does nothing. It also compares such jobs with
// workflow steps that do nothing. It is a separate module, so that the product does not depend on River.
//
//	go -C bench/river run . --database-url postgres://user@host/postgres
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/bench"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("river", flag.ContinueOnError)
	url := flags.String("database-url", "", "the server, as a URL; the benchmark creates databases on it and drops them")
	duration := flags.Duration("duration", 40*time.Second,
		"how long each figure is measured, over both sides and all rounds")
	rounds := flags.Int("rounds", 5, "how often each figure is measured, on both sides in turn")
	workers := flags.Int("workers", 16, "pushes that the gate carries out at a time")
	riverWorkers := flags.Int("river-workers", 200, "jobs that River executes at a time")
	only := flags.String("only", "dispatch,steps", "the figures to measure, separated by commas: dispatch, steps")
	asJSON := flags.Bool("json", false, "print one JSON document")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *url == "" {
		return errors.New("--database-url is missing")
	}
	p := bench.NewPrinter(out, os.Stderr, *asJSON, false)
	err := bench.Run(ctx, bench.Options{
		Only: strings.Split(*only, ","), Duration: *duration, Rounds: *rounds, Workers: *workers, DatabaseURL: *url,
		Start: start,
		Queue: func(ctx context.Context, s bench.Setup) (bench.Queue, error) {
			return openRiver(ctx, s.DatabaseURL, *riverWorkers)
		},
		About: p.About, Report: p.Line, Progress: p.Progress,
	})
	return errors.Join(err, p.Close())
}

// start makes a gate without a server: the benchmark runs the dispatcher, and for
// steps the runtime, itself.
func start(ctx context.Context, s bench.Setup) (*bench.Gate, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	targets, err := dispatch.NewRegistry(s.Targets...)
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, postgres.Config{URL: s.DatabaseURL, Logger: log})
	if err != nil {
		return nil, err
	}
	hub := &wake.Hub{}
	var hints usecase.Hints = hub
	if s.Hints != nil {
		hints = s.Hints(hints)
	}
	gt := gate.New(store, targets, hints, gate.Config{PolicySource: bench.Policy(), Hold: &s.Hold}, log)
	return &bench.Gate{Store: store, App: gt, Runs: runs.New(gt, runs.Config{}), Log: log, Close: store.Close}, nil
}

// Command report writes the report of the storms from their log.
//
//	report -log FILE -o docs/proof/storms.md
//	go test -json -run TestLinearizable ./internal/model | report -log FILE -linear
//
// The second form adds the histories of package model, which writes no log, to
// the log.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/proof/legs"
)

func main() {
	log := flag.String("log", "", "the log `file` of the storms")
	out := flag.String("o", "", "write the report to this `file`")
	linear := flag.Bool("linear", false, "read the output of go test -json for TestLinearizable from standard input, "+
		"and add its histories to the log")
	commit := flag.String("commit", "", "the commit of the tested build")
	flag.Parse()
	if err := run(*log, *out, *commit, *linear); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(log, out, commit string, linear bool) error {
	if linear {
		return histories(os.Stdin, log, commit)
	}
	all, err := legs.Read(log)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := legs.Markdown(&text, all, failpoint.Names()); err != nil {
		return err
	}
	return os.WriteFile(out, text.Bytes(), 0o644) //nolint:gosec // a page of the documentation
}

var told = regexp.MustCompile(`(\d+) histories of (\d+) calls from seed (\d+) on`)

// histories copies the tests' output and adds a leg for each engine.
func histories(in io.Reader, log, commit string) error {
	found := map[string]*legs.Leg{}
	broken := false
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Time                 time.Time
			Action, Test, Output string
			Elapsed              float64
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("this is not go test -json: %w", err)
		}
		fmt.Print(e.Output)
		_, engine, sub := strings.Cut(e.Test, "TestLinearizable/")
		if m := told.FindStringSubmatch(e.Output); m != nil && sub {
			n, _ := strconv.Atoi(m[1])
			calls, _ := strconv.Atoi(m[2])
			seed, _ := strconv.ParseUint(m[3], 10, 64)
			found[engine] = &legs.Leg{Storm: "linear", Engine: engine, Commit: commit, Seed: seed,
				Counts: map[string]int{"linearizability histories": n, "calls in histories": n * calls}}
		}
		broken = broken || e.Action == "fail"
		if l := found[engine]; l != nil && (e.Action == "pass" || e.Action == "fail") {
			l.Failed = e.Action == "fail"
			l.Seconds, l.Began = e.Elapsed, e.Time.Add(-time.Duration(e.Elapsed*float64(time.Second)))
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	for _, l := range found {
		if err := legs.Append(log, l); err != nil {
			return err
		}
	}
	if broken || len(found) == 0 {
		return fmt.Errorf("the histories failed, or there were none")
	}
	return nil
}

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/invariants"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// deep checks the store itself. It exits 1 if an invariant is violated.
func (c *doctorCmd) deep(g *globals) error {
	held, _, err := heldHeads(g, c.Held, nil)
	if err != nil {
		return err
	}
	report, err := c.checkStore(g, held)
	err = printOutcome(g, report, err, func() error { return c.printDeep(g, report) })
	if err == nil && !report.OK {
		err = term.Exit(term.ExitError)
	}
	return err
}

// checkStore checks the store: directly if the flags name the store, otherwise through the server.
func (c *doctorCmd) checkStore(g *globals, held []gatehouse.LogHead) (*gatehouse.StoreCheck, error) {
	if c.Data != "" || c.DatabaseURL != "" {
		log := slog.New(slog.NewTextHandler(g.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		beside := &serve.StoreChecker{Data: c.Data, DatabaseURL: string(c.DatabaseURL), Log: log}
		return beside.Check(g.Ctx, invariants.Options{
			KnownHeads: held, Progress: func(done, total int64) { g.Progress("check actions", done, total) },
		})
	}
	api, err := g.connect()
	if err != nil {
		return nil, err
	}
	return api.CheckStore(g.Ctx, held)
}

func (c *doctorCmd) printDeep(g *globals, report *gatehouse.StoreCheck) error {
	t := &term.Table{Header: []string{"NO", "INVARIANT", "RESULT", "EXAMINED", "VIOLATIONS"}, Wide: 1,
		Paint: func(_ int, cell string) string {
			return map[string]string{term.CheckOK: term.Green, term.CheckNote: term.Yellow, term.CheckFail: term.Red}[cell]
		}}
	for _, i := range report.Invariants {
		result := term.CheckOK
		switch {
		case i.Violations > 0:
			result = term.CheckFail
		case i.NotChecked != "":
			result = term.CheckNote
		}
		t.Add(strconv.Itoa(i.Number), i.Title, result, strconv.FormatInt(i.Examined, 10), strconv.Itoa(i.Violations))
	}
	if err := g.Print(t, ""); err != nil {
		return err
	}
	elsewhere := ""
	if c.Data == "" && c.DatabaseURL == "" {
		elsewhere = "; run the check with --data or --database-url to list them"
	}
	for _, i := range report.Invariants {
		for _, v := range i.Listed {
			g.Say("%d: %s %s: %s", i.Number, term.Safe(v.Tenant), term.Safe(v.ID), term.Safe(v.Detail))
		}
		if more := i.Violations - len(i.Listed); more > 0 {
			g.Say("%d: and %d more%s", i.Number, more, elsewhere)
		}
		if i.NotChecked != "" {
			g.Say("%d: not checked: %s", i.Number, i.NotChecked)
		}
	}
	if report.OK {
		g.Say("Nothing is violated.")
	}
	return nil
}

// heldHeads reads files with heads that were kept outside of the store. A file is the output of "audit head --json"
// with one head, of "backup --json" with several, or of "audit checkpoint" with one head that is signed by one of
// the keys. signed are the heads of checkpoints.
func heldHeads(g *globals, files, keys []string) (all, signed []gatehouse.LogHead, err error) {
	for _, name := range files {
		b, err := term.ReadInput(&g.IO, name)
		if err != nil {
			return nil, nil, err
		}
		if bytes.Contains(b, []byte("\n\n— ")) { // a signed note
			if len(keys) == 0 {
				return nil, nil, fmt.Errorf("%s is a checkpoint, and only `gatehouse audit verify --log-key` reads one",
					term.Safe(name))
			}
			h, err := audit.VerifyCheckpoint(b, keys...)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", term.Safe(name), err)
			}
			all, signed = append(all, h), append(signed, h)
			continue
		}
		var kept struct {
			gatehouse.LogHead
			Heads []gatehouse.LogHead `json:"heads"`
		}
		heads := func() []gatehouse.LogHead {
			if kept.Heads != nil {
				return kept.Heads
			}
			return []gatehouse.LogHead{kept.LogHead}
		}
		if err := json.Unmarshal(b, &kept); err != nil {
			return nil, nil, noHeads(name)
		}
		for _, h := range heads() {
			if h.Root == (gatehouse.Hash{}) {
				return nil, nil, noHeads(name)
			}
			all = append(all, h)
		}
	}
	return all, signed, nil
}

func noHeads(name string) error {
	return fmt.Errorf("%s holds no heads, as `gatehouse audit head --json` or `gatehouse backup --json` print them",
		term.Safe(name))
}

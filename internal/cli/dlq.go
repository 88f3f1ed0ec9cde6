package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// dlqCmd groups the commands about dead letters.
type dlqCmd struct {
	List    dlqListCmd    `cmd:"" help:"List the dead letters, with advice."`
	Replay  dlqReplayCmd  `cmd:"" help:"Put dead letters back into the queue."`
	Resolve dlqResolveCmd `cmd:"" help:"Settle unknown outcomes."`
	Discard dlqDiscardCmd `cmd:"" help:"Close failed dead letters permanently."`
}

// dlqFilter selects dead letters by common properties.
type dlqFilter struct {
	Connector string               `placeholder:"NAME" help:"Only those of this connector."`
	Code      string               `placeholder:"CODE" help:"Only those that ended with this code."`
	Status    gatehouse.PushStatus `enum:",failed,unknown" default:"" placeholder:"STATUS" help:"Only those with this status: failed or unknown."`
	Group     string               `placeholder:"KEY" help:"Only those of this group; see list --by error."`
	Since     string               `placeholder:"WHEN" help:"Only those that ended since then: a time such as 2026-01-02T15:04:05Z, or 2h for the last two hours."`
}

// none returns the text for an empty answer.
func (f *dlqFilter) none(g *globals, found int, err error) string {
	return g.none(found, err, "dead letters", filters("connector", f.Connector, "code", f.Code, "group", f.Group),
		filters("status", string(f.Status), "since", f.Since))
}

func (f *dlqFilter) read(now time.Time) (out gatehouse.DeadLetterFilter, err error) {
	out.Connector, out.Code, out.Status, out.Group = f.Connector, f.Code, f.Status, f.Group
	if f.Since == "" {
		return out, nil
	}
	at, err := parseSince(f.Since, now)
	if err != nil {
		return out, err
	}
	out.Since = &at
	return out, nil
}

// parseSince reads the value of --since or --all-since: a time in RFC 3339, or a duration before now.
func parseSince(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := gatehouse.ParseDuration(text)
	if err != nil || ago <= 0 {
		return time.Time{}, term.Usagef("--since must be a duration such as 2h, or a time such as 2026-01-02T15:04:05Z")
	}
	return now.Add(-ago.D()), nil
}

// dlqListCmd lists dead letters.
type dlqListCmd struct {
	dlqFilter `embed:""`
	By        string `enum:",error" default:"" placeholder:"error" help:"error: group them by connector, code and what the target said."`
	paging    `embed:""`
}

func (*dlqListCmd) Help() string {
	return `
A dead letter is a push that needs a person: it failed and nobody has discarded it,
or its outcome is unknown. Piped, the columns are: id, action, type, connector,
attempts, last attempt, code, error, advice, status, replay (safe or unsafe), why,
the target's answer.

With --by error, the columns are: group, connector, status, code, count, oldest,
newest, the target's last answer.

Examples:

    gatehouse dlq list
    gatehouse dlq list --by error
    gatehouse dlq list --connector shop --since 2h
    gatehouse dlq list --all | awk -F'\t' '$7 == "target_changed" {print $1}'
`
}

func (c *dlqListCmd) Run(g *globals, api service) error {
	filter, err := c.read(g.Now())
	if err != nil {
		return err
	}
	if c.By != "" {
		return c.groups(g, api, filter)
	}
	page, err := collect(g.Ctx, &c.paging,
		func(ctx context.Context, cursor string, limit int) (gatehouse.Page[*gatehouse.DeadLetter], error) {
			filter.Cursor, filter.Limit = cursor, limit
			return api.ListDeadLetters(ctx, filter)
		})
	return showPage(g, page, err, c.none(g, len(page.Items), err), func() *term.Table {
		t := &term.Table{
			Header: []string{"ID", "ACTION", "TYPE", "CONNECTOR", "ATTEMPTS", "LAST", "CODE", "ERROR", "ADVICE",
				"STATUS", "REPLAY", "WHY", "TARGET SAYS"},
			Wide: 8, Drop: []int{11, 12, 7, 5, 4, 3, 2, 9, 1},
		}
		for _, d := range page.Items {
			replay := "unsafe"
			if d.ReplaySafe {
				replay = "safe"
			}
			t.Add(d.ID, d.ActionID, d.ActionType, d.Connector, strconv.Itoa(d.Attempts), g.At(d.LastAt), d.ErrorCode,
				d.Error, d.Advice,
				string(d.Status), replay, d.ReplayReason, d.TargetSays)
		}
		return t
	})
}

// groups lists the groups of dead letters, the largest first.
func (c *dlqListCmd) groups(g *globals, api service, filter gatehouse.DeadLetterFilter) error {
	switch {
	case filter.Group != "":
		return term.Usagef("give --by or --group, not both")
	case c.All || c.Cursor != "" || c.Limit != pageSize:
		return term.Usagef("--by error lists all groups: leave out --all, --limit and --cursor")
	}
	x, err := api.GroupDeadLetters(g.Ctx, filter)
	if err != nil {
		return err
	}
	if x.Capped {
		g.Say("Only the newest %d dead letters are counted.", gatehouse.MaxGrouped)
	}
	return showList(g, x, nil, c.none(g, len(x.Items), nil), func() *term.Table {
		t := &term.Table{
			Header: []string{"GROUP", "CONNECTOR", "STATUS", "CODE", "COUNT", "OLDEST", "NEWEST", "TARGET SAYS"},
			Wide:   7, Drop: []int{6, 2},
		}
		for _, x := range x.Items {
			t.Add(x.Key, x.Connector, string(x.Status), x.ErrorCode, strconv.Itoa(x.Count), g.At(x.OldestAt), g.At(x.NewestAt),
				x.Words)
		}
		return t
	})
}

// dlqSelection names the dead letters that a command acts on.
type dlqSelection struct {
	IDs       []string `arg:"" optional:"" name:"id" help:"The dead letters (ids of pushes)."`
	dlqFilter `embed:""`
	Limit     int  `placeholder:"N" help:"Maximum of those that the filter selects; 1000 by default."`
	Yes       bool `aliases:"run" help:"Change what the filter selects; without it nothing changes."`
	DryRun    bool `help:"Only report what would happen, also with ids."`
}

// read returns the selection. A selection by filter or by --all changes nothing without --yes.
func (s *dlqSelection) read(now time.Time, all bool) (out gatehouse.DeadLetterSelection, err error) {
	filter, err := s.dlqFilter.read(now)
	if err != nil {
		return out, err
	}
	filter.Limit = s.Limit
	given := 0
	for _, one := range []bool{len(s.IDs) > 0, filter != gatehouse.DeadLetterFilter{}, all} {
		if one {
			given++
		}
	}
	switch {
	case given > 1:
		return out, term.Usagef("give only one of: ids, a filter, and --all")
	case given == 0:
		return out, term.Usagef(
			"name dead letters, or a filter (--connector, --code, --status, --group, --since, --limit), or " +
				"--all where there is one")
	case s.Yes && s.DryRun:
		return out, term.Usagef("give --yes or --dry-run, not both")
	case s.Limit < 0 || s.Limit > gatehouse.MaxDeadLetterBatch:
		return out, term.Usagef("--limit must be 1 to %d", gatehouse.MaxDeadLetterBatch)
	}
	out.IDs, out.DryRun = s.IDs, s.DryRun || len(s.IDs) == 0 && !s.Yes
	if len(s.IDs) == 0 && !all {
		out.Filter = &filter
	}
	return out, nil
}

// dlqReplayCmd replays dead letters.
type dlqReplayCmd struct {
	dlqSelection `embed:""`
	All          bool `help:"All of them."`
}

func (*dlqReplayCmd) Help() string {
	return `
Every check runs again, and the idempotency key stays the same: a change that was
already applied is skipped. A change that a second call could make twice is
skipped too (resolve_first): its outcome is unknown, and the target does not
detect repeated calls.

Dead letters that are named by their ids are replayed at once; with --all or a
filter, the command only shows what would happen unless --yes is given. Exits 1
when one was skipped, unless the change was already applied, or resolve_first is
the reason and the dead letter was not named.

Examples:

    gatehouse dlq replay psh_01993b7e
    gatehouse dlq replay --connector shop --code http_503 --since 2h
    gatehouse dlq replay --all --yes
`
}

func (c *dlqReplayCmd) Run(g *globals, api service) error {
	sel, err := c.read(g.Now(), c.All)
	if err != nil {
		return err
	}
	answer, err := api.ReplayDeadLetters(g.Ctx, gatehouse.ReplayRequest{IDs: sel.IDs, Filter: sel.Filter, All: c.All,
		DryRun: sel.DryRun})
	if err != nil {
		return err
	}
	return c.print(g, answer, answer.Results, sel)
}

// dlqDiscardCmd closes failed dead letters.
type dlqDiscardCmd struct {
	dlqSelection `embed:""`
	Reason       string `required:"" placeholder:"TEXT" help:"Why it will never be sent."`
}

func (*dlqDiscardCmd) Help() string {
	return `
A discarded dead letter stays failed, leaves the list, and can never be replayed.
One with an unknown outcome has to be resolved first. With a filter the command
only shows what would happen unless --yes is given.

Examples:

    gatehouse dlq discard psh_01993b7e --reason "the order was canceled by phone"
    gatehouse dlq discard --connector shop --code target_changed --reason "proposed again" --yes
`
}

func (c *dlqDiscardCmd) Run(g *globals, api service) error {
	sel, err := c.read(g.Now(), false)
	if err != nil {
		return err
	}
	answer, err := api.DiscardDeadLetters(g.Ctx, gatehouse.DiscardRequest{DeadLetterSelection: sel, Reason: c.Reason})
	if err != nil {
		return err
	}
	return c.print(g, answer, answer.Results, sel)
}

// dlqResolveCmd settles unknown outcomes.
type dlqResolveCmd struct {
	dlqSelection `embed:""`
	Outcome      string `required:"" enum:"applied,failed" placeholder:"OUTCOME" help:"What you found at the target: applied or failed."`
	Reason       string `required:"" placeholder:"TEXT" help:"How you know."`
}

func (*dlqResolveCmd) Help() string {
	return `
Only an unknown outcome can be resolved: look at the target first. Nothing is
sent. With a filter the command only shows what would happen unless --yes is
given.

Examples:

    gatehouse dlq resolve psh_01993b7e psh_01993b7f --outcome applied --reason "both orders show the refund"
`
}

func (c *dlqResolveCmd) Run(g *globals, api service) error {
	sel, err := c.read(g.Now(), false)
	if err != nil {
		return err
	}
	answer, err := api.ResolveDeadLetters(g.Ctx, gatehouse.ResolveRequest{
		DeadLetterSelection: sel, Resolution: gatehouse.Resolution{Outcome: c.Outcome, Reason: c.Reason},
	})
	if err != nil {
		return err
	}
	return c.print(g, answer, answer.Results, sel)
}

// print prints what happened, or would happen, to each dead letter. With --json, the
// answer is printed unchanged.
func (s *dlqSelection) print(
	g *globals, answer any, results []gatehouse.DeadLetterResult, sel gatehouse.DeadLetterSelection,
) error {
	err := showList(g, answer, nil, s.none(g, len(results), nil), func() *term.Table {
		t := &term.Table{Header: []string{"ID", "ACTION", "RESULT", "DETAIL"}, Wide: 3}
		for _, r := range results {
			result := r.Result
			if r.Skipped != "" {
				result = "skipped: " + r.Skipped
			}
			t.Add(r.ID, r.ActionID, result, r.Detail)
		}
		return t
	})
	if err != nil {
		return err
	}
	if sel.DryRun {
		if len(results) > 0 {
			how := "add --yes"
			switch {
			case len(s.IDs) > 0:
				how = "leave out --dry-run"
			case s.DryRun:
				how = "give --yes instead of --dry-run"
			}
			g.Say("Nothing was changed: this was a dry run. To do it, %s.", how)
		}
		return nil
	}
	for _, r := range results {
		// A filter may select dead letters that must be resolved first; that is not an error.
		expected := r.Skipped == "" || r.Skipped == gatehouse.SkippedApplied || len(sel.IDs) == 0 &&
			r.Skipped == gatehouse.SkippedResolveFirst
		if !expected {
			return term.Exit(term.ExitError)
		}
	}
	return nil
}

package cli

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// doctorCmd checks the server, the caller's credentials and the configuration, or with --deep the store.
type doctorCmd struct {
	Deep        bool              `help:"Check the store itself, row by row, against every invariant."`
	Data        string            `help:"The data folder whose configuration is checked; with --deep, whose store is checked, even while a server uses it." env:"GATEHOUSE_DATA" placeholder:"DIR"`
	DatabaseURL serve.DatabaseURL `help:"The PostgreSQL database that the configuration is for; with --deep, the one that is checked, even while servers use it." env:"GATEHOUSE_DATABASE_URL" placeholder:"URL"`
	Config      string            `help:"Check this configuration on this machine, as \"config check\" does." placeholder:"FILE"`
	Held        []string          `help:"With --deep: heads of audit logs that were kept elsewhere, as \"audit head --json\" or \"backup --json\" printed them. Repeatable." placeholder:"FILE"`
}

func (*doctorCmd) Help() string {
	return `
Checks that the server is reached and ready, that the key is valid and what it may
do, that the edit token is the person's own, how far the clocks differ, whether
enough people can answer each pending action (administrators), whether there are
dead letters or pushes with an unknown outcome, and whether work waits so long that
probably no server has the role for it, or no worker leases the steps of its tool or
the pushes of its connector; and that every target, secret, model and channel can be
used: operators see the server's findings about its own configuration. With
--config, or with --data for the gatehouse.yaml there, this machine makes these
checks, as "gatehouse config check" does, but not for the connectors and secrets in
the store. Changes nothing. Exits 1 when a check fails. Piped, the columns are:
check, result (ok, note or fail), detail.

With --deep it reads the store itself instead, beside the servers that use it,
and checks every action, with its approval, votes, push, receipts, claims and
audit entries, against the invariants of docs/proof/README.md. Nothing is
changed or locked. Each invariant is printed with the number of examined rows and of
violations; piped, the columns are: number, invariant, result, examined,
violations. The violations, with their ids, are on stderr and in --json.
Without --data and --database-url the server does it: for an administrator of
the default tenant, at most six times an hour, and only if it takes less than 90
seconds.

Examples:

    gatehouse doctor
    gatehouse doctor --data ./gatehouse-data
    gatehouse doctor --deep --url https://gate.example
    gatehouse doctor --deep --data ./gatehouse-data
    gatehouse doctor --deep --database-url postgres://gatehouse@db/gatehouse --held heads.json --json
`
}

// maxSkew is the largest clock difference without a note. This machine's clock determines how times
// are shown; the server's clock determines when an action expires.
const maxSkew = 5 * time.Second

func (c *doctorCmd) Run(g *globals) error {
	if c.Deep {
		return c.deep(g)
	}
	if len(c.Held) > 0 {
		return term.Usagef("--held needs --deep; a served log is compared by: gatehouse audit verify --held FILE")
	}
	var checks []term.Check
	add := func(name, result, format string, args ...any) {
		checks = append(checks, term.Check{Name: name, Result: result, Detail: fmt.Sprintf(format, args...)})
	}
	api, err := g.connect()
	if err != nil {
		return err
	}
	if c.server(g, add) {
		c.identity(g, api, add)
	}
	if c.Config != "" || c.Data != "" {
		l := &serve.ConfigChecker{}
		if cfg := l.File(&serve.DataFlags{Data: c.Data, Config: c.Config}, string(c.DatabaseURL)); cfg != nil {
			if c.Data != "" {
				l.OpenPolicies(g.Ctx, cfg, c.Data, string(c.DatabaseURL))
			}
			l.All(g.Ctx, cfg)
		}
		checks = append(checks, l.Checks...)
	}
	return g.PrintChecks(checks)
}

type adder func(name, result, format string, args ...any)

// server runs the checks that need no key, and reports whether the server answers.
func (c *doctorCmd) server(g *globals, add adder) bool {
	ask := &http.Client{Timeout: 10 * time.Second}
	req, err := http.NewRequestWithContext(g.Ctx, http.MethodGet, strings.TrimSuffix(g.URL, "/")+"/readyz", nil)
	if err != nil {
		add("server", term.CheckFail, "%s", term.ErrorText(err))
		return false
	}
	before := time.Now()
	resp, err := ask.Do(req)
	if err != nil {
		add("server", term.CheckFail, "%s", term.ErrorText(err))
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	took := time.Since(before)
	add("server", term.CheckOK, "%s answers in %s", g.URL, took.Round(time.Millisecond))
	if resp.StatusCode == http.StatusOK {
		add("ready", term.CheckOK, "")
	} else {
		add("ready", term.CheckFail, "/readyz answers %s", resp.Status)
	}
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		add("clock", term.CheckNote, "the server does not report its time")
		return true
	}
	// The header has whole seconds: half a second is added, and the difference rounded.
	skew := date.Add(500 * time.Millisecond).Sub(before.Add(took / 2)).Round(time.Second)
	result := term.CheckOK
	if skew.Abs() > maxSkew {
		result = term.CheckNote
	}
	add("clock", result, "the server's clock differs from this machine's by %s", skew)
	return true
}

// identity checks the key, and runs the checks that its principal's roles permit.
func (c *doctorCmd) identity(g *globals, api service, add adder) {
	if g.Key == "" {
		add("key", term.CheckFail, "GATEHOUSE_KEY is not set")
		return
	}
	me, err := api.WhoAmI(g.Ctx)
	if err != nil {
		add("key", term.CheckFail, "%v", err)
		return
	}
	add("key", term.CheckOK, "%s, %s in tenant %s with %s", me.Name, me.Kind, me.Tenant, rolesText(me.Roles))
	if me.Has(gatehouse.RoleApprover) {
		c.editToken(g, api, add)
	}
	if me.Has(gatehouse.RoleAdmin) {
		c.answerable(g, api, add)
	}
	if !me.Has(gatehouse.RoleOperator) {
		add("dispatch", term.CheckNote, "not checked: only the role operator sees pushes")
		return
	}
	c.breakers(g, api, add)
	c.deadLetters(g, api, add)
	c.roles(g, api, add)
	if c.Config == "" && c.Data == "" {
		c.configuration(g, api, add)
	}
}

// answerable looks for pending actions that too few people can still answer, because people have left, lost
// the role, or left the group. Such actions wait until they expire.
func (*doctorCmd) answerable(g *globals, api service, add adder) {
	const most = 1000
	var people []*gatehouse.Principal
	for cursor := ""; ; {
		page, err := api.ListPrincipals(g.Ctx, cursor, gatehouse.MaxLimit)
		if err != nil {
			add("answerable", term.CheckNote, "could not be read: %v", err)
			return
		}
		people = append(people, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if n := (&gatehouse.Approval{}).CountAnswerers(people); n < 2 {
		add("approvers", term.CheckNote, "only %d of the tenant's people may decide: actions of L5, and what they or their "+
			"agents propose, are denied; "+
			"`gatehouse principal create --kind person --role approver` makes another", n)
	}
	stuck, seen, more := []string{}, 0, true
	for cursor := ""; more && seen < most; {
		page, err := api.ListActions(g.Ctx, gatehouse.ActionFilter{Status: gatehouse.StatusPending,
			Limit: gatehouse.MaxLimit, Cursor: cursor})
		if err != nil {
			add("answerable", term.CheckNote, "could not be read: %v", err)
			return
		}
		for _, a := range page.Items {
			seen++
			if p := a.Approval; p != nil && p.CountAnswerers(people) < p.Required {
				stuck = append(stuck, a.ID)
			}
		}
		cursor = page.NextCursor
		more = cursor != ""
	}
	if len(stuck) > 0 {
		add("answerable", term.CheckFail, "too few people are left who can answer %s; cancel or revise: %s",
			term.Count(len(stuck), "pending action"),
			strings.Join(stuck[:min(len(stuck), 5)], ", "))
	}
	switch {
	case more:
		add("answerable", term.CheckNote, "only the newest %s were examined", term.Count(seen, "pending action"))
	case len(stuck) == 0:
		add("answerable", term.CheckOK, "")
	}
}

// roles reports work that waits for a process with a certain role, or for an outside worker. The roles of the
// processes are not known, so the check is ok only if no work waits.
func (*doctorCmd) roles(g *globals, api service, add adder) {
	found, err := api.CheckRoles(g.Ctx)
	if err != nil {
		add("roles", term.CheckNote, "could not be read: %v", err)
		return
	}
	if len(found.Late) == 0 {
		add("roles", term.CheckOK, "nothing waits for a sequencer, dispatcher, sweeper, runner or outside worker")
	}
	for _, l := range found.Late {
		waits := fmt.Sprintf("%s for %s", l.What, l.Waited)
		switch {
		case l.Tool != "" && l.Busy:
			add("roles", term.CheckNote, "%s, behind others that are leased: are its workers too few, or is a "+
				"bound reached?", waits)
		case l.Tool != "":
			add("roles", term.CheckFail, "%s, and nobody leases any: does a worker ask for %s, with a key of "+
				"this tenant, the role %s and, if runs.tools names workers, one of those names? If so, its log says why",
				waits, l.Tool, gatehouse.RoleWorker)
		case l.Connector != "" && l.Busy:
			add("roles", term.CheckNote, "%s, behind others that are leased: are its workers too few, or do they "+
				"ask only for other operations or proposers?", waits)
		case strings.HasPrefix(l.Connector, "mcp:"):
			add("roles", term.CheckNote, "%s: does the proxy of its agent run, and may it lease? A hook carries a call "+
				"out when the agent repeats it", waits)
		case l.Connector != "":
			add("roles", term.CheckFail, "%s, and nobody leases any: does a worker ask for %s and all its operations, "+
				"with a key of this tenant, the role %s and, if the connector has workers, one of their names? If so, its "+
				"log says why. If the connector was removed, configure it again",
				waits, l.Connector, gatehouse.RoleWorker)
		case l.Busy:
			add("roles", term.CheckNote, "%s, behind others that are under way: are all workers of the role %s "+
				"taken, or a bound reached?", waits, l.Role)
		default:
			add("roles", term.CheckFail, "%s: does a process have the role %s? If so, it is behind, or its log "+
				"says why", waits, l.Role)
		}
	}
}

// editToken sends a bulk decision without items, which has no effect: the server checks the token
// first, then refuses the empty list.
func (*doctorCmd) editToken(g *globals, api service, add adder) {
	if g.EditToken == "" {
		add("edit token", term.CheckNote, "GATEHOUSE_EDIT_TOKEN is not set: you cannot decide")
		return
	}
	_, err := api.BulkDecide(g.Ctx, gatehouse.BulkDecision{Decision: gatehouse.Reject, Items: []gatehouse.BulkItem{}})
	switch gatehouse.CodeOf(err) {
	case gatehouse.CodeInvalid:
		add("edit token", term.CheckOK, "you can decide")
	case gatehouse.CodeEditTokenRequired:
		add("edit token", term.CheckFail, "it is not this person's, or was rotated")
	default:
		add("edit token", term.CheckNote, "could not be checked: %v", err)
	}
}

// breakers reports connectors whose calls are stopped.
func (*doctorCmd) breakers(g *globals, api service, add adder) {
	const name = "breakers"
	states, err := api.ListBreakers(g.Ctx)
	if err != nil {
		add(name, term.CheckNote, "could not be read: %v", err)
		return
	}
	open := 0
	for _, b := range states {
		if b.State != gatehouse.BreakerClosed {
			open++
			add(name, term.CheckNote, "%s", serve.BreakerSentence(b))
		}
	}
	if open == 0 {
		add(name, term.CheckOK, "none is open")
	}
}

// deadLetters counts the dead letters, and those with an unknown outcome.
func (*doctorCmd) deadLetters(g *globals, api service, add adder) {
	const name = "dead letters"
	page, err := api.ListDeadLetters(g.Ctx, gatehouse.DeadLetterFilter{Limit: gatehouse.MaxLimit})
	if err != nil {
		add(name, term.CheckNote, "could not be read: %v", err)
		return
	}
	if len(page.Items) == 0 {
		add(name, term.CheckOK, "none")
		return
	}
	n, unknown, least := strconv.Itoa(len(page.Items)), 0, ""
	if page.NextCursor != "" {
		n, least = "more than "+n, "at least "
	}
	for _, d := range page.Items {
		if d.Status == gatehouse.PushUnknown {
			unknown++
		}
	}
	add(name, term.CheckNote, "%s, %s%d of them with an unknown outcome; see: gatehouse dlq list", n, least, unknown)
}

// configuration asks the server to check what its own configuration names.
func (*doctorCmd) configuration(g *globals, api service, add adder) {
	found, err := api.CheckConfiguration(g.Ctx)
	if err != nil {
		add("configuration", term.CheckNote, "could not be checked: %v", err)
		return
	}
	for _, one := range found.Checks {
		add(one.Name, one.Result, "%s", one.Detail)
	}
}

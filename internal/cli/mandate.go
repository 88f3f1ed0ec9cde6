package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/form"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// mandateCmd groups the commands about mandates.
type mandateCmd struct {
	Propose mandateProposeCmd `cmd:"" help:"Propose a plan, as an agent."`
	List    mandateListCmd    `cmd:"" help:"List mandates."`
	Show    mandateShowCmd    `cmd:"" help:"Show a mandate, with what is left of it."`
	Narrow  mandateNarrowCmd  `cmd:"" help:"Lower the limits of a mandate at once."`
	Pause   mandatePauseCmd   `cmd:"" help:"Stop a mandate until it is resumed."`
	Resume  mandateResumeCmd  `cmd:"" help:"End a pause."`
	Revoke  mandateRevokeCmd  `cmd:"" help:"End a mandate at once."`
}

// mandateProposeCmd proposes a plan.
type mandateProposeCmd struct {
	File string `short:"f" required:"" placeholder:"FILE" help:"The plan, YAML or JSON, - for stdin."`
}

func (*mandateProposeCmd) Help() string {
	return `
The active policy has to allow mandates (mandates: {up_to: 1..4}). The plan becomes an
action of L4. When people have approved it, actions of the same agent within the plan
are approved at once; the policy still judges each action. The goal only explains the
plan: what is approved in advance is what the steps say.

    goal: Pay back the customers of the recalled lamp
    steps:
      - action_type: refund
        connector: shop
        operation: update
        entity_type: refund
        when: change.amount <= 50
        count: 40
        amounts: [{amount: 2000, currency: EUR}]
    per_day: {count: 10}
    for: 72h

Examples:

    gatehouse mandate propose -f plan.yaml
`
}

func (c *mandateProposeCmd) Run(g *globals, api service) error {
	source, err := term.ReadInput(&g.IO, c.File)
	if err != nil {
		return err
	}
	plan, err := readPlan(source)
	if err != nil {
		return err
	}
	a, err := api.ProposeMandate(g.Ctx, *plan)
	if err != nil {
		return err
	}
	g.Say("%s.", term.Safe(a.Title))
	return g.printProposed(a)
}

// readPlan reads YAML, which includes JSON. Unknown keys are errors.
func readPlan(source []byte) (*gatehouse.Plan, error) {
	r := form.Reader{What: "plan", MaxBytes: 1 << 20, MaxLines: 20_000}
	var text gatehouse.JSON
	if doc := r.Load(source); doc != nil {
		text = r.JSON(doc)
	}
	if len(r.Problems) > 0 {
		p := form.Sort(r.Problems)[0]
		return nil, gatehouse.E(gatehouse.CodeMalformed, "line %d, column %d: %s", p.Line, p.Column, p.Detail)
	}
	var plan gatehouse.Plan
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&plan); err != nil {
		if form, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, gatehouse.E(gatehouse.CodeMalformed, "%s cannot be of the kind %s",
				cmp.Or(form.Field, "the plan"), form.Value)
		}
		return nil, gatehouse.E(gatehouse.CodeMalformed, "the plan cannot be read: %s",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return &plan, nil
}

// mandateListCmd lists mandates.
type mandateListCmd struct{}

func (*mandateListCmd) Help() string {
	return `
Lists the tenant's 500 newest mandates, in that order; an agent gets its own.
Piped output has these columns: id, agent, used, amounts, until, by, state.

Examples:

    gatehouse mandate list
`
}

func (*mandateListCmd) Run(g *globals, api service) error {
	list, err := api.ListMandates(g.Ctx)
	return showPage(g, pageOf(list), err, "No mandates.", func() *term.Table { return mandateTable(g, list...) })
}

// mandateShowCmd shows one mandate.
type mandateShowCmd struct {
	ID string `arg:"" help:"The mandate, such as mnd_01993b7e."`
}

func (*mandateShowCmd) Help() string {
	return `
Prints the columns of mandate list, then the goal, each step, the daily limit and the
worst case.

Examples:

    gatehouse mandate show mnd_01993b7e
`
}

func (c *mandateShowCmd) Run(g *globals, api service) error {
	m, err := api.FindMandate(g.Ctx, c.ID)
	if err := g.printMandate(m, err); err != nil || g.JSON {
		return err
	}
	g.Say("Goal: %s", term.Safe(m.Goal))
	for i, s := range m.Steps {
		on := s.EntityType
		if len(s.Keys) > 0 {
			on += " " + strings.Join(s.Keys, ", ")
		}
		g.Say("Step %d: %s, %s of %s on %s, when %s; used %s", i+1, term.Safe(s.ActionType), term.Safe(s.Operation),
			term.Safe(s.Connector), term.Safe(on), term.Safe(s.When), budgetText(&s.Budget))
	}
	if m.PerDay != nil {
		last := "not used yet"
		if m.Day != "" {
			last = "last on " + m.Day
		}
		g.Say("Each day: used %s, %s", budgetText(m.PerDay), last)
	}
	if m.PausedAction != "" {
		g.Say("Paused: %s failed, or its outcome is unknown", term.Safe(m.PausedAction))
	} else if m.PausedAt != nil {
		g.Say("Paused by %s", term.Safe(m.PausedBy))
	}
	g.Say("Worst case: %s.", term.Safe(m.Worst))
	return nil
}

// mandateNarrowCmd lowers limits.
type mandateNarrowCmd struct {
	ID        string   `arg:"" help:"The mandate, such as mnd_01993b7e."`
	Count     *int     `placeholder:"N" help:"How many actions in all."`
	Amount    []string `placeholder:"CURRENCY=AMOUNT" help:"How much money in all, such as EUR=500."`
	DayCount  *int     `placeholder:"N" help:"How many actions each day."`
	DayAmount []string `placeholder:"CURRENCY=AMOUNT" help:"How much money each day."`
	Step      []string `placeholder:"STEP=N" help:"How many actions of a step; 0 closes it. Repeatable."`
	Until     string   `placeholder:"TIME" help:"The new end, such as 2026-12-01T18:00:00Z."`
}

func (*mandateNarrowCmd) Help() string {
	return `
Any approver can lower the limits. Other limits do not change. Wider limits need a new
plan. The command needs your edit token (GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse mandate narrow mnd_01993b7e --count 20 --amount EUR=500
    gatehouse mandate narrow mnd_01993b7e --step 2=0 --until 2026-12-01T18:00:00Z
`
}

func (c *mandateNarrowCmd) Run(g *globals, api service) error {
	n, err := c.narrowing()
	if err != nil {
		return err
	}
	return g.printMandate(api.NarrowMandate(g.Ctx, c.ID, n))
}

func (c *mandateNarrowCmd) narrowing() (n gatehouse.Narrowing, err error) {
	if n.InAll, err = lowerLimit(c.Count, c.Amount, "--amount"); err != nil {
		return n, err
	}
	if n.PerDay, err = lowerLimit(c.DayCount, c.DayAmount, "--day-amount"); err != nil {
		return n, err
	}
	for _, text := range c.Step {
		step, count, _ := strings.Cut(text, "=")
		i, err := strconv.Atoi(step)
		k, bad := strconv.Atoi(count)
		if err != nil || bad != nil {
			return n, term.Usagef("--step must be the number of a step and a count, such as 2=0")
		}
		n.Steps = append(n.Steps, gatehouse.StepNarrowing{Step: i, LowerLimit: gatehouse.LowerLimit{Count: &k}})
	}
	if c.Until != "" {
		until, err := time.Parse(time.RFC3339, c.Until)
		if err != nil {
			return n, term.Usagef("--until must be a time such as 2026-12-01T18:00:00Z")
		}
		n.Until = &until
	}
	return n, nil
}

func lowerLimit(count *int, amounts []string, flag string) (*gatehouse.LowerLimit, error) {
	if count == nil && len(amounts) == 0 {
		return nil, nil
	}
	list, err := amountFlags(amounts, flag)
	return &gatehouse.LowerLimit{Count: count, Amounts: list}, err
}

// mandatePauseCmd pauses a mandate.
type mandatePauseCmd struct {
	ID string `arg:"" help:"The mandate, such as mnd_01993b7e."`
}

func (*mandatePauseCmd) Help() string {
	return `
Any approver can pause a mandate. Approved actions stay approved. The command needs
your edit token (GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse mandate pause mnd_01993b7e
`
}

func (c *mandatePauseCmd) Run(g *globals, api service) error {
	return g.printMandate(api.PauseMandate(g.Ctx, c.ID))
}

// mandateResumeCmd resumes a mandate.
type mandateResumeCmd struct {
	ID string `arg:"" help:"The mandate, such as mnd_01993b7e."`
}

func (*mandateResumeCmd) Help() string {
	return `
Only an approver who may decide the agent's actions can resume a mandate. After a
failure, look at the action first. The command needs your edit token
(GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse mandate resume mnd_01993b7e
`
}

func (c *mandateResumeCmd) Run(g *globals, api service) error {
	return g.printMandate(api.ResumeMandate(g.Ctx, c.ID))
}

// mandateRevokeCmd ends a mandate.
type mandateRevokeCmd struct {
	ID string `arg:"" help:"The mandate, such as mnd_01993b7e."`
}

func (*mandateRevokeCmd) Help() string {
	return `
Any approver can end a mandate. Actions that it approved stay approved; cancel them
during their hold. The command needs your edit token (GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse mandate revoke mnd_01993b7e
`
}

func (c *mandateRevokeCmd) Run(g *globals, api service) error {
	return g.printMandate(api.RevokeMandate(g.Ctx, c.ID))
}

func (g *globals) printMandate(m *gatehouse.Mandate, err error) error {
	return show(g, m, err, func() *term.Table { return mandateTable(g, m) })
}

func mandateTable(g *globals, list ...*gatehouse.Mandate) *term.Table {
	t := &term.Table{
		Header: []string{"ID", "AGENT", "USED", "AMOUNTS", "UNTIL", "BY", "STATE"},
		Drop:   []int{3, 5},
	}
	for _, m := range list {
		voters := make([]string, len(m.Voters))
		for i, v := range m.Voters {
			voters[i] = v.Name
		}
		t.Add(m.ID, m.AgentName, fmt.Sprintf("%d of %d", m.InAll.Used, m.InAll.Count), amountsText(&m.InAll),
			g.At(m.ExpiresAt), strings.Join(voters, ", "), m.State(g.Now()))
	}
	return t
}

// budgetText says what has been used of a budget: "2 of 3, 80 of 100 EUR".
func budgetText(b *gatehouse.Budget) string {
	text := fmt.Sprintf("%d of %d", b.Used, b.Count)
	if money := amountsText(b); money != "" {
		text += ", " + money
	}
	return text
}

func amountsText(b *gatehouse.Budget) string {
	amounts := make([]string, len(b.Amounts))
	for i, m := range b.Amounts {
		amounts[i] = fmt.Sprintf("%s of %s %s", b.UsedIn(m.Currency), m.Amount, m.Currency)
	}
	return strings.Join(amounts, ", ")
}

package cli

import (
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// proposalFlags give a proposal, as a file or flag by flag.
type proposalFlags struct {
	File           string            `short:"f" placeholder:"FILE" help:"Read the proposal's JSON from a file, - for stdin."`
	Type           string            `placeholder:"TYPE" help:"The action type, such as price_change."`
	Connector      string            `placeholder:"NAME" help:"A connector of the server's configuration."`
	Operation      string            `placeholder:"OP" help:"An operation of the connector, such as update."`
	Target         string            `placeholder:"TYPE/REF" help:"The target of the change, such as item/SKU-1042."`
	TargetVersion  string            `placeholder:"VERSION" help:"The version of the target that you saw."`
	Was            []string          `sep:"none" placeholder:"FIELD=TEXT" help:"A field's value as you saw it; FIELD:=JSON if it is not text. Repeatable."`
	Set            []string          `sep:"none" placeholder:"FIELD=TEXT" help:"A field's new value; FIELD:=JSON if it is not text. Repeatable."`
	Rationale      string            `placeholder:"TEXT" help:"Why."`
	Risk           int               `enum:"0,1,2,3,4,5" default:"0" placeholder:"1..5" help:"Claim a risk level; it counts if it is higher than the server's."`
	Amount         gatehouse.Decimal `placeholder:"DECIMAL" help:"The size of the change, such as 2.50."`
	Currency       string            `placeholder:"CODE" help:"The currency of --amount, such as EUR."`
	OnBehalfOf     string            `placeholder:"NAME" help:"The person you propose for, who cannot decide the action."`
	ExpiresIn      gatehouse.Span    `placeholder:"DURATION" help:"Expire sooner than the policy says, such as 4h."`
	IdempotencyKey string            `placeholder:"KEY" help:"Identifies the effect: the same key with the same content returns the same action."`
}

// proposal reads the file, or builds the proposal from the flags.
func (f *proposalFlags) proposal(g *globals) (*gatehouse.Proposal, error) {
	rest := *f
	rest.File = ""
	flags := !rest.empty()
	switch {
	case f.File != "" && flags:
		return nil, term.Usagef("--file cannot be combined with other flags: everything is in the file")
	case f.File == "" && !flags:
		return nil, term.Usagef("give --file, or at least --type, --connector, --operation and --target")
	case f.File != "":
		b, err := term.ReadInput(&g.IO, f.File)
		if err != nil {
			return nil, err
		}
		return term.DecodeProposal(b)
	}
	return f.gather()
}

func (f *proposalFlags) empty() bool {
	return f.Type == "" && f.Connector == "" && f.Operation == "" && f.Target == "" && f.TargetVersion == "" &&
		len(f.Was) == 0 && len(f.Set) == 0 && f.Rationale == "" && f.Risk == 0 && f.Amount == "" && f.Currency == "" &&
		f.OnBehalfOf == "" && f.ExpiresIn == 0 && f.IdempotencyKey == ""
}

func (f *proposalFlags) gather() (*gatehouse.Proposal, error) {
	for _, need := range []struct{ flag, value string }{
		{"--type", f.Type}, {"--connector", f.Connector}, {"--operation", f.Operation}, {"--target", f.Target},
	} {
		if need.value == "" {
			return nil, term.Usagef("%s is missing", need.flag)
		}
	}
	entity, ref, ok := strings.Cut(f.Target, "/")
	if !ok || entity == "" || ref == "" {
		return nil, term.Usagef("--target must be TYPE/REF, such as item/SKU-1042")
	}
	if f.Currency != "" && f.Amount == "" {
		return nil, term.Usagef("--currency needs --amount")
	}
	p := &gatehouse.Proposal{
		ActionType: f.Type, Connector: f.Connector, Operation: f.Operation,
		Target:    gatehouse.Target{EntityType: entity, EntityRef: ref, Version: f.TargetVersion},
		Rationale: f.Rationale, RiskLevel: gatehouse.RiskLevel(f.Risk), OnBehalfOf: f.OnBehalfOf,
		ExpiresIn: f.ExpiresIn, IdempotencyKey: f.IdempotencyKey,
	}
	if f.Amount != "" {
		p.Magnitude = &gatehouse.Magnitude{Amount: f.Amount, Currency: f.Currency}
	}
	var err error
	if p.ProposedChange, err = fields("--set", f.Set); err != nil {
		return nil, err
	}
	if len(f.Was) > 0 {
		if p.CurrentState, err = fields("--was", f.Was); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// fields makes a JSON object from FIELD=TEXT and FIELD:=JSON.
func fields(flag string, pairs []string) (gatehouse.JSON, error) {
	members := make([]gatehouse.Member, 0, len(pairs))
	seen := make(map[string]bool, len(pairs))
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSuffix(name, ":") == "" {
			return "", term.Usagef("%s must be FIELD=TEXT or FIELD:=JSON", flag)
		}
		value := gatehouse.StringJSON(text)
		if short, raw := strings.CutSuffix(name, ":"); raw {
			var err error
			if value, err = gatehouse.Canonicalize([]byte(text)); err != nil {
				return "", term.Usagef("%s %s: the value is not JSON: %v", flag, term.Safe(short), err)
			}
			name = short
		}
		if seen[name] {
			return "", term.Usagef("%s: field %s appears twice", flag, term.Safe(name))
		}
		seen[name] = true
		members = append(members, gatehouse.Member{Name: name, Value: value})
	}
	return gatehouse.ObjectJSON(members...), nil
}

// proposeCmd proposes an action.
type proposeCmd struct {
	proposalFlags `embed:""`
	Wait          bool               `help:"Wait, and exit by the action's status."`
	Until         gatehouse.Until    `enum:"decided,finished" default:"finished" help:"What to wait for: decided or finished."`
	Timeout       gatehouse.Duration `default:"10m" help:"Maximum time to wait."`
}

func (*proposeCmd) Help() string {
	return `
The answer of the policy may be final at once: a denied action exits 10, also
without --wait.

Examples:

    gatehouse propose -f change.json
    gatehouse propose --type price_change --connector shop --operation update \
        --target item/SKU-1042 --target-version 7 --was price=10.00 --set price=12.50 \
        --rationale "supplier raised cost"
    gatehouse propose -f change.json --wait --timeout 1h
`
}

// Run proposes the action, and with --wait waits for it.
func (c *proposeCmd) Run(g *globals, api service) error {
	p, err := c.proposal(g)
	if err != nil {
		return err
	}
	a, replayed, err := api.Propose(g.Ctx, p)
	if err != nil {
		return err
	}
	if replayed {
		g.Say("An action with this key exists already; this is that action.")
	}
	if c.Wait {
		g.Say("Proposed %s; waiting until it is %s.", a.ID, c.Until)
		return g.wait(api, a.ID, waiting{until: c.Until, timeout: c.Timeout.D()})
	}
	return g.printProposed(a)
}

// printNext says on stderr what a pending action waits for, or who decided an action at once: the
// policy, or people in advance.
func (g *globals) printNext(a *gatehouse.Action) {
	switch a.Status {
	case gatehouse.StatusPending:
		if a.Approval != nil {
			g.Say("Waiting for people: %s, until %s.", term.Safe(sheet.VotesText(a.Approval)),
				a.Approval.ExpiresAt.UTC().Format(time.RFC3339))
		}
	case gatehouse.StatusDenied:
		g.Say("Denied by the policy: %s", term.Safe(strings.Join(a.Policy.Reasons, "; ")))
	case gatehouse.StatusApproved:
		next := "it is being sent"
		if a.HoldFor > 0 {
			next = "it is held for " + a.HoldFor.String() + " before it is sent"
		}
		switch a.DecidedVia {
		case gatehouse.ViaPolicy:
			g.Say("Allowed by the policy; %s.", next)
		case gatehouse.ViaGrant, gatehouse.ViaMandate:
			g.Say("Approved in advance by %s; %s.", term.Safe(a.DecidedBy), next)
		}
	}
}

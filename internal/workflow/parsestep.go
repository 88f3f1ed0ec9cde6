package workflow

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// steps reads all steps. It reads ids and needs first, so that the compiler
// knows what each expression may read.
func (p *parser) steps(n *yaml.Node) {
	items := p.List(n, "steps")
	switch {
	case n != nil && n.Kind == yaml.SequenceNode && len(items) == 0:
		p.Fail(n, "a workflow needs a step")
	case len(items) > MaxSteps:
		p.Fail(n, "there are more than %d steps", MaxSteps)
		return
	}
	read := make([]form.Fields, len(items))
	for i, item := range items {
		read[i] = p.mappingOf(item, "a step")
		p.identify(read[i])
	}
	steps := p.def.Steps
	p.graph(read)
	p.repeats(read)
	p.def.Steps = nil
	for i, s := range steps {
		if read[i].Node == nil {
			continue
		}
		p.step(s, read[i])
		p.def.Steps = append(p.def.Steps, s)
	}
}

// identify reads the id of a step.
func (p *parser) identify(f form.Fields) {
	s := &Step{Index: len(p.def.Steps)}
	p.def.Steps = append(p.def.Steps, s)
	if f.Node == nil {
		return
	}
	s.Line, s.column = f.Node.Line, f.Node.Column
	p.need(f, "a step", "id", "uses")
	s.ID = p.Text(f.Values["id"], "id")
	switch {
	case s.ID == "":
		return
	case !idForm.MatchString(s.ID):
		p.Fail(f.Values["id"], "id must be lower-case letters, digits, - and _, at most 63")
	case p.known[s.ID]:
		p.Fail(f.Values["id"], "another step is named %s", gatehouse.Quote(s.ID))
		return
	}
	p.known[s.ID] = true
	p.def.byID[s.ID] = s
}

// graph reads the needs of each step; the default is the step before.
func (p *parser) graph(read []form.Fields) {
	needs := make(map[string][]string)
	var ids []string
	for i, f := range read {
		s := p.def.Steps[i]
		if f.Node == nil || s.ID == "" || p.def.byID[s.ID] != s {
			continue
		}
		ids = append(ids, s.ID)
		if v := f.Values["needs"]; v != nil {
			s.Needs = p.needs(v, s.ID)
		} else if i > 0 && p.def.Steps[i-1].ID != "" {
			s.Needs = []string{p.def.Steps[i-1].ID}
		}
		needs[s.ID] = s.Needs
	}
	up, cycle := upstream(ids, needs)
	p.up = up
	if cycle == nil {
		return
	}
	at := read[p.def.byID[cycle[0]].Index]
	if v := at.Values["needs"]; v != nil {
		p.Fail(v, "the steps depend on each other in a cycle: %s", strings.Join(cycle, " → "))
		return
	}
	p.Fail(at.Node, "the steps depend on each other in a cycle: %s", strings.Join(cycle, " → "))
}

func (p *parser) needs(n *yaml.Node, id string) []string {
	out := []string{}
	for _, item := range p.List(n, "needs") {
		need := p.Text(item, "needs")
		switch {
		case need == "":
		case !p.known[need]:
			p.Fail(item, "there is no step %s", gatehouse.Quote(need))
		case need == id:
			p.Fail(item, "a step cannot need itself")
		case slices.Contains(out, need):
			p.Fail(item, "%s appears twice", gatehouse.Quote(need))
		default:
			out = append(out, need)
		}
	}
	return out
}

// step reads the rest of a step.
func (p *parser) step(s *Step, f form.Fields) {
	p.uses(s, f.Values["uses"])
	s.reads = make(map[string]bool)
	may := func() *reads {
		return &reads{
			steps: p.up[s.ID], known: p.known, clock: true, seen: s.reads, refused: p.refused[s.ID],
			repeated: p.def.repeated[s.ID],
		}
	}
	s.If = p.expression(f.Values["if"], "if", wantCondition, may())
	s.ForEach = p.list(f.Values["for_each"], may())
	each := f.Values["for_each"] != nil
	if each {
		s.MaxItems = DefaultItems
	}
	if v := f.Values["max_items"]; v != nil {
		if s.MaxItems, s.ownItems = p.Whole(v, "max_items", MaxItems), true; !each {
			p.Fail(v, "max_items needs for_each")
		}
	}
	if s.ForEach != nil {
		s.ForEach.limit = s.MaxItems
	}
	inside := may()
	inside.item = each
	s.With = p.template(f.Values["with"], "with", inside)
	p.with(s, f)
	if v := f.Values["idempotency_key"]; v != nil {
		p.key(s, v, each)
	}
	p.retry(s, f.Values["retry"])
	s.Timeout = p.Duration(f.Values["timeout"], "timeout", gatehouse.Duration(time.Second), maxTimeout).D()
	p.risk(s, f)
	p.refuseUnusedKeys(s, f)
}

// list compiles an expression that must return a list.
func (p *parser) list(n *yaml.Node, r *reads) *Expr {
	e := p.expression(n, "for_each", wantAny, r)
	if e == nil {
		return nil
	}
	if t := e.Type(); t.Kind() != types.ListKind && t.Kind() != types.DynKind {
		p.Fail(n, "for_each: gives %s, but must give a list", cel.FormatCELType(t))
	}
	return e
}

func (p *parser) key(s *Step, n *yaml.Node, each bool) {
	if n.Kind != yaml.ScalarNode {
		p.Fail(n, "idempotency_key must be a string")
		return
	}
	r := &reads{
		steps: p.up[s.ID], known: p.known, item: each, seen: s.reads, refused: p.refused[s.ID],
		repeated: p.def.repeated[s.ID],
	}
	s.IdempotencyKey = p.template(n, "idempotency_key", r)
	s.keyRepeats = r.seenIteration
	if (s.OnRejected.Repeat != "" || s.OnExpired.Repeat != "") && !r.seenIteration {
		p.Fail(n, "idempotency_key must contain iteration, because each iteration needs its own")
	}
	if each && !r.seenItem {
		p.Fail(n, "idempotency_key must contain item or index, because each item needs its own")
	}
}

// uses reads the kind and target of a step.
func (p *parser) uses(s *Step, n *yaml.Node) {
	if s.Uses = p.Text(n, "uses"); s.Uses == "" {
		return
	}
	kind, rest, dotted := strings.Cut(s.Uses, ".")
	s.Kind = Kind(kind)
	bad := func(form string) { p.Fail(n, "uses must be %s", form) }
	switch s.Kind {
	case KindApproval, KindTransform, KindWait:
		if dotted {
			bad(kind)
		}
		if s.Kind == KindApproval {
			s.Connector, s.Operation = ApprovalConnector, ApprovalOperation
		}
	case KindConnector:
		i := strings.LastIndexByte(rest, '.')
		if i < 0 || !gatehouse.ValidName(rest[:i]) || !gatehouse.ValidName(rest[i+1:]) {
			bad("connector.<name>.<operation>")
			return
		}
		if s.Connector, s.Operation = rest[:i], rest[i+1:]; s.Connector == ApprovalConnector {
			p.Fail(n, "the connector %s is built in; write uses: approval", ApprovalConnector)
		}
	case KindModel:
		if s.Provider = rest; !gatehouse.ValidName(rest) {
			bad("model.<provider>")
		}
	case KindWorkflow:
		if s.Workflow = rest; !nameForm.MatchString(rest) {
			bad("workflow.<name>")
		}
	case KindWorker:
		if s.Tool = rest; !gatehouse.ValidName(rest) {
			bad("worker.<tool>")
		}
	default:
		bad("connector.<name>.<operation>, approval, transform, wait, model.<provider>, workflow.<name> or worker.<tool>")
		s.Kind = ""
	}
}

func (p *parser) retry(s *Step, n *yaml.Node) {
	s.Retry = Retry{Max: DefaultRetries, Backoff: defaultBackoff()}
	if n == nil {
		return
	}
	s.ownRetry = true
	f := p.mappingOf(n, "retry")
	if v := f.Values["max"]; v != nil {
		if v.Kind == yaml.ScalarNode && v.Value == strconv.Itoa(0) {
			s.Retry.Max = 0
		} else {
			s.Retry.Max = p.Whole(v, "max", maxRetries)
		}
	}
	v := f.Values["backoff"]
	if v == nil {
		return
	}
	items := p.List(v, "backoff")
	if len(items) == 0 || len(items) > maxRetries {
		p.Fail(v, "backoff must list 1 to %d durations", maxRetries)
		return
	}
	s.Retry.Backoff = nil
	for _, item := range items {
		s.Retry.Backoff = append(s.Retry.Backoff, p.Duration(item, "backoff", minBackoff, maxBackoff).D())
	}
}

// The risk tiers of a step.
var tiers = map[string]gatehouse.RiskLevel{"low": gatehouse.L2, "med": gatehouse.L3, "high": gatehouse.L4}

func (p *parser) risk(s *Step, f form.Fields) {
	if v := f.Values["risk"]; v != nil {
		tier := p.Text(v, "risk")
		if s.Risk = tiers[tier]; s.Risk == 0 && tier != "" {
			p.Fail(v, "risk must be low, med or high")
		}
	}
	if v := f.Values["two_person"]; v != nil {
		if v.Kind != yaml.ScalarNode || v.Value != "true" && v.Value != "false" || v.Style != 0 {
			p.Fail(v, "two_person must be true or false")
		}
		s.TwoPerson = v.Value == "true"
	}
	v := f.Values["action_type"]
	switch {
	case v != nil:
		s.ActionType = p.Name(v, "action_type")
		if s.ActionType != strings.ToLower(s.ActionType) {
			p.Fail(v, "action_type must be lower-case")
		}
	case s.Kind == KindApproval:
		s.ActionType = ApprovalType
	case s.Kind == KindConnector:
		p.Fail(f.Node, "a connector step needs action_type, which policies match")
	}
}

// refuseUnusedKeys refuses keys that have no effect for the step's kind: an author who writes one
// expects an effect.
func (p *parser) refuseUnusedKeys(s *Step, f form.Fields) {
	var idle []string
	if !s.Kind.Proposes() {
		idle = append(idle, "risk", "two_person", "action_type", "on_rejected", "on_expired")
	}
	switch s.Kind {
	case KindWait, KindTransform, KindConnector, KindApproval:
		idle = append(idle, "timeout")
	}
	if s.Kind == KindWait || s.Kind == KindTransform {
		idle = append(idle, "retry", "idempotency_key")
	}
	if s.Kind == "" {
		return
	}
	for _, key := range idle {
		if v := f.Values[key]; v != nil {
			p.Fail(v, "%s has no effect in a step that uses %s", key, s.Kind)
		}
	}
}

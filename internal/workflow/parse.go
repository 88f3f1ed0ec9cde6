package workflow

import (
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
	"github.com/gatehouse-dev/gatehouse/internal/form"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

// The bounds of a file.
const (
	maxLines       = 10_000
	maxCompiled    = 4000 // expressions of a workflow
	maxConcurrency = 10_000
	maxPerMinute   = 100_000
	maxWrites      = 100_000
	minDeadline    = gatehouse.Duration(time.Second)
	maxDeadline    = gatehouse.Duration(366 * 24 * time.Hour)
	minWindow      = gatehouse.Duration(time.Minute)
	maxWindow      = gatehouse.Duration(366 * 24 * time.Hour)
	maxTimeout     = gatehouse.Duration(24 * time.Hour)
	minBackoff     = gatehouse.Duration(10 * time.Millisecond)
	maxBackoff     = gatehouse.Duration(7 * 24 * time.Hour)
)

// The keys of each object of the form; the JSON Schema has the same keys.
var keys = map[string][]string{
	"a workflow": {"name", "description", "workspace", "on", "limits", "input", "steps", "output"},
	"on":         {"webhook", "schedule"},
	"webhook":    {"kind", "secret", "sender", "ref"},
	"schedule":   {"cron", "timezone"},
	"limits":     {"max_concurrency", "max_runs_per_min", "max_writes_per_run", "deadline", "budget"},
	"budget":     {"amount", "currency", "window"},
	"a step": {
		"id", "uses", "needs", "if", "with", "retry", "timeout", "idempotency_key", "risk", "two_person",
		"action_type", "for_each", "max_items", "on_rejected", "on_expired",
	},
	"retry":       {"max", "backoff"},
	"on_rejected": {"repeat", "max"},
	"on_expired":  {"repeat", "max"},
}

// The result types that an expression may be required to have; an empty list permits
// any type.
var (
	wantCondition = []*cel.Type{cel.BoolType, cel.DynType}
	wantAny       []*cel.Type
)

// parser builds a definition from a source.
type parser struct {
	form.Reader
	language *expr.Language
	def      *Definition
	known    map[string]bool            // the ids of all steps
	up       map[string]map[string]bool // the steps that each step needs, directly or indirectly
	// refused holds, for each step, the steps whose rejection it may read.
	refused  map[string]map[string]bool
	compiled int // number of expressions
}

// Parse parses a workflow strictly and type-checks its expressions. The error
// is [Problems] with everything that is wrong.
func Parse(source []byte) (*Definition, error) {
	l, err := theLanguage()
	if err != nil {
		return nil, Problems{{Line: 1, Column: 1, Detail: err.Error()}}
	}
	p := &parser{
		Reader:   form.Reader{What: "workflow", MaxBytes: gatehouse.MaxWorkflowBytes, MaxLines: maxLines},
		language: l, def: &Definition{byID: make(map[string]*Step)}, known: make(map[string]bool),
	}
	if doc := p.Load(source); doc != nil {
		p.document(doc)
	}
	if len(p.Problems) > 0 {
		return nil, problems(p.Problems)
	}
	return p.def, nil
}

func problems(list []form.Problem) Problems {
	out := make(Problems, 0, len(list))
	for _, one := range form.Sort(list) {
		out = append(out, gatehouse.WorkflowProblem(one))
	}
	return out
}

// mappingOf reads a mapping and checks its keys; the result's Node is nil when n is
// not a mapping.
func (p *parser) mappingOf(n *yaml.Node, what string) form.Fields {
	if n == nil {
		return form.Fields{}
	}
	return p.Mapping(n, what, keys[what]...)
}

func (p *parser) need(f form.Fields, what string, names ...string) {
	for _, name := range names {
		if f.Node != nil && f.Values[name] == nil {
			p.Fail(f.Node, "%s needs %s", what, name)
		}
	}
}

func (p *parser) document(n *yaml.Node) {
	f := p.mappingOf(n, "a workflow")
	if f.Node == nil {
		return
	}
	p.need(f, "a workflow", "name", "steps")
	d := p.def
	if d.Name = p.Text(f.Values["name"], "name"); d.Name != "" && !nameForm.MatchString(d.Name) {
		p.Fail(f.Values["name"], "name must be lower-case letters, digits and -, at most 63")
	}
	if d.Description = p.Text(f.Values["description"], "description"); len(d.Description) > maxDescription {
		p.Fail(f.Values["description"], "description is longer than %d bytes", maxDescription)
	}
	d.Workspace = "default"
	if v := f.Values["workspace"]; v != nil {
		d.Workspace = p.Name(v, "workspace")
	}
	p.triggers(f.Values["on"])
	p.limits(f.Values["limits"])
	p.input(f.Values["input"])
	p.steps(f.Values["steps"])
	if v := f.Values["output"]; v != nil {
		d.outputReads = make(map[string]bool)
		d.output = p.template(v, "output", &reads{steps: p.known, known: p.known, clock: true, seen: d.outputReads})
	}
}

func (p *parser) triggers(n *yaml.Node) {
	f := p.mappingOf(n, "on")
	if v := f.Values["webhook"]; v != nil {
		p.webhook(v)
	}
	v := f.Values["schedule"]
	if v == nil {
		return
	}
	s := p.mappingOf(v, "schedule")
	p.need(s, "schedule", "cron")
	spec, zone := p.Text(s.Values["cron"], "cron"), p.Text(s.Values["timezone"], "timezone")
	if spec == "" {
		return
	}
	c, err := ParseCron(spec, zone)
	if err != nil {
		at := s.Values["cron"]
		if strings.Contains(err.Error(), "time zone") {
			at = s.Values["timezone"]
		}
		p.Fail(at, "%v", err)
	}
	p.def.On.Schedule = c
}

func (p *parser) webhook(n *yaml.Node) {
	f := p.mappingOf(n, "webhook")
	p.need(f, "webhook", "kind", "secret")
	w := &Webhook{Kind: p.Text(f.Values["kind"], "kind"), Secret: p.Name(f.Values["secret"], "secret")}
	w.Sender = p.Name(f.Values["sender"], "sender")
	switch w.Kind {
	case HookServiceNow, HookGitHub, HookGeneric, "":
	default:
		p.Fail(f.Values["kind"], "kind must be %s, %s or %s", HookServiceNow, HookGitHub, HookGeneric)
	}
	w.Ref = p.expression(f.Values["ref"], "ref", []*cel.Type{cel.StringType, cel.DynType},
		&reads{inputOnly: true, known: p.known})
	p.def.On.Webhook = w
}

func (p *parser) limits(n *yaml.Node) {
	f := p.mappingOf(n, "limits")
	p.def.Limits = Limits{
		MaxConcurrency:  p.Whole(f.Values["max_concurrency"], "max_concurrency", maxConcurrency),
		MaxRunsPerMin:   p.Whole(f.Values["max_runs_per_min"], "max_runs_per_min", maxPerMinute),
		MaxWritesPerRun: p.Whole(f.Values["max_writes_per_run"], "max_writes_per_run", maxWrites),
		Deadline:        p.Duration(f.Values["deadline"], "deadline", minDeadline, maxDeadline),
	}
	v := f.Values["budget"]
	if v == nil {
		return
	}
	b := p.mappingOf(v, "budget")
	p.need(b, "budget", "amount", "currency", "window")
	budget := &Budget{
		Currency: p.Text(b.Values["currency"], "currency"),
		Window:   p.Duration(b.Values["window"], "window", minWindow, maxWindow),
	}
	if c := budget.Currency; c != "" && !gatehouse.ValidCurrency(c) {
		p.Fail(b.Values["currency"], "currency must be three capital letters, such as USD")
	}
	if a := b.Values["amount"]; a != nil {
		budget.Amount = p.Amount(a, "amount")
		if _, err := budget.Amount.Micros(); err != nil || budget.Amount != "" && budget.Amount.Sign() <= 0 {
			p.Fail(a, "amount must be above 0 and at most 9223372036854")
		}
	}
	p.def.Limits.Budget = budget
}

func (p *parser) input(n *yaml.Node) {
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.Fail(n, "input must be a JSON Schema")
		return
	}
	before := len(p.Problems)
	j := p.JSON(n)
	if len(p.Problems) > before {
		return
	}
	if err := gatehouse.CheckJSON([]byte(j)); err != nil {
		p.Fail(n, "input: %v", err)
		return
	}
	s, err := jsonshape.Compile(j)
	if err != nil {
		p.Fail(n, "input is not a JSON Schema: %s", expr.Brief(err.Error(), 200))
		return
	}
	p.def.Input, p.def.input = j, s
}

// expression compiles an expression and reports its errors at their position.
func (p *parser) expression(n *yaml.Node, what string, want []*cel.Type, r *reads) *Expr {
	if n == nil {
		return nil
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		p.Fail(n, "%s must be an expression; put it in quotes", what)
		return nil
	case n.ShortTag() != "!!str" && n.ShortTag() != "!!bool":
		p.Fail(n, "%s must be an expression; put it in quotes", what)
		return nil
	case strings.HasPrefix(strings.TrimSpace(n.Value), "${{"):
		p.Fail(n, "%s is an expression already; write it without ${{ }}", what)
		return nil
	}
	return p.compile(n, n.Value, 0, what, want, r)
}

// compile compiles the source at a rune offset within a scalar.
func (p *parser) compile(n *yaml.Node, source string, offset int, what string, want []*cel.Type, r *reads) *Expr {
	if strings.TrimSpace(source) == "" {
		line, column := p.Locate(n, offset)
		p.At(line, column, "%s: an expression is empty", what)
		return nil
	}
	if p.compiled++; p.compiled > maxCompiled {
		if p.compiled == maxCompiled+1 {
			p.Fail(n, "the workflow has more than %d expressions", maxCompiled)
		}
		return nil
	}
	e, errs := p.language.Compile(source, want, r.check)
	for _, err := range errs {
		line, column := p.Locate(n, offset+err.Offset)
		p.At(line, column, "%s: %s", what, form.OneLine(err.Detail))
	}
	if e == nil {
		return nil
	}
	return &Expr{Expression: e}
}

// template reads a JSON value with expressions in its strings.
func (p *parser) template(n *yaml.Node, what string, r *reads) *Template {
	if n == nil {
		return nil
	}
	before, count := len(p.Problems), 0
	root := p.node(n, what, r, &count, 0)
	if count > maxExpressions {
		p.Fail(n, "%s has more than %d expressions", what, maxExpressions)
	}
	if len(p.Problems) > before {
		return nil
	}
	t := &Template{root: root}
	if count == 0 {
		j, err := (&Template{root: root}).Eval(&Scope{})
		if err != nil {
			p.Fail(n, "%s: %v", what, err)
			return nil
		}
		t.literal = j
	}
	return t
}

func (p *parser) node(n *yaml.Node, what string, r *reads, count *int, depth int) node {
	if depth > gatehouse.MaxDepth {
		p.Fail(n, "%s is nested deeper than %d", what, gatehouse.MaxDepth)
		return node{}
	}
	switch n.Kind {
	case yaml.MappingNode:
		f := p.Mapping(n, what)
		out := node{members: []namedNode{}}
		for _, key := range f.Keys {
			if strings.Contains(key.Value, "${{") {
				p.Fail(key, "%s: a key cannot contain an expression", what)
			}
			out.members = append(out.members, namedNode{key.Value, p.node(f.Values[key.Value], what, r, count, depth+1)})
		}
		return out
	case yaml.SequenceNode:
		out := node{items: []node{}}
		for _, item := range n.Content {
			out.items = append(out.items, p.node(item, what, r, count, depth+1))
		}
		return out
	}
	if !form.IsText(n) {
		return node{literal: p.JSON(n)}
	}
	return p.textNode(n, what, r, count)
}

func (p *parser) textNode(n *yaml.Node, what string, r *reads, count *int) node {
	list, bad := pieces(n.Value)
	if bad >= 0 {
		line, column := p.Locate(n, bad)
		p.At(line, column, "%s: ${{ has no closing }}; write $${{ for the text ${{", what)
		return node{}
	}
	var parts []part
	for _, one := range list {
		if !one.source {
			parts = append(parts, part{text: one.text})
			continue
		}
		*count++
		parts = append(parts, part{expr: p.compile(n, one.text, one.offset, what, wantAny, r)})
	}
	switch {
	case len(parts) == 0:
		return node{literal: `""`}
	case len(parts) > 1:
		return node{parts: parts}
	case parts[0].expr != nil:
		return node{expr: parts[0].expr}
	}
	return node{literal: gatehouse.StringJSON(parts[0].text)}
}

package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// The bounds of a policy. The console shows and compares its source line by line.
const (
	maxSource   = 1 << 20
	maxLines    = 20_000
	maxRules    = 1000
	maxCeilings = 100
	maxTests    = 5000
	maxPeople   = 100
	maxGroups   = 20
	maxQuorum   = 20
	minExpiry   = gatehouse.Duration(time.Minute)
	minStage    = gatehouse.Duration(time.Second)
	maxExpiry   = gatehouse.Duration(gatehouse.MaxExpiry)
	maxHold     = gatehouse.Duration(30 * 24 * time.Hour)
	minWindow   = gatehouse.Duration(time.Minute)
	maxWindow   = gatehouse.Duration(366 * 24 * time.Hour)
)

// parser builds a policy from a file.
type parser struct {
	form.Reader
	compiler *compiler
	policy   Policy
}

// Parse reads a policy strictly and type-checks its expressions. The error is a
// *[Problems] with every problem.
func Parse(source []byte) (*Policy, error) {
	c, err := newCompiler()
	if err != nil {
		return nil, &Problems{[]Problem{{Line: 1, Column: 1, Detail: err.Error()}}}
	}
	p := &parser{Reader: form.Reader{What: "policy", MaxBytes: maxSource, MaxLines: maxLines}, compiler: c}
	if doc := p.Load(source); doc != nil {
		p.document(doc)
	}
	if len(p.Problems) > 0 {
		return nil, &Problems{form.Sort(p.Problems)}
	}
	return &p.policy, nil
}

func (p *parser) document(n *yaml.Node) {
	f := p.Mapping(n, "a policy", "version", "policy_changes", "slack", "edits", "grants", "mandates", "levels",
		"reject_reasons",
		"risk", "holidays", "approvals", "rules", "ceilings", "links", "tests")
	if v := f.Values["version"]; v == nil {
		p.Fail(n, "version is missing; write version: 1")
	} else if v.Kind != yaml.ScalarNode || v.Value != "1" {
		p.Fail(v, "version must be 1")
	}
	if v := f.Values["policy_changes"]; v != nil {
		if p.policy.gated = v.Kind == yaml.ScalarNode && v.Value == "gated"; !p.policy.gated &&
			(v.Kind != yaml.ScalarNode || v.Value != "direct") {
			p.Fail(v, "policy_changes must be direct or gated")
		}
	}
	p.slack(f.Values["slack"])
	p.edits(f.Values["edits"])
	p.inAdvance(f.Values["grants"], f.Values["mandates"])
	p.levels(f.Values["levels"])
	p.rejectReasons(f.Values["reject_reasons"])
	p.risk(f.Values["risk"])
	p.holidays(f.Values["holidays"])
	p.policy.calendar, p.policy.language = p.compiler.calendar, p.compiler.Language
	p.compiler.risk = p.policy.risk
	p.approvals(f.Values["approvals"])
	for _, item := range p.few(f.Values["rules"], "rules", maxRules) {
		p.rule(item)
	}
	slices.SortStableFunc(p.policy.rules, func(a, b rule) int { return cmp.Compare(a.id, b.id) })
	for _, item := range p.few(f.Values["ceilings"], "ceilings", maxCeilings) {
		p.ceiling(item)
	}
	p.links(f.Values["links"])
	for _, item := range p.few(f.Values["tests"], "tests", maxTests) {
		p.test(item)
	}
}

// links reads the rights of mailed links.
func (p *parser) links(n *yaml.Node) {
	if n == nil {
		return
	}
	p.policy.linkUpTo = p.upTo(p.Mapping(n, "links", "decide_up_to"), "decide_up_to", 0, 0, gatehouse.L3,
		"L4 and L5 are never decided by a link")
}

// upTo reads the level under a key, which must be from lowest to highest. Without the key, it returns usual.
func (p *parser) upTo(
	f form.Fields, key string, usual, lowest, highest gatehouse.RiskLevel, why string,
) gatehouse.RiskLevel {
	v := f.Values[key]
	if v == nil {
		return usual
	}
	if v.Kind == yaml.ScalarNode && len(v.Value) == 1 {
		if level := gatehouse.RiskLevel(v.Value[0]) - '0'; level >= lowest && level <= highest {
			return level
		}
	}
	p.Fail(v, "%s must be %d to %d: %s", key, int(lowest), int(highest), why)
	return usual
}

// few returns the items of a list, unless it is too long.
func (p *parser) few(n *yaml.Node, what string, limit int) []*yaml.Node {
	items := p.List(n, what)
	if len(items) > limit {
		p.Fail(n, "there are more than %d %s", limit, what)
		return nil
	}
	return items
}

func (p *parser) risk(n *yaml.Node) {
	p.policy.risk = make(map[string]gatehouse.RiskLevel)
	p.policy.riskAt = make(map[string]Problem)
	if n == nil {
		return
	}
	f := p.Mapping(n, "risk")
	for _, key := range f.Keys {
		if !gatehouse.ValidName(key.Value) {
			p.Fail(key, "an action type must be letters, digits, or any of ._@:+-")
		}
		p.policy.risk[key.Value] = p.level(f.Values[key.Value], "risk")
		p.policy.riskAt[key.Value] = Problem{Line: key.Line, Column: key.Column}
	}
}

// maxLevelName bounds the name of a level, in characters.
const maxLevelName = 40

// levels reads the tenant's own names of the levels.
func (p *parser) levels(n *yaml.Node) {
	if n == nil {
		return
	}
	f := p.Mapping(n, "levels", "1", "2", "3", "4", "5")
	for _, key := range f.Keys {
		value := f.Values[key.Value]
		name := p.Text(value, "a level's name")
		hidden := strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
		switch level, _ := strconv.Atoi(key.Value); {
		case name == "":
		case hidden || name != strings.TrimSpace(name) || utf8.RuneCountInString(name) > maxLevelName:
			p.Fail(value, "a level's name is at most %d visible characters, without space around it", maxLevelName)
		case slices.Contains(p.policy.levels[:], name):
			p.Fail(value, "another level is named %s", gatehouse.Quote(name))
		default:
			p.policy.levels[level] = name
		}
	}
}

// The bounds of the offered reasons for a rejection.
const (
	maxRejectReasons = 12
	maxReasonLength  = 120 // characters
)

// rejectReasons reads the offered reasons for a rejection.
func (p *parser) rejectReasons(n *yaml.Node) {
	for _, item := range p.few(n, "reject_reasons", maxRejectReasons) {
		reason := p.Text(item, "a reason")
		hidden := strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsPrint(r) })
		switch {
		case reason == "":
		case hidden || reason != strings.TrimSpace(reason) || utf8.RuneCountInString(reason) > maxReasonLength:
			p.Fail(item, "a reason is at most %d visible characters, without space around it", maxReasonLength)
		case slices.Contains(p.policy.rejectReasons, reason):
			p.Fail(item, "the reason %s appears twice", gatehouse.Quote(reason))
		default:
			p.policy.rejectReasons = append(p.policy.rejectReasons, reason)
		}
	}
}

func (p *parser) level(n *yaml.Node, what string) gatehouse.RiskLevel {
	return gatehouse.RiskLevel(p.Whole(n, what, int(gatehouse.L5)))
}

func (p *parser) approvals(n *yaml.Node) {
	for level := gatehouse.L1; level <= gatehouse.L5; level++ {
		p.policy.approvals[level] = standard(level)
	}
	if n == nil {
		return
	}
	f := p.Mapping(n, "approvals", "1", "2", "3", "4", "5")
	for _, key := range f.Keys {
		level, _ := strconv.Atoi(key.Value)
		value := f.Values[key.Value]
		q := p.question(p.Mapping(value, "an approvals entry",
			"required", "roles", "people", "groups", "expiry", "hold", "stages", "reminders", "on_timeout"))
		s := standard(gatehouse.RiskLevel(level))
		q.required = cmp.Or(q.required, s.required)
		q.expiry = cmp.Or(q.expiry, s.expiry)
		if !q.audience.stated() {
			q.audience = s.audience
		}
		if !q.everybody().enough(max(q.required, minimum(gatehouse.RiskLevel(level)))) {
			p.Fail(value, "L%d needs %d persons, but only %d are named", level,
				max(q.required, minimum(gatehouse.RiskLevel(level))), len(q.everybody().people))
		}
		p.policy.approvals[level] = q
		p.policy.levelAt[level] = Problem{Line: value.Line, Column: value.Column}
	}
}

// question reads the approval settings of a rule or level.
func (p *parser) question(f form.Fields) question {
	q := question{
		required: p.Whole(f.Values["required"], "required", maxQuorum),
		expiry:   p.Duration(f.Values["expiry"], "expiry", minExpiry, maxExpiry).D(),
	}
	if n := f.Values["hold"]; n != nil {
		hold := p.Duration(n, "hold", 0, maxHold).D()
		q.hold = &hold
	}
	q.audience = p.audience(f)
	p.timing(f, &q)
	return q
}

// audience reads who may answer.
func (p *parser) audience(f form.Fields) (a audience) {
	for _, item := range p.List(f.Values["roles"], "roles") {
		role := gatehouse.Role(p.Text(item, "a role"))
		switch {
		case role == "":
		case role != gatehouse.RoleApprover && role != gatehouse.RoleOperator && role != gatehouse.RoleAdmin:
			p.Fail(item, "%s cannot decide; a role is approver, operator or admin", gatehouse.Quote(string(role)))
		case slices.Contains(a.roles, role):
			p.Fail(item, "%s appears twice", gatehouse.Quote(string(role)))
		default:
			a.roles = append(a.roles, role)
		}
	}
	if p.few(f.Values["people"], "people", maxPeople) != nil {
		a.people = p.Texts(f.Values["people"], "people")
	}
	if p.few(f.Values["groups"], "groups", maxGroups) != nil {
		a.groups = p.Texts(f.Values["groups"], "groups")
	}
	for _, group := range a.groups {
		if !gatehouse.ValidGroupName(group) {
			p.Fail(f.Values["groups"], "%s cannot name a group: a name is lower-case letters, digits, or any of ._-",
				gatehouse.Quote(group))
		}
	}
	for _, key := range []string{"roles", "people", "groups"} {
		if n := f.Values[key]; n != nil && n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			p.Fail(n, "%s is empty, so that nobody could answer", key)
		}
	}
	slices.Sort(a.roles)
	slices.Sort(a.people)
	slices.Sort(a.groups)
	return a
}

func (p *parser) rule(n *yaml.Node) {
	f := p.Mapping(n, "a rule", "id", "when", "then", "reason", "risk", "required", "roles", "people", "groups", "expiry",
		"hold",
		"stages", "reminders", "on_timeout")
	if f.Node == nil {
		return
	}
	p.need(f, "a rule", "id", "when", "then")
	r := rule{
		id: p.Name(f.Values["id"], "id"), at: Problem{Line: n.Line, Column: n.Column},
		when:     p.expression(f.Values["when"], "when", wantCondition),
		then:     gatehouse.Outcome(p.Text(f.Values["then"], "then")),
		reason:   p.Text(f.Values["reason"], "reason"),
		risk:     p.level(f.Values["risk"], "risk"),
		question: p.question(f),
	}
	if slices.ContainsFunc(p.policy.rules, func(other rule) bool { return other.id == r.id }) && r.id != "" {
		p.Fail(f.Values["id"], "another rule is named %s", gatehouse.Quote(r.id))
	}
	var idle []string
	switch r.then {
	case gatehouse.OutcomeAllow:
		idle = []string{"required", "roles", "people", "groups", "expiry", "stages", "reminders", "on_timeout"}
	case gatehouse.OutcomeDeny:
		idle = []string{"required", "roles", "people", "groups", "expiry", "hold", "stages", "reminders", "on_timeout"}
	case gatehouse.OutcomeNeedsApproval:
		if q := r.question; q.audience.stated() && !q.everybody().enough(max(1, q.required)) {
			p.Fail(n, "%d persons are required, but only %d named", q.required, len(q.everybody().people))
		}
	case "":
	default:
		p.Fail(f.Values["then"], "then must be allow, deny or needs_approval")
	}
	for _, key := range idle {
		if at := f.Values[key]; at != nil {
			p.Fail(at, "%s has no effect where then is %s", key, r.then)
		}
	}
	p.policy.rules = append(p.policy.rules, r)
}

func (p *parser) ceiling(n *yaml.Node) {
	f := p.Mapping(n, "a ceiling", "name", "when", "per", "window", "limit", "amount", "count", "currency",
		"amount_currency")
	if f.Node == nil {
		return
	}
	p.need(f, "a ceiling", "name", "per", "window")
	c := ceiling{
		name:   p.Name(f.Values["name"], "name"),
		when:   p.expression(f.Values["when"], "when", wantCondition),
		per:    p.Text(f.Values["per"], "per"),
		window: p.Duration(f.Values["window"], "window", minWindow, maxWindow),
		amount: p.expression(f.Values["amount"], "amount", wantAmount),

		currency:       p.Text(f.Values["currency"], "currency"),
		amountCurrency: p.expression(f.Values["amount_currency"], "amount_currency", wantCurrency),
		at:             Problem{Line: n.Line, Column: n.Column},
	}
	if v := f.Values["currency"]; v != nil && !gatehouse.ValidCurrency(c.currency) {
		p.Fail(v, "currency must be three capital letters, such as USD; amount_currency takes an expression")
	}

	switch c.per {
	case perTenant, perAgent, perType, perTarget, "":
	default:
		p.Fail(f.Values["per"], "per must be tenant, agent, type or target")
	}

	limit, count, amount := f.Values["limit"], f.Values["count"], f.Values["amount"]
	switch {
	case count != nil && (limit != nil || amount != nil):
		p.Fail(count, "a ceiling has a count, or a limit and an amount")
	case count != nil && (f.Values["currency"] != nil || f.Values["amount_currency"] != nil):
		p.Fail(count, "a count has no currency")
	case count != nil:
		c.limit = gatehouse.Decimal(strconv.Itoa(p.Whole(count, "count", 1_000_000)))
	case limit == nil || amount == nil:
		p.Fail(n, "a ceiling needs a count, or a limit and an amount")
	default:
		c.limit = p.Amount(limit, "limit")
		if _, err := c.limit.Micros(); err != nil || c.limit != "" && c.limit.Sign() <= 0 {
			p.Fail(limit, "limit must be above 0 and at most 9223372036854")
		}
	}

	if c.name != "" && slices.ContainsFunc(p.policy.ceilings, func(o ceiling) bool { return o.name == c.name }) {
		p.Fail(f.Values["name"], "another ceiling is named %s", gatehouse.Quote(c.name))
	}
	p.policy.ceilings = append(p.policy.ceilings, c)
}

func (p *parser) need(f form.Fields, what string, keys ...string) {
	for _, key := range keys {
		if f.Values[key] == nil {
			p.Fail(f.Node, "%s needs %s", what, key)
		}
	}
}

// expression compiles an expression and reports its errors at their place in the
// file.
func (p *parser) expression(n *yaml.Node, what string, want []*cel.Type) *expression {
	if n == nil {
		return nil
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		p.Fail(n, "%s must be an expression; put it in quotes", what)
		return nil
	case n.ShortTag() == "!!timestamp" || n.ShortTag() == "!!null",
		!form.Plain(n):
		p.Fail(n, "%s is not a text in YAML; put it in quotes", what)
		return nil
	}
	e, errs := p.compiler.compile(n.Value, want)
	for _, err := range errs {
		line, column := p.Locate(n, err.Offset)
		p.At(line, column, "%s: %s", what, form.OneLine(err.Detail))
	}
	return e
}

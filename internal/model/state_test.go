package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// model is what the gate promises, as one plain data structure: no ids, no
// transactions, no concurrency. Each use case is a method that returns its answer as
// a text; the other methods help the use cases.
type model struct {
	now     time.Time
	people  map[string]*principal
	actions []*action
	keys    map[string]*action // by idempotency_key
	answers map[string]answered
	pushes  int  // ever made
	policy  int  // the active version
	frozen  bool // whether the active policy has the rule "freeze"
	calls   map[*action]int
	effects map[*action]int
	drifted map[string]bool
	actor   string   // who causes the audit log entries of the present step; "" if nobody
	told    []string // the messages so far; see tell
}

// principal is an account of a human or of an agent. A human can have several: the field person is the
// same in all of them, the name of the first.
type principal struct {
	name, person string
	kind         gatehouse.Kind
	roles        []gatehouse.Role
	sponsor      string
	disabled     bool
}

func (w *principal) has(r gatehouse.Role) bool {
	return slices.Contains(w.roles, r) || slices.Contains(w.roles, gatehouse.RoleAdmin) && r != gatehouse.RoleProposer
}

// reads reports whether a principal may read an action: a person reads every
// action, an agent its own and their revisions.
func (w *principal) reads(a *action) bool {
	return w.kind != gatehouse.KindAgent || a.by == w.name || a.supersedes != nil && w.reads(a.supersedes)
}

// answered is an answer stored under a client's key for a day.
type answered struct {
	body, answer string
	at           time.Time
}

type action struct {
	proposal
	n            int // its index in model.actions
	status       gatehouse.Status
	approval     gatehouse.ApprovalStatus // "" when nobody is asked
	version      int                      // of the policy that judged it
	risk         int
	revision     int
	required     int
	roles        []gatehouse.Role
	excluded     []string
	expires      time.Time
	hold         time.Duration
	votes        []vote
	decidedBy    string
	supersededBy *action
	supersedes   *action
	reverses     *action
	repeats      *action
	reversedBy   *action
	failure      string
	reversible   bool
	claim        *claim
	push         *push
	receipts     []string
	leaves       []string // the types of its audit log entries, in their order
	actors       []string // who caused each of the leaves
	heard        int      // how many leaves tell has seen
	carded       bool     // whether the channel "board" has a card of the action
	// lastStatus is the status after the test's previous step; lastChange is when the action reached it.
	lastStatus gatehouse.Status
	lastChange time.Time
	archived   bool
}

type vote struct {
	person, by string
	decision   gatehouse.DecisionKind
}

// claim is what an action reserves of the one ceiling that applies to it.
type claim struct {
	amount int
	at     time.Time // see gatehouse.CeilingClaim.CountedAt
	held   bool
}

type push struct {
	status                         gatehouse.PushStatus
	attempts, replays, generation  int
	base                           int // the attempts before the latest replay
	notBefore, next, sent, created time.Time
	lease                          time.Time
	code                           string
	closed                         time.Time
	nth                            int // among all pushes
	// doubt says that an attempt may have had its effect.
	doubt bool
}

// proposal is what a step proposes.
type proposal struct {
	kind, connector, operation, entity string
	by, behalf                         string
	amount                             int
	expiresIn                          time.Duration
	key                                string
	claimedRisk                        int
}

// content is what must be equal in proposals with the same idempotency_key.
func (p proposal) content() string {
	return fmt.Sprint(p.kind, p.connector, p.operation, p.entity, p.behalf, p.amount, p.expiresIn, p.key, p.claimedRisk)
}

// The kinds of action. riskOf has their levels; see source.
const (
	note      = "note"
	price     = "price_change"
	pair      = "pair"
	spend     = "spend"
	item      = "create_item"
	purge     = "purge"
	forbidden = "forbidden"
)

var riskOf = map[string]int{note: 1, price: 3, pair: 3, spend: 3, item: 4, purge: 5, forbidden: 3}

const (
	window       = time.Hour
	noteLimit    = 2
	spendLimit   = 10
	keyRetention = 30 * time.Minute
	lease        = time.Minute
	retries      = 3
	maxClaims    = 10
)

var backoffs = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

// source is the policy in its two versions.
func source(frozen bool) string {
	s := `version: 1
risk: {note: 1, price_change: 3, pair: 3, spend: 3, create_item: 4, purge: 5, forbidden: 3}
approvals:
  1: {required: 1, roles: [approver], expiry: 1h}
  3: {required: 1, roles: [approver], expiry: 1h}
  4: {required: 1, roles: [admin], expiry: 1h}
  5: {required: 2, roles: [approver], expiry: 30m}
rules:
  - {id: notes, when: 'action.type == "note"', then: allow}
  - {id: pairs, when: 'action.type == "pair"', then: needs_approval, required: 2}
  - {id: never, when: 'action.type == "forbidden"', then: deny, reason: never}
`
	if frozen {
		s += "  - {id: freeze, when: 'action.type in [\"price_change\", \"spend\"]', then: deny, reason: frozen}\n"
	}
	return s + `ceilings:
  - {name: notes, when: 'action.type == "note"', per: tenant, window: 1h, count: 2}
  - {name: money, when: 'action.type == "spend"', per: tenant, window: 1h, limit: 10, amount: change.amount}
`
}

// denies reports whether the active policy denies a kind.
func (m *model) denies(kind string) bool {
	return kind == forbidden || m.frozen && (kind == price || kind == spend)
}

// vetoed reports whether a later policy version denies the action.
func (m *model) vetoed(a *action) bool { return a.version != m.policy && m.denies(a.kind) }

// shown returns the status and the approval status that a read returns. For a pending
// action, both are expired from its expiry time on, even before the sweep.
func (m *model) shown(a *action) (gatehouse.Status, gatehouse.ApprovalStatus) {
	if a.status == gatehouse.StatusPending && !m.now.Before(a.expires) {
		return gatehouse.StatusExpired, gatehouse.ApprovalExpired
	}
	return a.status, a.approval
}

// used sums the use of a kind's ceiling.
func (m *model) used(kind string) (sum int) {
	for _, a := range m.actions {
		if c := a.claim; a.kind == kind && c != nil && c.held && c.at.After(m.now.Add(-window)) {
			sum += c.amount
		}
	}
	return sum
}

// fits reports whether the action still fits under its ceiling.
func (m *model) fits(a *action) bool {
	switch a.kind {
	case note:
		return m.used(note)+1 <= noteLimit
	case spend:
		return m.used(spend)+a.amount <= spendLimit
	}
	return true
}

func (m *model) reserve(a *action) {
	at := gatehouse.CeilingClaim{Window: gatehouse.Duration(window)}.CountedAt(m.now)
	switch a.kind {
	case note:
		a.claim = &claim{1, at, true}
	case spend:
		a.claim = &claim{a.amount, at, true}
	}
}

func (a *action) release() {
	if a.claim != nil {
		a.claim.held = false
	}
}

func (a *action) voteOf(person string) *vote {
	for i := range a.votes {
		if a.votes[i].person == person {
			return &a.votes[i]
		}
	}
	return nil
}

func (a *action) approvals() (n int) {
	for _, v := range a.votes {
		if v.decision == gatehouse.Approve {
			n++
		}
	}
	return n
}

// refusal returns the error code if a principal may not answer; "" if it may.
func (a *action) refusal(w *principal) string {
	switch {
	case slices.Contains(a.excluded, w.name) || slices.Contains(a.excluded, w.person):
		return "self_approval"
	case w.disabled || w.kind != gatehouse.KindPerson || !w.has(gatehouse.RoleApprover):
		return "role_required"
	case !slices.ContainsFunc(a.roles, w.has):
		return "role_required"
	}
	return ""
}

// votersStand reports whether all who approved may still approve.
func (m *model) votersStand(a *action) bool {
	sponsor := m.people[a.by].sponsor
	for _, v := range a.votes {
		w := m.people[v.by]
		if v.decision == gatehouse.Approve &&
			(a.refusal(w) != "" || sponsor != "" && (sponsor == w.name || sponsor == w.person)) {
			return false
		}
	}
	return true
}

// snapshot returns everything observable of an action.
func (m *model) snapshot(a *action) string {
	status, approval := m.shown(a)
	o := observation{
		kind: a.kind, revision: a.revision, status: string(status), approval: string(approval), required: a.required,
		decidedBy: a.decidedBy, failure: a.failure, receipts: a.receipts, archived: a.archived,
		supersedes: place(a.supersedes), supersededBy: place(a.supersededBy), reverses: place(a.reverses),
		reversedBy: place(a.reversedBy),
	}
	for _, v := range a.votes {
		o.votes = append(o.votes, fmt.Sprintf("%s/%s:%s", v.person, v.by, v.decision))
	}
	if p := a.push; p != nil {
		o.push = fmt.Sprintf("%s attempts %d generation %d replays %d code %q", p.status, p.attempts, p.generation, p.replays,
			p.code)
		if p.status == gatehouse.PushQueued {
			o.push += " due " + since(p.due())
		}
		if p.status == gatehouse.PushPicking || p.status == gatehouse.PushSent {
			o.push += " leased until " + since(p.lease)
		}
	}
	return o.String()
}

// observation holds the properties of one action in which the model and the store
// must agree.
type observation struct {
	kind, status, approval, decidedBy, failure, push string
	revision, required                               int
	votes, receipts                                  []string
	archived                                         bool
	supersedes, supersededBy, reverses, reversedBy   string
}

func (o observation) String() string {
	votes := slices.Clone(o.votes)
	slices.Sort(votes)
	return fmt.Sprintf(
		"%s r%d %s, approval %q of %d [%s], by %q, failure %q, push %s, receipts [%s], supersedes %s, "+
			"superseded by %s, reverses %s, reversed by %s, archived %t",
		o.kind, o.revision, o.status, o.approval, o.required, strings.Join(votes, " "), o.decidedBy, o.failure, o.push,
		strings.Join(o.receipts, " "), o.supersedes, o.supersededBy, o.reverses, o.reversedBy, o.archived)
}

func place(a *action) string {
	if a == nil {
		return "-"
	}
	return fmt.Sprint("#", a.n)
}

func since(t time.Time) string { return t.Sub(epoch).String() }

func (p *push) due() time.Time {
	if p.next.After(p.notBefore) {
		return p.next
	}
	return p.notBefore
}

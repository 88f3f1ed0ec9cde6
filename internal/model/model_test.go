package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// match is one sequence, played by the model and by every engine.
type match struct {
	*rapid.T
	model *model
	clock *clock
	sides []*side
	seen  *coverage
	// drawn is the action of the next play; nil for none.
	drawn *action
}

// coverage counts the answers of all sequences.
type coverage struct {
	mu    sync.Mutex
	words map[string]int
}

func (c *coverage) add(step, words string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.words[step+": "+strings.Trim(words, " 0123456789/#")]++
}

func TestModel(t *testing.T) {
	t.Parallel()
	seen := &coverage{words: map[string]int{}}
	c := &clock{at: epoch}
	var grounds []*ground
	for name, open := range engines(t) {
		grounds = append(grounds, newGround(t, name, open, c.now))
	}
	n := 0
	sequence := func(rt *rapid.T) {
		n++
		m := &match{T: rt, clock: c, seen: seen, model: newModel()}
		defer m.settle()
		for _, g := range grounds {
			m.sides = append(m.sides, newSide(failing{t, rt}, g, fmt.Sprint("tenant-", n)))
		}
		m.notify() // the messages of a tenant begin with its first pass
		switch rapid.IntRange(0, 6).Draw(rt, "opening") {
		case 0:
			m.crowd()
		case 1:
			m.past()
		case 2:
			m.nobody()
		default:
			for range 3 {
				m.steps()["propose"](rt)
			}
		}
		rt.Repeat(m.steps())
		m.notify()
		m.compareMessages()
		for _, s := range m.sides {
			s.checkInvariants()
		}
		m.compareLogs()
	}
	want := expectedWords
	if long() {
		want = slices.Concat(want, rareWords)
	}
	playUntilSeen(t, seen.words, want, sequence)
}

// playUntilSeen plays rounds of random sequences until seen counts every word of
// want, and fails the test when a word is still missing after six rounds.
func playUntilSeen(t *testing.T, seen map[string]int, want []string, sequence func(*rapid.T)) {
	t.Helper()
	missing := func() (words []string) {
		for _, word := range want {
			if seen[word] == 0 {
				words = append(words, word)
			}
		}
		return words
	}
	for round := 0; round == 0 || round < 6 && len(missing()) > 0 && !t.Failed(); round++ {
		rapid.Check(t, sequence)
	}
	for _, word := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%6d %s", seen[word], word)
	}
	for _, word := range missing() {
		t.Errorf("%q never happened: the sequences prove less than they should", word)
	}
}

// expectedWords are the answers that every run must produce, rareWords those
// that a long run must produce as well.
var (
	expectedWords = []string{
		"decide: decided", "decide: vote_recorded", "decide: approved", "decide: already_decided",
		"decide: not_awaiting_approval",
		"decide: expired", "decide: ceiling_exceeded", "decide: self_approval", "decide: role_required", "decide: invalid",
		"cancel: canceled", "cancel: too_late",
		"read: seen", "read: not_found", "cancel: not_found", "revise: not_found",
		"reverse: not_reversible", "propose: proposed denied", "propose: proposed approved", "sweep: swept",
		"propose to nobody: proposed denied", "revise to nobody: proposed denied",
		"dispatch: applied", "dispatch: failed", "dispatch: queued", "try as other tenant: [not_found]",
		"reverse of an archived applied: not_reversible", "decide of an archived applied: already_decided",
	}
	rareWords = []string{
		"decide: rejected", "decide: digest_mismatch", "decide: confirmation_required", "decide: already_voted",
		"decide: authority_revoked", "decide: not_found",
		"decide: target_changed", "decide: idempotency_key_reused", "propose: duplicate_key", "dispatch: unknown",
		"resolve: applied", "resolve: failed", "replay: queued", "replay: skipped too_old",
		"replay: skipped authority_revoked",
		"replay: skipped ceiling_exceeded", "replay: skipped resolve_first", "replay: too_late", "discard: discarded",
		"discard: skipped resolve_first",
		"discard: skipped already_discarded", "reverse: proposed approved", "reverse: not_found", "revise: proposed pending",
		"cancel: already_canceled",
		"propose of an archived applied: duplicate_key", "cancel of an archived applied: too_late",
		"replay of an archived applied: skipped already_applied",
		"reverse of an archived reversed: not_reversible", "try as other tenant of an archived applied: [not_found]",
	}
)

// failing reports the failures of a side to rapid, which then shrinks the
// sequence.
type failing struct {
	testing.TB
	rt *rapid.T
}

func (f failing) Helper()                    {}
func (f failing) Errorf(s string, a ...any)  { f.rt.Errorf(s, a...) }
func (f failing) Error(a ...any)             { f.rt.Error(a...) }
func (f failing) Fatalf(s string, a ...any)  { f.rt.Fatalf(s, a...) }
func (f failing) Fatal(a ...any)             { f.rt.Fatal(a...) }
func (f failing) Failed() bool               { return f.rt.Failed() }
func (f failing) Logf(s string, args ...any) { f.rt.Logf(s, args...) }

func newModel() *model {
	m := &model{
		people: map[string]*principal{}, keys: map[string]*action{}, answers: map[string]answered{}, policy: 1,
		calls: map[*action]int{}, effects: map[*action]int{}, drifted: map[string]bool{},
	}
	for _, w := range population() {
		m.people[w.name] = w
	}
	return m
}

// settle lets everything that a sequence has left open expire, so that the
// sweeps and rescues of later sequences find nothing of it.
func (m *match) settle() {
	m.clock.advance(25 * time.Hour)
	for _, s := range m.sides {
		s.rescue()
		s.sweep()
		s.must(s.ground.passed())
	}
}

// play runs one step everywhere and compares the answers.
func (m *match) play(step string, model func() string, real func(*side) string) {
	m.model.now = m.clock.advance(time.Millisecond)
	if m.drawn != nil && !m.drawn.archived {
		m.drawn = nil
	}
	m.model.actor = ""
	want := model()
	m.model.changed()
	m.model.attribute()
	m.seen.add(step, want)
	if m.drawn != nil {
		m.seen.add(fmt.Sprintf("%s of an archived %s", step, m.drawn.status), want)
	}
	for _, s := range m.sides {
		if got := real(s); got != want {
			m.Fatalf("%s on %s: %q, the model says %q", step, s.name, got, want)
		}
	}
	m.drawn = nil
}

// compare compares everything observable after every step.
func (m *match) compare(*rapid.T) {
	want := make([]string, 0, len(m.model.actions))
	for _, a := range m.model.actions {
		want = append(want, m.model.snapshot(a))
	}
	for _, s := range m.sides {
		if d := cmp.Diff(want, s.observe()); d != "" {
			m.Fatalf("%s (-model +store):\n%s", s.name, d)
		}
		if got, want := s.used(), m.model.usedWords(); got != want {
			m.Fatalf("%s: ceilings: %s, the model says %s", s.name, got, want)
		}
		for i, a := range m.model.actions {
			key := s.keys[i]
			if calls, effects := s.target.calls[key], s.target.effects[key]; calls != m.model.calls[a] ||
				effects != m.model.effects[a] {
				m.Fatalf("%s: #%d: %d calls and %d effects, the model says %d and %d", s.name, i, calls, effects, m.model.calls[a],
					m.model.effects[a])
			}
		}
	}
	if n, l := m.model.used(note), m.model.used(spend); n > noteLimit || l > spendLimit {
		m.Fatalf("10: a ceiling is exceeded: %d notes, %d", n, l)
	}
}

// compareLogs compares the kinds of leaves with those that must have been
// recorded.
func (m *match) compareLogs() {
	for _, s := range m.sides {
		leaves := s.log()
		for i, a := range m.model.actions {
			var got []string
			for _, l := range leaves[s.ids[i]] {
				got = append(got, l.Type)
			}
			if d := cmp.Diff(a.leaves, got); d != "" {
				m.Errorf("%s: the log of #%d (-model +store):\n%s", s.name, i, d)
			}
		}
	}
}

// crowd starts a match with more spending than fits under a ceiling, all of it
// to be approved: random sequences produce this too rarely.
func (m *match) crowd() {
	for i := range 3 {
		p := proposal{kind: spend, connector: "mute", operation: "a", entity: "x", by: "bot", amount: 4 + i%2}
		m.play("propose", func() string { return m.model.propose(p) }, func(s *side) string { return s.propose(p) })
	}
	for _, a := range slices.Clone(m.model.actions) {
		m.answer(a, true)
	}
}

// past starts a match with an action that was applied long ago and archived. A
// rejection and a reversal follow: random sequences do not always produce this.
func (m *match) past() {
	p := proposal{kind: spend, connector: "mute", operation: "a", entity: "x", by: "bot", amount: 1}
	m.play("propose", func() string { return m.model.propose(p) }, func(s *side) string { return s.propose(p) })
	a := m.model.actions[0]
	m.answer(a, true)
	m.model.now = m.clock.advance(m.model.untilDue())
	m.play("dispatch", func() string { return m.model.dispatch(fine, "") },
		func(s *side) string { return s.dispatch(fine, "") })
	m.model.now = m.clock.advance(gatehouse.MaxCeilingWindow + 2*retention)
	m.play("archive", m.model.archive, (*side).archive)
	m.drawn = a
	m.answer(a, false)
	m.drawn = a
	m.play("reverse", func() string { return m.model.reverse(a, "bot") },
		func(s *side) string { return s.reverse(a.n, "bot") })
}

// nobody starts a match with a change that only admin may answer. It is then
// proposed, and revised, on behalf of admin: nobody may answer.
func (m *match) nobody() {
	p := proposal{kind: item, connector: "mute", operation: "a", entity: "x", by: "bot"}
	m.play("propose", func() string { return m.model.propose(p) }, func(s *side) string { return s.propose(p) })
	p.behalf = "admin"
	m.play("propose to nobody", func() string { return m.model.propose(p) },
		func(s *side) string { return s.propose(p) })
	a := m.model.actions[0]
	m.play("revise to nobody", func() string { return m.model.revise(a, p) },
		func(s *side) string { return s.revise(a.n, p) })
}

// answer is a decision by ana with every confirmation that may be required.
func (m *match) answer(a *action, approve bool) {
	b := ballot{by: "ana", approve: approve, digest: "right", confirm: true, stepUp: true, ack: true}
	m.play("decide", func() string { return m.model.decide(a, b) }, func(s *side) string { return s.decide(a.n, b) })
}

func pick[T any](rt *rapid.T, what string, of ...T) T { return rapid.SampledFrom(of).Draw(rt, what) }

// action draws an action, mostly one for which likely holds.
func (m *match) action(rt *rapid.T, likely func(*action) bool) *action {
	of := m.model.actions
	if rapid.IntRange(0, 3).Draw(rt, "likely") < 3 {
		if some := slices.DeleteFunc(slices.Clone(of), func(a *action) bool { return !likely(a) }); len(some) > 0 {
			of = some
		}
	}
	if len(of) == 0 {
		rt.Skip()
	}
	m.drawn = of[rapid.IntRange(0, len(of)-1).Draw(rt, "action")]
	return m.drawn
}

func is(s ...gatehouse.Status) func(*action) bool {
	return func(a *action) bool { return slices.Contains(s, a.status) }
}

func (m *match) draw(rt *rapid.T) proposal {
	p := proposal{
		kind:      pick(rt, "kind", price, price, pair, pair, note, spend, spend, item, purge, forbidden),
		connector: pick(rt, "connector", "mute", "tell", "look"),
		operation: pick(rt, "operation", "a", "b", "c"), entity: pick(rt, "entity", "x", "y"),
		by:     pick(rt, "by", "bot", "bot", "bot", "eve", "eve", "vic"),
		behalf: pick(rt, "behalf", "", "", "", "ana", "ana-too", "ben"),
		amount: rapid.IntRange(1, 6).Draw(rt, "amount"), key: pick(rt, "key", "", "", "", "k1", "k2"),
	}
	if pick(rt, "soon", false, false, true) {
		p.expiresIn = pick(rt, "for", time.Minute, time.Minute, 5*time.Hour)
	}
	return p
}

const maxActions = 10

// steps are the possible next steps. A step that does not apply in the present
// state calls Skip, and rapid draws another: this neither shortens a sequence
// nor skips a test.
func (m *match) steps() map[string]func(*rapid.T) {
	s := map[string]func(*rapid.T){
		"propose": func(rt *rapid.T) {
			if len(m.model.actions) >= maxActions {
				rt.Skip()
			}
			p := m.draw(rt)
			m.drawn = m.model.keys[p.key]
			m.play("propose", func() string { return m.model.propose(p) }, func(s *side) string { return s.propose(p) })
		},
		"cancel": func(rt *rapid.T) {
			a, by, up := m.action(rt, is(pending, approved)), pick(rt, "by", "bot", "bot", "ana", "eve", "admin", "vic"),
				pick(rt, "step-up", true, true, false)
			m.play("cancel", func() string { return m.model.cancel(a, by, up) },
				func(s *side) string { return s.cancel(a.n, by, up) })
		},
		"read": func(rt *rapid.T) {
			a, by := m.action(rt, is(pending)), pick(rt, "by", "bot", "bot", "bot", "vic")
			m.play("read", func() string { return m.model.read(a, by) }, func(s *side) string { return s.read(a.n, by) })
		},
		"revise": func(rt *rapid.T) {
			if len(m.model.actions) >= maxActions {
				rt.Skip()
			}
			a, p := m.action(rt, is(pending)), m.draw(rt)
			p.key = ""
			if a.reverses != nil && rapid.IntRange(0, 3).Draw(rt, "same target") < 3 {
				p.connector, p.operation, p.entity = a.connector, a.operation, a.entity
			}
			m.play("revise", func() string { return m.model.revise(a, p) }, func(s *side) string { return s.revise(a.n, p) })
		},
		"reverse": func(rt *rapid.T) {
			if len(m.model.actions) >= maxActions {
				rt.Skip()
			}
			a, by := m.action(rt, is(applied)), pick(rt, "by", "bot", "eve", "ana", "vic")
			m.play("reverse", func() string { return m.model.reverse(a, by) },
				func(s *side) string { return s.reverse(a.n, by) })
		},
		"try as other tenant": func(rt *rapid.T) {
			a := m.action(rt, is(pending))
			m.play("try as other tenant", func() string { return "[not_found] 0" },
				func(s *side) string { return s.tryAsOtherTenant(a.n) })
		},
		"notify": func(*rapid.T) { m.notify() },
		"":       m.compare,
	}
	maps.Copy(s, m.decisions())
	maps.Copy(s, m.work())
	maps.Copy(s, m.world())
	maps.Copy(s, m.archiving())
	maps.Copy(s, m.restoring())
	return s
}

// decisions registers each of its steps under two names, because rapid draws names
// uniformly.
func (m *match) decisions() map[string]func(*rapid.T) {
	step := func(rt *rapid.T) {
		a := m.action(rt, is(pending))
		b := ballot{
			by:      pick(rt, "by", "ana", "ben", "eve", "admin", "ana-too", "cy", "bot", "vic"),
			approve: pick(rt, "approve", true, true, true, false),
			digest:  pick(rt, "digest", "right", "right", "right", "right", "wrong", "none"),
			confirm: pick(rt, "confirm", true, true, false),
			stepUp:  rapid.IntRange(0, 9).Draw(rt, "step-up") < 9, ack: rapid.Bool().Draw(rt, "acknowledge"),
			short: rapid.Bool().Draw(rt, "short"),
			key:   pick(rt, "key", "", "", "", "k1", "k2"), approval: rapid.Bool().Draw(rt, "by approval id"),
		}
		m.play("decide", func() string { return m.model.decide(a, b) }, func(s *side) string { return s.decide(a.n, b) })
	}
	approve := func(rt *rapid.T) {
		a := m.action(rt, is(pending))
		b := ballot{
			by: pick(rt, "by", "ana", "ben", "eve", "admin", "ana-too"), approve: true, digest: "right",
			confirm: pick(rt, "confirm", true, true, true, false), stepUp: true, ack: true,
			short: rapid.Bool().Draw(rt, "short"),
		}
		m.play("decide", func() string { return m.model.decide(a, b) }, func(s *side) string { return s.decide(a.n, b) })
	}
	return map[string]func(*rapid.T){"decide": step, "decide again": step, "approve": approve, "approve again": approve}
}

// work is what workers and operators do.
func (m *match) work() map[string]func(*rapid.T) {
	d := func(rt *rapid.T) {
		f := pick(rt, "fault", fine, fine, fine, notSent, transient, terminal, answerLost, requestLost)
		crash := pick(rt, "crash", "", "", "", "", dispatch.PointClaimed, dispatch.PointSent, dispatch.PointCalled)
		if rapid.IntRange(0, 3).Draw(rt, "wait until due") < 3 {
			m.model.now = m.clock.advance(m.model.untilDue())
		}
		m.play("dispatch", func() string { return m.model.dispatch(f, crash) },
			func(s *side) string { return s.dispatch(f, crash) })
	}
	return map[string]func(*rapid.T){
		"dispatch": d, "dispatch again": d, "dispatch once more": d,
		"rescue": func(*rapid.T) { m.play("rescue", m.model.rescue, (*side).rescue) },
		"resolve": func(rt *rapid.T) {
			a := m.action(rt, is(unknown))
			ok := m.model.effects[a] > 0 // operators tell the truth
			m.play("resolve", func() string { return m.model.resolve(a, ok) },
				func(s *side) string { return s.resolve(a.n, ok) })
		},
		"replay": func(rt *rapid.T) {
			a := m.action(rt, is(failed))
			m.play("replay", func() string { return m.model.replay(a) }, func(s *side) string { return s.replay(a.n) })
		},
		"discard": func(rt *rapid.T) {
			a := m.action(rt, is(failed))
			m.play("discard", func() string { return m.model.discard(a) }, func(s *side) string { return s.discard(a.n) })
		},
		"sweep": func(*rapid.T) { m.play("sweep", m.model.sweep, (*side).sweep) },
	}
}

// world is what changes around the gate.
func (m *match) world() map[string]func(*rapid.T) {
	change := func(name string, c gatehouse.PrincipalChange) func(*side) string {
		return func(s *side) string {
			_, err := s.gate.UpdatePrincipal(s.admin, name, c)
			s.must(err)
			return "changed"
		}
	}
	turns := map[string]func(*rapid.T){
		"policy": func(rt *rapid.T) {
			frozen := pick(rt, "frozen", false, false, true)
			m.play("policy", func() string {
				if frozen != m.model.frozen { // else it is the active version already
					m.model.policy, m.model.frozen = m.model.policy+1, frozen
				}
				return fmt.Sprint("version ", m.model.policy)
			}, func(s *side) string {
				v, err := s.gate.ApplyPolicy(s.admin, source(frozen))
				s.must(err)
				return fmt.Sprint("version ", v.Version)
			})
		},
		"roles": func(rt *rapid.T) {
			name := pick(rt, "who", "ana", "ben")
			roles := []gatehouse.Role{pick(rt, "role", gatehouse.RoleApprover, gatehouse.RoleApprover, gatehouse.RoleProposer)}
			m.play("roles", func() string { m.model.people[name].roles = roles; return "changed" },
				change(name, gatehouse.PrincipalChange{Roles: &roles}))
		},
		"disable": func(rt *rapid.T) {
			name, off := pick(rt, "who", "ana", "ben", "bot"), pick(rt, "disabled", false, false, true)
			m.play("disable", func() string { m.model.people[name].disabled = off; return "changed" },
				change(name, gatehouse.PrincipalChange{Disabled: &off}))
		},
		"sponsor": func(rt *rapid.T) {
			sponsor := pick(rt, "sponsor", "cy", "cy", "ben")
			m.play("sponsor", func() string { m.model.people["bot"].sponsor = sponsor; return "changed" },
				change("bot", gatehouse.PrincipalChange{Sponsor: &sponsor}))
		},
		"drift": func(rt *rapid.T) {
			entity, drifted := pick(rt, "entity", "x", "y"), pick(rt, "drifted", false, false, true)
			m.model.drifted[entity] = drifted
			for _, s := range m.sides {
				s.target.mu.Lock()
				s.target.drifted[entity] = drifted
				s.target.mu.Unlock()
			}
		},
	}
	names := slices.Sorted(maps.Keys(turns))
	return map[string]func(*rapid.T){
		"wait": func(rt *rapid.T) {
			m.model.now = m.clock.advance(
				pick(rt, "for", 10*time.Second, time.Minute, time.Minute, 10*time.Minute, time.Hour, 25*time.Hour))
		},
		"turn": func(rt *rapid.T) { turns[pick(rt, "what", names...)](rt) },
	}
}

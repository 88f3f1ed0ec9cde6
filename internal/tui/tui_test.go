package tui

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/termtest"
)

func hostileTexts(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("../../internal/card/testdata/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts []struct{ Text string }
	if err := json.Unmarshal(b, &texts); err != nil || len(texts) < 100 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	out := make([]string, len(texts))
	for i, x := range texts {
		out[i] = x.Text[:min(len(x.Text), 3000)]
	}
	return out
}

var coloring = regexp.MustCompile(`\x1b\[[0-9;]*m`)

var codes = regexp.MustCompile(`<U\+[0-9A-F]+>`)

// squeezed is a text without what the layout of a card adds or takes, and without marks: whether
// they are visible depends on the characters around them. A character that is shown as its code
// counts as the character: a card shows the codes of more look-alikes, because it has more text
// around them.
func squeezed(s string) string {
	s = strings.NewReplacer(" ", "", "│", "", "\n", "").Replace(s)
	s = codes.ReplaceAllStringFunc(s, func(code string) string {
		n, err := strconv.ParseInt(code[len("<U+"):len(code)-1], 16, 32)
		if err != nil {
			return ""
		}
		return string(rune(n))
	})
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) || unicode.IsSpace(r) || r == '│' || term.Hidden(r) {
			return -1
		}
		return r
	}, s)
}

// TestCardIsWhole: the card of any action shows its target, its diff, and the new value of a short change
// of one line. All lines fit, and nothing is shown that a terminal would execute.
func TestCardIsWhole(t *testing.T) {
	t.Parallel()
	texts := hostileTexts(t)
	anyText := rapid.OneOf(rapid.SampledFrom(texts), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string { return anyText.Draw(t, label) }
		before, after, name := draw("before"), draw("after"), draw("name")
		a := &gatehouse.Action{
			ID: "act_1", Status: gatehouse.StatusPending, Approval: &gatehouse.Approval{Required: 1},
			Proposal: gatehouse.Proposal{
				ActionType: "field_update", Connector: "shop", Operation: "update",
				Target:         gatehouse.Target{EntityType: draw("type"), EntityRef: draw("ref")},
				CurrentState:   gatehouse.ObjectJSON(gatehouse.Member{Name: name, Value: gatehouse.StringJSON(before)}),
				ProposedChange: gatehouse.ObjectJSON(gatehouse.Member{Name: name, Value: gatehouse.StringJSON(after)}),
				Rationale:      draw("rationale"), ArtifactDiff: &gatehouse.ArtifactDiff{Type: "text", Text: draw("diff")},
			},
		}
		width := rapid.IntRange(minColumns, 120).Draw(t, "width")
		p := cardPage(a,
			view{width: width, color: rapid.Bool().Draw(t, "color"), whole: true, why: true, now: time.Unix(0, 0)})
		var all, change strings.Builder
		for i, line := range p.lines {
			line = coloring.ReplaceAllString(line, "")
			if term.ColumnsOf(line) > width {
				t.Fatalf("line %q takes more than %d columns", line, width)
			}
			for _, r := range line {
				if term.Hidden(r) {
					t.Fatalf("line %q still has %U", line, r)
				}
			}
			all.WriteString(line)
			if i < p.payload {
				change.WriteString(line)
			}
		}
		if want, shown := squeezed(term.Safe(a.Rationale)), squeezed(all.String()); !strings.Contains(shown, want) {
			t.Fatalf("the rationale %q is not in %q", want, shown)
		}
		shown := squeezed(change.String())
		for what, text := range map[string]string{"reference": a.Target.EntityRef, "type": a.Target.EntityType,
			"field": strings.NewReplacer("~", "~0", "/", "~1").Replace(name)} {
			if want := squeezed(term.Safe(text)); !strings.Contains(shown, want) {
				t.Fatalf("the %s %q is not in %q", what, want, shown)
			}
		}
		if len(after) < 200 && len(before) < 200 && !strings.Contains(before+after, "\n") {
			// Invisible characters are always shown as their codes.
			for _, value := range []string{before, after} {
				want := squeezed(term.Safe(string(gatehouse.StringJSON(value))))
				if !strings.Contains(shown, want) {
					t.Fatalf("%q is not in %q", want, shown)
				}
			}
		}
		for _, line := range strings.Split(a.ArtifactDiff.Text, "\n") {
			if !strings.Contains(shown, squeezed(term.Safe(line))) {
				t.Fatalf("%q is not in %q", line, shown)
			}
		}
	})
}

// testReviewer has two cards, and no server.
func testReviewer(t *testing.T) *reviewer {
	t.Helper()
	g, _, _ := termtest.New(t)
	m := &reviewer{g: g, me: &gatehouse.Principal{ID: "prn_1", Person: "prn_1", Name: "ben"}, now: g.Now,
		token: "gte_x", width: 80, height: 24}
	for _, id := range []string{"act_1", "act_2"} {
		a := &gatehouse.Action{
			ID: id, Status: gatehouse.StatusPending, Approval: &gatehouse.Approval{Required: 1},
			Proposal: gatehouse.Proposal{
				ActionType: "note", Connector: "shop", Operation: "update", RiskLevel: gatehouse.L2,
				Target: gatehouse.Target{EntityType: "item", EntityRef: "A"}, ProposedChange: `{"note":"x"}`,
			},
		}
		a.Digest = a.ComputeDigest()
		m.items = append(m.items, &item{action: a})
	}
	m.Init()
	return m
}

func press(m *reviewer, keys ...string) (cmd tea.Cmd) {
	for _, k := range keys {
		_, cmd = m.Update(tea.KeyPressMsg{Code: []rune(k)[0], Text: k})
	}
	return cmd
}

// TestKeysAreInertAtFirst: a key meant for the last card does not decide the one that has just
// appeared, and the timer of an old card does not enable the keys of a new one.
func TestKeysAreInertAtFirst(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	if press(m, "a") != nil || m.draft != nil || press(m, "d") != nil || len(m.questions) > 0 ||
		strings.Contains(m.keys(), "reject") {
		t.Fatal("a card that has just appeared is decided")
	}
	first := armMsg(m.cards)
	press(m, "j")
	m.Update(first)
	if press(m, "a") != nil || m.busy {
		t.Fatal("the first card's timer enabled the second card")
	}
	m.Update(armMsg(m.cards))
	if press(m, "a") == nil || !m.busy {
		t.Fatal("an enabled card is not decided")
	}
	if m.busy = true; press(m, "a") != nil {
		t.Fatal("it is decided twice")
	}
}

// TestAFilterThatFails: after a selection was read to its end, a filter without an answer leaves
// nothing that can be approved unseen.
func TestAFilterThatFails(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	m.items[0].action.ProposedChange = gatehouse.MustJSON(map[string]string{"note": strings.Repeat("a line\n", 60)})
	for _, it := range m.items {
		it.action.Approval.ExpiresAt = m.now().Add(time.Hour)
		it.action.Digest = it.action.ComputeDigest()
	}
	press(m, "x", "j", "x", "k", "g", "b")
	for range 20 {
		m.scroll(m.body() - 1)
	}
	m.Update(armMsg(m.cards))
	if m.place != onBulk || len(m.bulk.items) != 2 || !strings.Contains(m.keys(), "a approve 2 actions") {
		t.Fatalf("the selection cannot be approved: %s", m.keys())
	}
	press(m, "/", "x")
	m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	m.Update(loaded{err: gatehouse.E(gatehouse.CodeBusy, "busy"), anew: true})
	m.Update(armMsg(m.cards))
	press(m, "a")
	if m.draft != nil || m.busy || m.place != onCard || m.at != 0 || !strings.Contains(m.message, "not yet seen") {
		t.Fatalf("the card was approved before it was seen: %q", m.message)
	}
}

// TestCommentsThatCannotBeRead: the card says that comments could not be read, until they are read. Those of
// another revision are ignored.
func TestCommentsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	it := m.items[0]
	shows := func(text string) bool { return strings.Contains(strings.Join(m.page.lines, "\n"), text) }
	m.Update(commentsRead{item: it, id: it.action.ID, err: gatehouse.E(gatehouse.CodeBusy, "later")})
	if !shows("It could not be read: later") {
		t.Errorf("the card is %q", m.page.lines)
	}
	read := commentsRead{item: it, id: "act_before"}
	read.comments = []gatehouse.Comment{{Number: 1, Author: "ana", Text: "old"}}
	m.Update(read)
	if shows("old") {
		t.Error("the card has the comments of another revision")
	}
	read.id = it.action.ID
	m.Update(read)
	if !shows("│ old") || shows("could not be read") {
		t.Errorf("the card is %q", m.page.lines)
	}
}

// TestForgedContentIsNotApproved: the digest binds what is shown.
func TestForgedContentIsNotApproved(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	m.items[0].action.ProposedChange = `{"note":"y"}`
	m.Update(armMsg(m.cards))
	if press(m, "a") != nil || m.draft != nil || !strings.Contains(m.message, "do not approve this") {
		t.Fatalf("approved, or not reported: %q", m.message)
	}
}

func TestTooSmallATerminal(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	m.Update(tea.WindowSizeMsg{Width: 12, Height: 24})
	m.Update(armMsg(m.cards))
	if press(m, "a") != nil || m.draft != nil || !strings.Contains(m.View().Content, "too small") {
		t.Fatal("approved on a screen that shows nothing")
	}
	for _, size := range [][2]int{{1, 1}, {17, 8}, {200, 3}, {0, 0}, {30, 9}} {
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		press(m, "n", "p", "w", "?", "?")
		if lines := strings.Count(m.View().Content, "\n") + 1; !m.small() && lines > size[1] {
			t.Errorf("%v: %d lines", size, lines)
		}
	}
}

// TestMineByDelegation: a person's question also waits for their delegate, until the person or another
// delegate has voted.
func TestMineByDelegation(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	m.me.Kind, m.me.Roles = gatehouse.KindPerson, []gatehouse.Role{gatehouse.RoleApprover}
	d := &gatehouse.Delegation{
		ID: "dlg_1", From: "prn_ana", FromName: "ana", To: "prn_1", Starts: m.now().Add(-time.Hour),
		Ends:  m.now().Add(time.Hour),
		Level: gatehouse.L3,
		Delegator: &gatehouse.Delegator{Person: "prn_ana", Roles: m.me.Roles,
			Groups: []gatehouse.Membership{{Group: "finance"}}},
	}
	finance := func(more ...func(*gatehouse.Action)) *gatehouse.Action {
		a := &gatehouse.Action{Approval: &gatehouse.Approval{Groups: []string{"finance"}}}
		a.RiskLevel = gatehouse.L3
		for _, f := range more {
			f(a)
		}
		return a
	}
	if m.mine(finance()) {
		t.Error("without a delegation")
	}
	s, ok := d.Standing()
	if !ok {
		t.Fatal("no standing")
	}
	m.standings = []gatehouse.Standing{s}
	for name, c := range map[string]struct {
		a    *gatehouse.Action
		want bool
	}{
		"asked by the group": {finance(), true},
		"above the level":    {finance(func(a *gatehouse.Action) { a.RiskLevel = gatehouse.L4 }), false},
		"another group":      {finance(func(a *gatehouse.Action) { a.Approval.Groups = []string{"legal"} }), false},
		"ana has voted": {
			finance(func(a *gatehouse.Action) { a.Approval.Votes = []gatehouse.Vote{{Person: "prn_ana"}} }), false},
		"another delegate has": {finance(func(a *gatehouse.Action) {
			a.Approval.Votes = []gatehouse.Vote{{Person: "prn_cy", For: "prn_ana"}}
		}), false},
		"ana is excluded": {finance(func(a *gatehouse.Action) { a.Approval.Excluded = []string{"ana"} }), false},
		"ben is excluded": {finance(func(a *gatehouse.Action) { a.Approval.Excluded = []string{"ben"} }), false},
	} {
		if got := m.mine(c.a); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := len(m.answersFor(c.a)) > 0; got != c.want && name != "ben is excluded" {
			t.Errorf("%s: answers for: %v", name, got)
		}
	}
}

// TestMine leaves out actions that the person cannot decide or has voted on.
func TestMine(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	m.me.Roles = []gatehouse.Role{gatehouse.RoleApprover}
	for _, c := range []struct {
		name string
		p    *gatehouse.Approval
		want bool
	}{
		{"anybody", &gatehouse.Approval{}, true},
		{"none", nil, false},
		{"the role", &gatehouse.Approval{Roles: []gatehouse.Role{gatehouse.RoleApprover}}, true},
		{"another role", &gatehouse.Approval{Roles: []gatehouse.Role{gatehouse.RoleAuditor}}, false},
		{"by name", &gatehouse.Approval{People: []string{"ben"}}, true},
		{"others by name", &gatehouse.Approval{People: []string{"cleo"}}, false},
		{"excluded", &gatehouse.Approval{Excluded: []string{"BEN"}}, false},
		{"voted", &gatehouse.Approval{Votes: []gatehouse.Vote{{Person: "prn_1"}}}, false},
	} {
		if got := m.mine(&gatehouse.Action{Approval: c.p}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// pagedInbox is a server with one page of actions for others, and one with an action for anybody.
type pagedInbox struct {
	Service
	asked []string
}

func (*pagedInbox) ListDelegations(context.Context) ([]*gatehouse.Delegation, error) { return nil, nil }

func (p *pagedInbox) ListActions(
	_ context.Context, f gatehouse.ActionFilter,
) (gatehouse.Page[*gatehouse.Action], error) {
	p.asked = append(p.asked, f.Cursor)
	page := gatehouse.Page[*gatehouse.Action]{Items: []*gatehouse.Action{{ID: "act_2", Approval: &gatehouse.Approval{}}}}
	if f.Cursor == "" {
		page.Items = []*gatehouse.Action{{ID: "act_1", Approval: &gatehouse.Approval{People: []string{"cleo"}}}}
		page.NextCursor = "2"
	}
	return page, nil
}

// TestFirstActionOnALaterPage: a review begins although all actions of the first page are for others.
func TestFirstActionOnALaterPage(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	api := &pagedInbox{}
	m.items, m.api = nil, api
	if err := m.first(); err != nil {
		t.Fatal(err)
	}
	if len(m.items) != 1 || m.items[0].action.ID != "act_2" || m.others != 1 ||
		!slices.Equal(api.asked, []string{"", "2"}) {
		t.Errorf("%d items, %d for others, asked for %q", len(m.items), m.others, api.asked)
	}
}

// TestUndoMakesANewCard: what the server said about the old revision does not hold for the new one, whose keys
// are inert at first.
func TestUndoMakesANewCard(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	old := m.items[0]
	old.mayAcknowledge, old.mayRebase, old.voted = true, true, true
	m.Update(armMsg(m.cards))
	next, denied := *old.action, *m.items[1].action
	next.ID, denied.ID, denied.Status = "act_3", "act_4", gatehouse.StatusDenied
	m.Update(undone{ids: []string{"act_1", "act_2"}, next: []*gatehouse.Action{&next, &denied}})
	if it := m.items[0]; it.action != &next || it.mayAcknowledge || it.mayRebase || it.voted {
		t.Errorf("the new card is %+v", it)
	}
	if m.armed || press(m, "a") != nil {
		t.Error("the new card is decided at once")
	}
	want := []outcome{{"act_1", "undone, pending as act_3"}, {"act_2", "undone, denied as act_4"}}
	if !slices.Equal(m.outcomes, want) {
		t.Errorf("the results are %v", m.outcomes)
	}
}

// undoService answers each undo with err, and stores the ids.
type undoService struct {
	Service
	asked []string
	err   error
}

func (s *undoService) Undo(_ context.Context, id string) (*gatehouse.UndoAnswer, error) {
	s.asked = append(s.asked, id)
	return nil, s.err
}

// TestUndoAsksForTheToken: an undo without an edit token asks for one. A refused token is asked for again, and the
// decisions can still be undone.
func TestUndoAsksForTheToken(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	api := &undoService{err: gatehouse.E(gatehouse.CodeEditTokenRequired, "wrong")}
	var token string
	m.connect = func(s string) (Service, error) {
		token = s
		return api, nil
	}
	m.token, m.held = "", []string{"act_1"}
	for _, typed := range []string{"x", "y"} {
		if press(m, "u") != nil || len(m.questions) != 1 || !m.questions[0].secret || m.busy {
			t.Fatalf("no question for the token: %v", m.questions)
		}
		press(m, typed)
		_, send := m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		if send == nil || !m.busy {
			t.Fatal("nothing was sent")
		}
		m.Update(send())
		if token != typed || m.token != "" || !slices.Equal(m.held, []string{"act_1"}) || m.busy ||
			!strings.Contains(m.message, "Not undone: wrong") {
			t.Errorf("sent %q; then the token is %q, held %v: %s", token, m.token, m.held, m.message)
		}
	}
	if !slices.Equal(api.asked, []string{"act_1", "act_1"}) {
		t.Errorf("undone: %v", api.asked)
	}
}

// TestOnlyTheLastDecisionIsUndone: a vote, and a decision that was already made, end the undo of the decision before.
func TestOnlyTheLastDecisionIsUndone(t *testing.T) {
	t.Parallel()
	for _, code := range []string{gatehouse.VoteRecorded, gatehouse.AlreadyApproved} {
		m := testReviewer(t)
		m.held = []string{"act_1"}
		it := m.items[1]
		m.Update(answered{draft: &draft{item: it, decision: gatehouse.Decision{Decision: gatehouse.Approve}},
			answer: &gatehouse.Answer{Code: code, Action: it.action}})
		if press(m, "u") != nil || m.busy || !strings.Contains(m.message, "nothing to undo") {
			t.Errorf("%s: held %v: %s", code, m.held, m.message)
		}
	}
}

// TestUndoneCountsThePending: after a bulk undo, an action that the policy denies now does not count as pending.
func TestUndoneCountsThePending(t *testing.T) {
	t.Parallel()
	denied := &gatehouse.Action{ID: "act_4", Status: gatehouse.StatusDenied}
	pending := &gatehouse.Action{ID: "act_5", Status: gatehouse.StatusPending}
	for want, next := range map[string][]*gatehouse.Action{
		"Undone: 2 actions, of which 1 action is pending again.": {denied, pending},
		"Undone: 2 actions are pending again.":                   {pending, pending},
	} {
		m := testReviewer(t)
		m.Update(undone{ids: []string{"act_1", "act_2"}, next: next})
		if m.message != want {
			t.Errorf("%q, want %q", m.message, want)
		}
	}
}

// TestShortIDOfDigits: a short id is not taken for the number of a card.
func TestShortIDOfDigits(t *testing.T) {
	t.Parallel()
	for where, asks := range map[string]bool{"01993512": true, "2": false, "9": false} {
		m := testReviewer(t)
		m.askWhere()
		for _, k := range where {
			press(m, string(k))
		}
		m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		if m.busy != asks {
			t.Errorf("%s asks the server: %v; %q", where, m.busy, m.message)
		}
	}
}

// TestAnswersAreBounded: what is typed or pasted beyond the longest answer is not taken.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	m := testReviewer(t)
	m.ask(question{text: "Why?"})
	full := strings.Repeat("x", gatehouse.MaxNotesBytes)
	m.Update(tea.PasteMsg{Content: full[1:]})
	press(m, "é") // two bytes, with room for one
	if m.input != full[1:] {
		t.Fatalf("%d bytes, want %d", len(m.input), len(full)-1)
	}
	press(m, "x", "y")
	m.Update(tea.PasteMsg{Content: "z"})
	if m.input != full || !strings.Contains(m.View().Content, "The pasted text is too long") {
		t.Errorf("%d bytes, want %d; the screen is\n%s", len(m.input), len(full), m.View().Content)
	}
}

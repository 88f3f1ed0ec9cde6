package tui

import (
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// inertFor is how long the deciding keys are inert after a card appears or shows a new warning about
// its target, so that a key meant for the earlier screen does not decide.
const inertFor = 400 * time.Millisecond

// reviewer is the state of the program: the inbox's cards, and the person's position.
type reviewer struct {
	g       *term.IO
	me      *gatehouse.Principal
	api     Service
	connect func(token string) (Service, error)
	given   string // the edit token that api sends
	now     func() time.Time
	yes     bool
	color   bool   // whether the cards have colors: yes if stdout or stderr has colors
	token   string // given, or typed later; "" if it must be asked for

	// standings are the delegations to this person that were in force when they were read.
	standings []gatehouse.Standing

	filter gatehouse.ActionFilter
	more   bool // there are more pages
	items  []*item
	others int // actions that this person cannot decide
	at     int // the person's position in items; len(items) is the end of the list
	place  place
	going  bool       // g was typed, and a letter follows
	bulk   *selection // the selection on the onBulk page

	width, height int
	page          page
	top, seen     int // the first line on the screen; how many lines from the first on were shown, without a gap
	why, whole    bool
	help          bool
	armed         bool
	cards         int // counts the periods in which the deciding keys are inert

	questions []question
	draft     *draft
	input     string
	busy      bool
	message   string
	style     string
	held      []string // the last decisions, while they may be undone
	outcomes  []outcome
}

// item is an action of the inbox.
type item struct {
	action *gatehouse.Action
	voted  bool // by this person; the quorum is still open, or the rejection is held
	// mayAcknowledge is true if its target changed, and it can be approved nonetheless.
	mayAcknowledge bool
	// mayRebase is true if its target changed, and the gate can propose it on the present state.
	mayRebase bool
	target    sheet.Target
	preview   sheet.Preview
	// commentsErr is the reason why the comments on the action could not be read.
	commentsErr error
	picked      bool // for a decision in bulk
}

// armMsg ends the inert period with this number.
type armMsg int

// Init shows the first card.
func (m *reviewer) Init() tea.Cmd { return m.appear() }

// Update handles a message.
func (m *reviewer) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.layout()
	case tea.KeyPressMsg:
		if len(m.questions) > 0 {
			return m, m.answer(msg)
		}
		return m, m.key(msg.String())
	case tea.PasteMsg:
		m.paste(msg.Content)
	case targetRead:
		return m, m.targetArrived(msg)
	case previewRead:
		return m, m.previewArrived(msg)
	case commentsRead:
		m.commentsArrived(msg)
	case armMsg:
		m.armed = m.armed || int(msg) == m.cards
	case loaded:
		m.busy = false
		return m, m.arrived(msg)
	case answered:
		m.busy = false
		return m, m.settled(msg)
	case bulkAnswered:
		m.busy = false
		return m, m.bulkSettled(msg)
	case found:
		m.busy = false
		return m, m.open(msg)
	case undone:
		m.busy = false
		return m, m.tookBack(msg)
	case edited:
		m.onEdited(msg)
	case rebased:
		m.busy = false
		return m, m.onRebased(msg)
	case revisionAnswered:
		m.busy = false
		return m, m.onRevised(msg)
	}
	return m, nil
}

// appear shows the card at the person's position.
func (m *reviewer) appear() tea.Cmd {
	m.top, m.seen, m.whole = 0, 0, false
	m.layout()
	return tea.Batch(m.disarm(), m.readTarget(), m.askPreview(), m.readComments())
}

// layout lays out the page at the person's position.
func (m *reviewer) layout() {
	seen := m.page.lines[:min(m.seen, len(m.page.lines))]
	m.page = page{}
	switch {
	case m.place == onList:
		m.page = m.listPage()
	case m.place == onBulk:
		m.page = m.bulkPage()
	case m.at < len(m.items):
		a := m.items[m.at].action
		m.page = cardPage(a, view{
			width: max(m.width-1, minColumns), color: m.color, why: m.why, whole: m.whole, now: m.now(),
			answersFor: m.answersFor(a), target: m.items[m.at].target, preview: m.items[m.at].preview,
			commentsErr: m.items[m.at].commentsErr,
			// At L5, nobody sees the votes of others before voting.
			silent: a.Status == gatehouse.StatusPending && a.RiskLevel >= gatehouse.L5 && !m.items[m.at].voted,
		})
	}
	m.seen = min(sameLines(seen, m.page.lines), m.top)
	m.scroll(0)
}

// sameLines counts the lines that two pages have in common at their beginnings.
func sameLines(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// minColumns is the least width of a card. The screen must be wider than that, and at least minRows
// high.
const (
	minColumns = 16
	minRows    = 8
)

// small reports whether the screen is too small to decide on.
func (m *reviewer) small() bool { return m.width <= minColumns || m.height < minRows }

// scroll moves the screen by a number of lines.
func (m *reviewer) scroll(by int) {
	m.top = max(0, min(m.top+by, len(m.page.lines)-m.body()))
	if m.top <= m.seen && !m.help && !m.small() {
		// Otherwise the scroll has jumped over lines that were not shown, and seen stays.
		m.seen = max(m.seen, min(m.top+m.body(), len(m.page.lines)))
	}
}

// scrollOn shows the next lines; after a jump, the first lines of the payload that were not shown.
func (m *reviewer) scrollOn() {
	if m.seen < min(m.top, m.page.payload) {
		m.scroll(m.seen - m.top)
		return
	}
	m.scroll(m.body() - 1)
}

// unseen says how many lines of the payload were not shown yet, "" for none.
func (m *reviewer) unseen() string {
	what, n := "change", m.page.payload-m.seen
	if m.place == onBulk {
		what = "selection"
	}
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%s of the %s not yet seen: space shows more.", term.Count(n, "line"), what)
}

// jump scrolls to the next change, or the previous one.
func (m *reviewer) jump(by int) {
	last := len(m.page.lines) - m.body()
	i, _ := slices.BinarySearch(m.page.hunks, m.top)
	switch {
	case by < 0:
		i--
	case i < len(m.page.hunks) && m.page.hunks[i] == m.top:
		i++
	}
	if i < 0 || i >= len(m.page.hunks) || m.page.hunks[i] > last && m.top == max(last, 0) {
		m.say("", "No other change in that direction.")
		return
	}
	m.say("", "")
	m.scroll(m.page.hunks[i] - m.top)
}

// move goes to another card.
func (m *reviewer) move(by int) tea.Cmd {
	if m.busy || m.place == onBulk || m.at+by < 0 || m.at+by > len(m.items) {
		return nil
	}
	m.say("", "")
	if m.place == onList && (m.at+by < len(m.items) || !m.more) {
		m.at = min(m.at+by, len(m.items)-1)
		m.layout()
		return nil
	}
	return m.to(m.at + by)
}

// to shows a card; past the last one, it also loads the next page.
func (m *reviewer) to(at int) tea.Cmd {
	m.at = at
	if at == len(m.items) && m.more {
		m.busy = true
		return tea.Batch(m.appear(), func() tea.Msg { return m.load() })
	}
	return m.appear()
}

// next goes to the next card that is not decided yet.
func (m *reviewer) next() tea.Cmd { return m.nextFrom(m.at + 1) }

func (m *reviewer) nextFrom(at int) tea.Cmd {
	for at < len(m.items) && (m.items[at].voted || m.items[at].action.Status != gatehouse.StatusPending) {
		at++
	}
	return m.to(min(at, len(m.items)))
}

// reload reads the inbox again from its first page, for new cards. Loaded cards stay as they are.
func (m *reviewer) reload() tea.Cmd {
	if m.busy {
		return nil
	}
	m.filter.Cursor, m.busy = "", true
	m.say("", "")
	return func() tea.Msg { return m.load() }
}

// loaded is a page of the inbox; anew marks the first page of another filter.
type loaded struct {
	page   gatehouse.Page[*gatehouse.Action]
	err    error
	filter gatehouse.ActionFilter
	anew   bool
	// standings are nil if a further page was read.
	standings []gatehouse.Standing
}

func (m *reviewer) load() loaded { return m.loadBy(m.filter) }

func (m *reviewer) loadBy(f gatehouse.ActionFilter) loaded {
	out := loaded{filter: f}
	if f.Cursor == "" {
		if out.standings, out.err = m.standing(); out.err != nil {
			return out
		}
	}
	out.page, out.err = m.api.ListActions(m.g.Ctx, f)
	return out
}

// standing reads the delegations to this person that are in force. A server without delegations
// has none.
func (m *reviewer) standing() ([]gatehouse.Standing, error) {
	list, err := m.api.ListDelegations(m.g.Ctx)
	if err != nil && gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		return nil, err
	}
	standings := []gatehouse.Standing{}
	for _, d := range list {
		if s, ok := d.Standing(); ok && d.To == m.me.ID {
			standings = append(standings, s)
		}
	}
	return standings, nil
}

// take adds the actions of a page that this person can decide.
func (m *reviewer) take(l loaded) (added int) {
	if l.standings != nil {
		m.standings = l.standings
	}
	for _, a := range l.page.Items {
		known := slices.ContainsFunc(m.items, func(it *item) bool { return it.action.ID == a.ID })
		switch {
		case known:
		case !m.mine(a):
			m.others++
		default:
			m.items = append(m.items, &item{action: a})
			added++
		}
	}
	m.filter.Cursor, m.more = l.page.NextCursor, l.page.NextCursor != ""
	return added
}

// mine reports whether this person can still decide an action, by their own right or by a
// delegation.
func (m *reviewer) mine(a *gatehouse.Action) bool {
	p := a.Approval
	if p == nil || (card.Person{ID: m.me.ID, Person: m.me.Person, Name: m.me.Name}).In(p.Excluded) ||
		p.VoteOf(m.me.Person) != nil {
		return false
	}
	return p.Asks(m.me, m.now()) || len(m.answersFor(a)) > 0
}

// answersFor names the people on whose behalf this person can decide an action, by delegation; none
// if the action asks this person. It leaves out people who have voted, and people for whom another
// delegate has voted.
func (m *reviewer) answersFor(a *gatehouse.Action) (names []string) {
	p := a.Approval
	if p == nil || p.Asks(m.me, m.now()) {
		return nil
	}
	for _, from := range a.StandsFor(m.me, m.standings, m.now()) {
		used := slices.ContainsFunc(
			p.Votes,
			func(v gatehouse.Vote) bool { return v.For == from.ID && v.Person != m.me.Person },
		)
		if p.VoteOf(from.Person) == nil && !used && !slices.Contains(names, from.Name) {
			names = append(names, from.Name)
		}
	}
	return names
}

func (m *reviewer) arrived(l loaded) tea.Cmd {
	if l.err != nil {
		m.say(term.Red, "The list could not be read: "+errorText(l.err, m.now())+" (r tries again)")
		return nil
	}
	if l.anew {
		m.filter, m.items, m.others, m.at = l.filter, nil, 0, 0
	}
	if m.take(l) == 0 && m.more {
		m.busy = true
		return func() tea.Msg { return m.load() }
	}
	return m.appear()
}

// say sets the message below the card.
func (m *reviewer) say(style, text string) { m.style, m.message = style, text }

// position returns the person's position, such as "2 of 9+".
func (m *reviewer) position() string {
	more := ""
	if m.more {
		more = "+"
	}
	return fmt.Sprintf("%d of %d%s", m.at+1, len(m.items), more)
}

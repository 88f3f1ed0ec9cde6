package console

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

func (c *Console) inboxRoutes() []route {
	return []route{
		{pattern: "GET /inbox", handle: c.inbox},
		{pattern: "GET /inbox/new", background: true, handle: c.inboxNew},
		{pattern: "GET /inbox/states", background: true, handle: c.inboxStates},
		{pattern: "GET /inbox/done", background: true, handle: c.inboxDone},
		{pattern: "GET /inbox/bulk", roles: []gatehouse.Role{gatehouse.RoleApprover}, handle: c.bulkPage},
		{pattern: "POST /inbox/bulk", roles: []gatehouse.Role{gatehouse.RoleApprover}, handle: c.bulkDecide},
		{pattern: "POST /inbox/undo", roles: []gatehouse.Role{gatehouse.RoleApprover}, handle: c.bulkUndo},
	}
}

// inboxRow is an action in the list.
type inboxRow struct {
	line
	a       *gatehouse.Action
	viewers []string // the other people who have the action open
	bulk    bool     // may be decided in bulk
	voted   bool     // this person has voted
	isOpen  bool
	// alikeKey is the key that alike rows of the page share, and alikeCount their number; see markAlike.
	alikeKey   string
	alikeCount int
	// foldID is the id of the fold that contains the row, "" for none.
	foldID string
}

// inboxPage holds everything that the inbox shows.
type inboxPage struct {
	q    inboxQuery
	rows []inboxRow
	next string // the cursor of the next page
	// detail is the open action, nil for none; done is the action decided last.
	detail *actionPage
	done   *gatehouse.Action
	fresh  freshCount
	views  []*gatehouse.SavedView
	tally  tally
	// known are the values that the filters suggest: those of the listed and the pending actions.
	known known
}

// freshCount counts the proposals that came after the list's snapshot.
type freshCount struct {
	n    int
	more bool // there may be more than n
}

const (
	// enoughRows is the number of rows at which a page reads no further pages of the store. A page of
	// the store is used whole, because its next cursor points past its end. So a page of the inbox has
	// fewer than enoughRows + DefaultLimit rows.
	enoughRows = 40
	// maxStorePages limits the search for rows that this person may decide.
	maxStorePages = 8
)

// inbox shows the list and the open action beside it.
func (c *Console) inbox(v *view) error {
	q := readInboxQuery(v.r.URL.Query())
	p := &inboxPage{q: q}
	var err error
	if q.Open != "" {
		if p.detail, err = c.openAction(v, q.Open, v.query("read") != ""); err != nil {
			return err
		}
		p.detail.back = q.with("").url()
		p.detail.next = q.with("")
		if v.query("read") != "" {
			c.askPreview(v, p.detail)
		}
	}
	if q.Done != "" {
		if p.done, err = c.cfg.Actions.FindAction(v.ctx, q.Done); err != nil &&
			gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
			return err
		}
	}
	v.wide = true
	if v.wantsDetail() {
		v.w.Header().Set("HX-Push-Url", q.with(q.Open).url())
		return v.write(http.StatusOK, inboxDetail(v, p))
	}
	if err = c.list(v, p); err != nil {
		return err
	}
	p.freeze(v.now)
	p.known = make(known)
	if p.tally, err = c.count(v, q, p.known.action); err != nil {
		return err
	}
	for _, row := range p.rows {
		p.known.action(row.a)
	}
	p.markAlike(v.now)
	p.setPlace()
	title := "Inbox"
	if !q.history() {
		title = "(" + p.tally.of(q.Tab) + ") Inbox"
	}
	return v.render(http.StatusOK, title, "/inbox", inboxView(v, p))
}

// setPlace sets the position of the open action in the list: "12 of 38".
func (p *inboxPage) setPlace() {
	for i, row := range p.rows {
		if row.isOpen && !p.q.history() {
			p.detail.place = placeText(p.q.Skip+i+1, p.total())
		}
	}
}

func placeText(n int, total string) string { return strconv.Itoa(n) + " of " + total }

// total is the number of rows over all pages of the list, as of its snapshot.
func (p *inboxPage) total() string {
	if p.next == "" {
		return strconv.Itoa(p.q.Skip + len(p.rows))
	}
	return p.tally.of(p.q.Tab)
}

// freeze fixes the time of the list's snapshot.
func (p *inboxPage) freeze(now time.Time) {
	if !p.q.Snap.IsZero() {
		return
	}
	p.q.Snap = now
	for _, row := range p.rows {
		// The store's clock may be ahead of this process's clock.
		if row.a.ProposedAt.After(p.q.Snap) {
			p.q.Snap = row.a.ProposedAt
		}
	}
	p.q.Snap = p.q.Snap.Truncate(time.Microsecond)
}

// watched is the query with which an open page asks for new rows. An empty page shows new rows at once, unless
// an action is open or a filter is set.
func (p *inboxPage) watched() inboxQuery {
	q := p.q.with("")
	q.Empty = len(p.rows) == 0 && p.detail == nil && !p.q.filtered()
	return q
}

// list fills in the rows of a page, the cursor of the next page, and the saved views.
func (c *Console) list(v *view, p *inboxPage) error {
	f := v.filter(p.q)
	page, views, err := c.cfg.Views.Inbox(v.ctx, f)
	if err != nil {
		return err
	}
	p.views = views
	for n := 1; ; n++ {
		for _, a := range page.Items {
			if c.listed(v, p.q, a) {
				p.rows = append(p.rows, c.inboxRow(v, p.q, a))
			}
		}
		if page.NextCursor == "" || len(p.rows) >= enoughRows || n == maxStorePages {
			p.next = page.NextCursor
			return nil
		}
		f.Cursor = page.NextCursor
		if page, err = c.cfg.Actions.ListActions(v.ctx, f); err != nil {
			return err
		}
	}
}

// listed reports whether the tab lists an action, as of the snapshot.
func (c *Console) listed(v *view, q inboxQuery, a *gatehouse.Action) bool {
	if !q.within(a) {
		return false
	}
	if q.history() {
		return q.Tab == tabAll || !awaits(a)
	}
	if !awaits(a) || !q.Snap.IsZero() && a.ProposedAt.After(q.Snap) {
		return false
	}
	return q.Tab == tabTeam || v.mayDecide(a) == nil && v.snoozedUntil(a.ID).IsZero() != q.Snoozed
}

func (c *Console) inboxRow(v *view, q inboxQuery, a *gatehouse.Action) inboxRow {
	row := inboxRow{
		a: a, isOpen: a.ID == q.Open, viewers: c.presence.others(a.Tenant, a.ID, v.person.Name, v.now),
	}
	row.line = rowOf(a)
	if a.Approval != nil {
		row.voted = a.Approval.VoteOf(v.person.Person) != nil
	}
	row.bulk = awaits(a) && !a.RiskLevel.NeedsConfirmation() && row.claim == "" && v.mayDecide(a) == nil
	return row
}

// mayDecide returns why the person cannot decide an action: nil when the question is open to them
// and they have not answered yet.
func (v *view) mayDecide(a *gatehouse.Action) error {
	switch {
	case a.Status == gatehouse.StatusExpired:
		return gatehouse.E(gatehouse.CodeExpired, "nobody decided in time")
	case heldRejection(a):
		held, _ := a.HeldRejection()
		return gatehouse.E(gatehouse.CodeAlreadyDecided, "%s has rejected it", held.Name)
	case a.Approval == nil, a.Status != gatehouse.StatusPending:
		return gatehouse.E(gatehouse.CodeAlreadyDecided, "it is %s", a.Status)
	}
	if err := gate.MayAnswer(a.Approval, v.person, v.now); err != nil && len(v.standsFor(a)) == 0 {
		return err
	}
	if own := a.Approval.VoteOf(v.person.Person); own != nil {
		return gatehouse.E(gatehouse.CodeAlreadyVoted, "you have voted: %s", own.Decision)
	}
	return nil
}

// inboxNew reports how many proposals have come since the list was made.
func (c *Console) inboxNew(v *view) error {
	q := readInboxQuery(v.r.URL.Query())
	fresh, err := c.countFresh(v, q)
	if err != nil {
		return err
	}
	if q.Empty && fresh.n > 0 {
		v.w.Header().Set("HX-Redirect", q.firstPageQuery().url())
	}
	return v.write(http.StatusOK, freshPill(q, fresh))
}

// inboxDone reports the progress of the action that was decided last.
func (c *Console) inboxDone(v *view) error {
	p := &inboxPage{q: readInboxQuery(v.r.URL.Query())}
	var err error
	if p.done, err = c.cfg.Actions.FindAction(v.ctx, p.q.Done); err != nil {
		return err
	}
	return v.write(http.StatusOK, doneNotice(v, p))
}

// countFresh counts the rows that a list without a snapshot would add. It reads one page, newest first.
func (c *Console) countFresh(v *view, q inboxQuery) (freshCount, error) {
	var count freshCount
	if q.Snap.IsZero() || q.history() {
		return count, nil
	}
	f := v.filter(q)
	f.Sort, f.Status, f.Cursor = gatehouse.SortNewest, gatehouse.StatusPending, ""
	page, err := c.cfg.Actions.ListActions(v.ctx, f)
	if err != nil {
		return count, err
	}
	count.more = page.NextCursor != ""
	unfrozen := q
	unfrozen.Snap = time.Time{}
	for _, a := range page.Items {
		if !a.ProposedAt.After(q.Snap) {
			count.more = false
			break
		}
		if c.listed(v, unfrozen, a) {
			count.n++
		}
	}
	return count, nil
}

// wantsDetail reports whether a script asks for the open action alone.
func (v *view) wantsDetail() bool {
	return v.r.Header.Get("HX-Request") == "true" && strings.HasSuffix(v.r.Header.Get("HX-Target"), "#detail")
}

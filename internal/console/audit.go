package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// LogChecker verifies the whole log of the caller's tenant.
type LogChecker interface {
	CheckLog(ctx context.Context) (*gatehouse.LogCheck, error)
}

func (c *Console) auditRoutes() []route {
	auditors := []gatehouse.Role{gatehouse.RoleAuditor}
	return []route{
		{pattern: "GET /audit", roles: auditors, handle: c.audit},
		{pattern: "GET /audit/export", roles: auditors, handle: c.exportAudit},
		{pattern: "POST /audit/check", roles: auditors, handle: c.checkLog},
	}
}

// auditPage is a range of the log, or the entries that a search found, newest entry first.
type auditPage struct {
	q    auditQuery
	head *gatehouse.LogHead
	rows []auditRow
	// action is the id of the action whose entries the page shows, "" for the whole log.
	action string
	// names maps ids of principals to their names. actions maps ids of actions to their short
	// descriptions.
	names   map[string]string
	actions map[string]card.Phrase
	// older and newer are the URLs of the neighbouring pages, "" for none; with a filter, newer is the
	// newest page. searched is the index at which an unfinished search stopped, 0 for none.
	older, newer string
	searched     int64
	checked      *gatehouse.LogCheck
	checkedAt    time.Time
	took         time.Duration
	// known are the values that the filters suggest.
	known known
}

func (c *Console) audit(v *view) error {
	p, err := c.auditPage(v)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "Audit", "/audit", auditView(v, p))
}

func (c *Console) auditPage(v *view) (p *auditPage, err error) {
	p = &auditPage{}
	if p.q, err = readAuditQuery(v.r.URL.Query()); err != nil {
		return nil, err
	}
	if p.head, err = c.cfg.Audit.Head(v.ctx); err != nil {
		return nil, err
	}
	s, err := c.newAuditSearch(v, p.q)
	if err != nil {
		return nil, err
	}
	p.action = s.action
	// The page begins with the requested entry, else with the log's newest one. end is one more than its number.
	end := p.head.Size
	if n, ok := p.q.number(); ok {
		end = min(n, p.head.Size-1) + 1
	}
	if p.q.Before >= 0 {
		end = p.q.Before
	}
	end = max(0, min(end, p.head.Size))
	rows, next, err := s.newest(end, auditRows, searchedRows)
	if err != nil {
		return nil, err
	}
	p.rows = rows
	if next > 0 {
		p.older = p.q.page(next)
		if len(rows) < auditRows {
			p.searched = next
		}
	}
	switch {
	case end == p.head.Size:
	case p.q.filtered():
		p.newer = p.q.page(-1)
	default:
		p.newer = p.q.page(end + auditRows)
	}
	if err := p.findNames(c, v); err != nil {
		return nil, err
	}
	p.known = make(known)
	p.known.add("by", gatehouseName)
	for _, row := range p.rows {
		p.known.add("by", cmp.Or(p.names[row.leaf.Actor], row.leaf.Actor))
	}
	return p, p.describe(c, v)
}

// findNames looks up the names of the acting and the affected principals. An auditor may see every
// principal's name, because the log contains them. An id without a principal is shown as it is.
func (p *auditPage) findNames(c *Console, v *view) error {
	p.names = map[string]string{v.person.ID: v.person.Name}
	for _, row := range p.rows {
		for _, id := range []string{row.leaf.Actor, row.leaf.Subject, row.data["principal"]} {
			if _, known := p.names[id]; known || !strings.HasPrefix(id, "prn_") {
				continue
			}
			who, err := c.cfg.Admin.FindPrincipal(v.ctx, id)
			switch {
			case err == nil:
				p.names[id] = who.Name
			case gatehouse.CodeOf(err) == gatehouse.CodeNotFound:
				p.names[id] = ""
			default:
				return err
			}
		}
	}
	return nil
}

// describe looks up the short descriptions of the entries' actions.
func (p *auditPage) describe(c *Console, v *view) error {
	var ids []string
	for _, row := range p.rows {
		if id := row.leaf.ActionID; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	found, err := c.cfg.Finder.FindActions(v.ctx, ids)
	p.actions = make(map[string]card.Phrase, len(found))
	for id, a := range found {
		p.actions[id] = shortOf(a)
	}
	return err
}

// checkLog verifies the log now and shows the result.
func (c *Console) checkLog(v *view) error {
	began := time.Now()
	checked, err := c.cfg.LogChecker.CheckLog(v.ctx)
	if err != nil {
		return err
	}
	p, err := c.auditPage(v)
	if err != nil {
		return err
	}
	p.checked, p.checkedAt, p.took = checked, v.now, time.Since(began)
	return v.render(http.StatusOK, "Audit", "/audit", auditView(v, p))
}

// headText is the head in the format of "audit head --json", for the reader to save elsewhere.
func headText(h *gatehouse.LogHead) string {
	b, err := json.Marshal(h)
	if err != nil {
		return ""
	}
	return string(b)
}

func rootText(h gatehouse.Hash) string {
	b, err := h.MarshalText()
	if err != nil {
		return ""
	}
	return string(b)
}

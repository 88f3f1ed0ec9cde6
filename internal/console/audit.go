package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// LogChecker verifies the whole log of the caller's tenant.
type LogChecker interface {
	CheckLog(ctx context.Context) (*gatehouse.LogCheck, error)
}

func (c *Console) auditRoutes() []route {
	auditors := []gatehouse.Role{gatehouse.RoleAuditor}
	return []route{
		{pattern: "GET /audit", roles: auditors, handle: c.audit},
		{pattern: "POST /audit/check", roles: auditors, handle: c.checkLog},
	}
}

// auditRows is the number of entries per page.
const auditRows = 50

// auditPage is a range of the log, newest entry first, or all entries of one action.
type auditPage struct {
	head *gatehouse.LogHead
	rows []auditRow
	// subject is the id of the action whose entries the page shows, "" for the whole log.
	subject string
	// names maps the ids of acting and affected principals to their names.
	names map[string]string
	// older and newer are the URLs of the neighbouring pages, "" for none.
	older, newer string
	checked      *gatehouse.LogCheck
	checkedAt    time.Time
	took         time.Duration
}

// auditRow is an entry with its parsed leaf.
type auditRow struct {
	entry *gatehouse.Entry
	leaf  gatehouse.Leaf
}

func (c *Console) audit(v *view) error {
	p, err := c.auditPage(v)
	if err != nil {
		return err
	}
	p.name(c, v)
	return v.render(http.StatusOK, "Audit", "/audit", auditView(v, p))
}

func (c *Console) auditPage(v *view) (*auditPage, error) {
	p := &auditPage{}
	var err error
	if p.head, err = c.cfg.Audit.Head(v.ctx); err != nil {
		return nil, err
	}
	q := v.query("q")
	at, notNumber := strconv.ParseInt(q, 10, 64)
	if q != "" && notNumber != nil {
		return p, p.readSubject(c, v, q)
	}
	// The page ends with the requested entry, else with the newest one.
	end := p.head.Size
	if q != "" {
		end = at + 1
	}
	if before := v.query("before"); before != "" {
		if end, err = strconv.ParseInt(before, 10, 64); err != nil {
			return nil, gatehouse.E(gatehouse.CodeInvalid, "before is the number of an entry")
		}
	}
	end = max(0, min(end, p.head.Size))
	from := max(0, end-auditRows)
	entries, err := c.cfg.Audit.ListEntries(v.ctx, from, auditRows)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Index < end {
			p.rows = append(p.rows, readEntry(e))
		}
	}
	slices.Reverse(p.rows)
	if from > 0 {
		p.older = auditPath(from)
	}
	if end < p.head.Size {
		p.newer = auditPath(end + auditRows)
	}
	return p, nil
}

// readSubject reads all entries of one action.
func (p *auditPage) readSubject(c *Console, v *view, id string) error {
	evidence, err := c.cfg.Actions.Evidence(v.ctx, id)
	if err != nil {
		return err
	}
	p.subject = evidence.Action.ID
	for _, e := range evidence.Entries {
		p.rows = append(p.rows, readEntry(e))
	}
	slices.Reverse(p.rows)
	return nil
}

// name looks up the names of the acting and the affected principals. An auditor may see every
// principal's name, because the log contains them. An id without a principal is shown as it is.
func (p *auditPage) name(c *Console, v *view) {
	p.names = map[string]string{v.person.ID: v.person.Name}
	for _, row := range p.rows {
		for _, id := range []string{row.leaf.Actor, row.leaf.Subject} {
			if _, known := p.names[id]; known || !strings.HasPrefix(id, "prn_") {
				continue
			}
			p.names[id] = ""
			if who, err := c.cfg.Admin.FindPrincipal(v.ctx, id); err == nil {
				p.names[id] = who.Name
			}
		}
	}
}

// readEntry parses the leaf from the hashed bytes. A leaf that cannot be parsed is shown as raw
// text.
func readEntry(e *gatehouse.Entry) auditRow {
	row := auditRow{entry: e}
	if err := json.Unmarshal([]byte(e.Body), &row.leaf); err != nil {
		row.leaf = gatehouse.Leaf{Type: "unreadable"}
	}
	return row
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
	p.name(c, v)
	p.checked, p.checkedAt, p.took = checked, v.now, time.Since(began)
	return v.render(http.StatusOK, "Audit", "/audit", auditView(v, p))
}

// auditPath is the URL of the page that ends before an entry.
func auditPath(before int64) string {
	return "/audit?" + url.Values{"before": {strconv.FormatInt(before, 10)}}.Encode()
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

// transition formats the states of a leaf, as "pending → approved".
func transition(l gatehouse.Leaf) string {
	if l.From == "" && l.To == "" || l.From == l.To {
		return ""
	}
	return strings.TrimSpace(l.From + " → " + l.To)
}

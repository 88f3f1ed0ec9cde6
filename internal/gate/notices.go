package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.NoticeService = (*Gate)(nil)

// maxDismissed bounds the notices of one request.
const maxDismissed = 200

// author is the principal, or the program, that changes rights or rules.
type author struct {
	id, name, tenant string
	via              gatehouse.Channel
	// across is set when the author's tenant may differ from the tenant of the
	// change.
	across gatehouse.Queues
}

func authorOf(c *gatehouse.Caller) author {
	return author{id: c.Principal.ID, name: c.Principal.Name, tenant: c.Principal.Tenant, via: c.Via}
}

// authorAcross is authorOf for a change that may be in another tenant.
func authorAcross(c *gatehouse.Caller, q gatehouse.Queues) author {
	a := authorOf(c)
	a.across = q
	return a
}

// initAuthor is the server itself: it sets up new tenants, which have nobody to
// notify yet, and makes missing keys and reviews, which need no notice.
const initAuthor = "init"

// change is one change of rights or rules: its log entry and the text of its
// notice.
type change struct {
	// tenant, kind and subject are the log entry's.
	tenant, kind, subject string
	// name is the name of the subject, detail says what changed.
	name, detail string
	// data is further data of the log entry.
	data map[string]any
}

// recordChange writes the log entry of a change of rights or rules, and the notice that
// every administrator of the tenant sees until they dismiss it. When the author
// belongs to another tenant, the entry names that tenant, which also gets an entry
// and a notice.
func recordChange(tx changeRecorder, by author, c change) error {
	data := make(map[string]any, len(c.data)+2)
	for name, value := range c.data {
		data[name] = value
	}
	if by.via != "" {
		data["via"] = by.via
	}

	from := ""
	if by.tenant != "" && by.tenant != c.tenant {
		from = by.tenant
		data["from_tenant"] = from
	}

	l := &gatehouse.Leaf{Tenant: c.tenant, Type: c.kind, Subject: c.subject, Actor: by.id}
	if len(data) > 0 {
		l.Data = usecase.Object(data)
	}
	if err := tx.AppendLeaf(l); err != nil {
		return err
	}
	if by.id != initAuthor {
		if err := tx.InsertNotice(notice(tx, by, c, c.tenant, from)); err != nil {
			return err
		}
	}

	if from == "" {
		return nil
	}
	// The log of the author's tenant also records the act, under another type,
	// because nothing changed in that tenant.
	there := &gatehouse.Leaf{
		Tenant: from, Type: "tenant.acted", Subject: c.tenant, Actor: by.id,
		Data: usecase.Object(map[string]any{"act": c.kind, "subject": c.subject, "name": c.name, "via": by.via}),
	}
	if by.across == nil {
		return gatehouse.ErrOtherTenant
	}

	home := by.across.In(from)
	defer by.across.In(c.tenant) // back to the tenant of the change
	if err := home.AppendLeaf(there); err != nil {
		return err
	}
	c.detail = joined("in tenant "+c.tenant, c.detail)
	return home.InsertNotice(notice(home, by, c, from, ""))
}

func notice(tx gatehouse.Clock, by author, c change, tenant, from string) *gatehouse.Notice {
	return &gatehouse.Notice{
		ID: NewID("ntc"), Tenant: tenant, At: tx.Now(), Kind: c.kind, Subject: c.subject, SubjectName: c.name,
		Actor: by.id, ActorName: by.name, Via: by.via, FromTenant: from, Detail: c.detail,
	}
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// rightsText lists a principal's rights, for a notice.
func rightsText(p *gatehouse.Principal) string {
	s := "roles: " + joinWords(p.Roles)
	if p.Disabled {
		s = joined(s, "disabled")
	}
	return s
}

func joinWords[T ~string](words []T) string {
	s := ""
	for i, w := range words {
		if i > 0 {
			s += ", "
		}
		s += string(w)
	}
	return s
}

// ListNotices returns the changes of rights and rules since the caller was created,
// newest first. It leaves out those that the caller has dismissed, unless f.All is set.
func (g *Gate) ListNotices(
	ctx context.Context, f gatehouse.NoticeFilter,
) (page gatehouse.Page[*gatehouse.Notice], err error) {
	if _, err := admin(ctx); err != nil {
		return page, err
	}
	err = g.View(ctx, "notice", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		page, err = tx.ListNotices(c.Principal.ID, c.Principal.CreatedAt, f)
		return err
	})
	return page, err
}

// DismissNotices hides notices from the caller only.
func (g *Gate) DismissNotices(ctx context.Context, ids []string) (dismissed int, err error) {
	c, err := admin(ctx)
	if err != nil {
		return 0, err
	}
	if len(ids) == 0 || len(ids) > maxDismissed {
		return 0, gatehouse.Violations{{Pointer: "/ids", Detail: "must name 1 to 200 notices"}}.Err()
	}
	err = g.Do(ctx, c, func(tx gatehouse.Tx) error {
		dismissed = 0
		for _, id := range ids {
			hidden, err := tx.DismissNotice(c.Principal.ID, id)
			if err != nil {
				return err
			}
			if hidden {
				dismissed++
			}
		}
		return nil
	})
	return dismissed, err
}

package console

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Views stores the caller's saved views.
type Views interface {
	// Inbox is ListActions together with the person's saved views, which saves a round trip.
	Inbox(ctx context.Context, f gatehouse.ActionFilter) (gatehouse.Page[*gatehouse.Action], []*gatehouse.SavedView, error)
	// SaveView stores a view, replacing one of the same name.
	SaveView(ctx context.Context, name, query string) error
	DeleteView(ctx context.Context, name string) error
}

func (c *Console) viewRoutes() []route {
	return []route{
		{pattern: "POST /inbox/views", handle: c.saveView},
		{pattern: "POST /inbox/views/delete", handle: c.deleteView},
	}
}

// kept returns the part of the query that a saved view keeps: the filters except the time, without
// the snapshot, the page and the open action.
func (q inboxQuery) kept() inboxQuery {
	k := inboxQuery{Tab: q.Tab, Type: q.Type, Risk: q.Risk, By: q.By, Group: q.Group, Text: q.Text, Assignee: q.Assignee,
		Snoozed: q.Snoozed}
	if q.history() {
		k.Status, k.Decided = q.Status, q.Decided
	}
	return k
}

// keptFrom parses a stored or posted query, without the parts that a saved view does not keep.
func keptFrom(query string) inboxQuery {
	values, err := url.ParseQuery(query)
	if err != nil {
		values = nil
	}
	return readInboxQuery(values).kept()
}

func (c *Console) saveView(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	q := keptFrom(v.form("query"))
	// A name has one line, so that the form that deletes the view can send it back unchanged.
	name := strings.Join(strings.Fields(v.form("name")), " ")
	if err := c.cfg.Views.SaveView(v.ctx, name, q.values().Encode()); err != nil {
		return err
	}
	return v.redirect(q.url())
}

func (c *Console) deleteView(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	if err := c.cfg.Views.DeleteView(v.ctx, v.form("name")); err != nil &&
		gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		return err
	}
	return v.redirect(keptFrom(v.form("query")).url())
}

// isSaved reports whether the shown list is already saved under a name.
func isSaved(q inboxQuery, list []*gatehouse.SavedView) bool {
	return slices.ContainsFunc(list, func(s *gatehouse.SavedView) bool { return keptFrom(s.Query) == q.kept() })
}

package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// adminCmd groups the commands for administrators only.
type adminCmd struct {
	Notices noticesCmd    `cmd:"" help:"Changes to rights and rules that you have not dismissed."`
	Reset   adminResetCmd `cmd:"" help:"Give an administrator who lost their secrets new ones; needs access to the store."`
}

// noticesCmd lists the changes of rights and rules.
type noticesCmd struct {
	paging  `embed:""`
	Seen    bool `help:"Also those that you have dismissed."`
	Dismiss bool `help:"Hide the listed notices from you. Other administrators still see them."`
}

func (*noticesCmd) Help() string {
	return `
Every administrator of a tenant sees who changed rights or rules, such as principals,
keys, groups, grants, secrets, connectors and policies, until they dismiss it. The
audit log is not changed. Piped output has these columns: id, time, event, subject,
actor, channel, tenant of origin, details.

Examples:

    gatehouse admin notices
    gatehouse admin notices --dismiss
`
}

// Run lists the notices, and with --dismiss dismisses those that it listed.
func (c *noticesCmd) Run(g *globals, api service) error {
	page, err := collect(g.Ctx, &c.paging,
		func(ctx context.Context, cursor string, limit int) (gatehouse.Page[*gatehouse.Notice], error) {
			return api.ListNotices(ctx, gatehouse.NoticeFilter{All: c.Seen, Cursor: cursor, Limit: limit})
		})
	if err != nil {
		return err
	}
	err = showPage(g, page, nil, "No notices.", func() *term.Table {
		return g.noticeTable(page.Items)
	})
	if err != nil || !c.Dismiss {
		return err
	}
	for ids := range slices.Chunk(noticeIDs(page.Items), gatehouse.MaxLimit) {
		if _, err := api.DismissNotices(g.Ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

func noticeIDs(list []*gatehouse.Notice) []string {
	ids := make([]string, len(list))
	for i, n := range list {
		ids[i] = n.ID
	}
	return ids
}

func (g *globals) noticeTable(list []*gatehouse.Notice) *term.Table {
	t := &term.Table{Header: []string{"ID", "WHEN", "WHAT", "WHOM", "BY", "VIA", "FROM TENANT", "DETAILS"}, Wide: 7,
		Drop: []int{0, 6, 5}}
	for _, n := range list {
		t.Add(n.ID, g.At(n.At), strings.ReplaceAll(n.Kind, ".", " "), cmp.Or(n.SubjectName, n.Subject),
			cmp.Or(n.ActorName, n.Actor),
			string(n.Via), n.FromTenant, n.Detail)
	}
	return t
}

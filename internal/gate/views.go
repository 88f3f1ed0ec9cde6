package gate

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// Inbox returns a page of the actions that the caller may read, and the caller's saved
// views. The store reads both together.
func (g *Gate) Inbox(
	ctx context.Context, f gatehouse.ActionFilter,
) (page gatehouse.Page[*gatehouse.Action], views []*gatehouse.SavedView, err error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return page, nil, err
	}
	return g.openPage(ctx, c, f, true)
}

// SaveView stores a view of the caller, replacing one of the same name.
func (g *Gate) SaveView(ctx context.Context, name, query string) error {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return err
	}
	name = strings.TrimSpace(name)
	var v gatehouse.Violations
	v.CheckText("/name", name, 4*gatehouse.MaxViewName)
	v.CheckText("/query", query, gatehouse.MaxViewQuery)
	if n := utf8.RuneCountInString(name); n == 0 || n > gatehouse.MaxViewName {
		v.Add("/name", "must have 1 to %d characters", gatehouse.MaxViewName)
	}
	if err := v.Err(); err != nil {
		return err
	}
	return g.Do(ctx, c, func(tx gatehouse.Tx) error {
		known, err := tx.ListViews(c.Principal.ID)
		if err != nil {
			return err
		}
		fresh := true
		for _, k := range known {
			fresh = fresh && k.Name != name
		}
		if fresh && len(known) >= gatehouse.MaxViews {
			return gatehouse.Violations{
				{Pointer: "/name", Detail: "cannot be added: you have the maximum number of views; delete one"}}.Err()
		}
		return tx.PutView(&gatehouse.SavedView{
			Tenant: c.Principal.Tenant, PrincipalID: c.Principal.ID, Name: name, Query: query, CreatedAt: tx.Now(),
		})
	})
}

// DeleteView removes a view of the caller.
func (g *Gate) DeleteView(ctx context.Context, name string) error {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return err
	}
	return g.Do(ctx, c, func(tx gatehouse.Tx) error { return tx.DeleteView(c.Principal.ID, name) })
}

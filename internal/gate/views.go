package gate

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Inbox returns a page of the caller's tenant and the caller's saved views, by one
// query of the store.
func (g *Gate) Inbox(ctx context.Context, f gatehouse.ActionFilter) (page gatehouse.Page[*gatehouse.Action], views []*gatehouse.SavedView, err error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return page, nil, err
	}
	f.ReadBy = g.ReadsAs(c.Principal)
	err = g.Store.Read(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) (err error) {
		tx.Prefetch(gatehouse.PrefetchPlan{PrincipalID: c.Principal.ID, Views: true})
		if page, err = tx.ListActions(f); err != nil {
			return err
		}
		views, err = tx.ListViews(c.Principal.ID)
		return err
	})
	if err == nil {
		err = g.readExcesses(ctx, page.Items)
	}
	g.describe(page.Items...)
	return page, views, usecase.NotFound(err, "action")
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
	return g.Update(ctx, c.Principal.Tenant, nil, func(tx gatehouse.Tx) error {
		known, err := tx.ListViews(c.Principal.ID)
		if err != nil {
			return err
		}
		fresh := true
		for _, k := range known {
			fresh = fresh && k.Name != name
		}
		if fresh && len(known) >= gatehouse.MaxViews {
			return gatehouse.Violations{{Pointer: "/name", Detail: "you have as many views as one can have; delete one"}}.Err()
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
	return g.Update(ctx, c.Principal.Tenant, nil,
		func(tx gatehouse.Tx) error { return tx.DeleteView(c.Principal.ID, name) })
}

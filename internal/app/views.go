package app

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// SavedViews lists the caller's own.
func (g *Gate) SavedViews(ctx context.Context) (list []*gatehouse.SavedView, err error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	err = g.store.Read(ctx, func(tx gatehouse.ReadTx) (err error) {
		list, err = tx.ListViews(c.Principal.Tenant, c.Principal.ID)
		return err
	})
	return list, err
}

// SaveView stores a view of the caller's, in the place of one of the same name.
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
	return g.update(ctx, nil, func(tx gatehouse.Tx) error {
		known, err := tx.ListViews(c.Principal.Tenant, c.Principal.ID)
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

// DeleteView removes a view of the caller's.
func (g *Gate) DeleteView(ctx context.Context, name string) error {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return err
	}
	return g.update(ctx, nil, func(tx gatehouse.Tx) error { return tx.DeleteView(c.Principal.Tenant, c.Principal.ID, name) })
}

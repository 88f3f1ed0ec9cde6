package gate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// FindAction returns an action of the caller's tenant.
func (g *Gate) FindAction(ctx context.Context, id string) (a *gatehouse.Action, err error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	read := g.Store.Read
	if g.ReadsAs(c.Principal) != "" {
		read = g.Store.View // the check of the right to read needs a second query
	}
	err = read(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) (err error) {
		a, err = g.findAction(tx, c, id)
		return err
	})
	if err == nil && a.Status == gatehouse.StatusPending && len(a.Ceilings) > 0 {
		err = g.Store.View(ctx, a.Tenant, func(tx gatehouse.ReadTx) (err error) {
			if a, err = g.findAction(tx, c, id); err != nil {
				return err
			}
			return exceeds(tx, a)
		})
	}
	if err == nil && a.Status == gatehouse.StatusCanceled {
		err = g.Store.View(ctx, a.Tenant, func(tx gatehouse.ReadTx) error {
			entries, err := tx.ListActionEntries(a.ID)
			if err == nil {
				a.CanceledBy, err = canceledBy(tx, a, entries)
			}
			return err
		})
	}
	if err == nil {
		err = g.readComments(ctx, a)
	}
	if err != nil {
		return nil, usecase.NotFound(err, "action")
	}
	g.describe(a)
	return a, nil
}

// FindActions returns the actions with these ids that the caller may read, by id. Comments, Exceeds and
// CanceledBy are not set.
func (g *Gate) FindActions(ctx context.Context, ids []string) (found map[string]*gatehouse.Action, err error) {
	err = g.View(ctx, "action", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if found, err = tx.FindActions(ids); err != nil {
			return err
		}
		for id, a := range found {
			switch err := g.mayRead(tx, c, a.ID, a.ProposerID); {
			case errors.Is(err, gatehouse.ErrNotFound):
				delete(found, id)
			case err != nil:
				return err
			}
		}
		return nil
	})
	g.describe(slices.Collect(maps.Values(found))...)
	return found, err
}

// describe sets the fields that come from connectors and are not stored.
func (g *Gate) describe(actions ...*gatehouse.Action) {
	r, ok := g.targets.(ReversalChecker)
	for _, a := range actions {
		a.CanRebase, a.CanPreview = g.canRebase(a), g.CanPreview(a)
		a.Undoable = ok && r.Reverses(a.Tenant, a.Connector, a.Operation)
	}
}

// WaitAction returns when the action is decided or finished, or with its present
// state when the time is over, the server stops, or the client disconnects.
func (g *Gate) WaitAction(
	ctx context.Context, id string, wait time.Duration, until gatehouse.Until,
) (*gatehouse.Action, error) {
	return g.WaitAsked(ctx, id, wait, until, gatehouse.MaxComments)
}

// WaitAsked is WaitAction, but also returns when an open question has a number above seen.
func (g *Gate) WaitAsked(
	ctx context.Context, id string, wait time.Duration, until gatehouse.Until, seen int,
) (*gatehouse.Action, error) {
	settled := func(a *gatehouse.Action) bool {
		if a.AskedAfter(seen) {
			return true
		}
		if until == gatehouse.UntilDecided {
			return a.Status.Decided()
		}
		return a.Status.Finished()
	}
	a, err := g.FindAction(ctx, id)
	if err != nil || settled(a) || wait <= 0 {
		return a, err
	}
	err = usecase.Poll(ctx, g.Hints, min(wait, gatehouse.MaxWait), []string{a.ID}, func() (bool, error) {
		now, err := g.FindAction(ctx, id)
		if err != nil {
			return true, err
		}
		a = now
		return settled(a), nil
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// ListActions returns a page of the actions of the caller's tenant. A cached caller
// is verified with data from the same query, before the page is returned.
func (g *Gate) ListActions(
	ctx context.Context, f gatehouse.ActionFilter,
) (page gatehouse.Page[*gatehouse.Action], err error) {
	c, err := gatehouse.CachedCallerFrom(ctx)
	if err != nil {
		return page, err
	}
	page, _, err = g.openPage(ctx, c, f, false)
	return page, err
}

func (g *Gate) openPage(
	ctx context.Context, c *gatehouse.Caller, f gatehouse.ActionFilter, views bool,
) (page gatehouse.Page[*gatehouse.Action], saved []*gatehouse.SavedView, err error) {
	f.ReadBy = g.ReadsAs(c.Principal)
	err = g.Store.Read(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error {
		o, err := tx.OpenPage(c, f, views)
		if o == nil {
			return err
		}
		if err := usecase.Verify(c, o.CallerFacts); err != nil {
			return err
		}
		page, saved = o.Page, o.Views
		return err
	})
	if err == nil {
		err = g.readExcesses(ctx, page.Items)
	}
	g.describe(page.Items...)
	return page, saved, usecase.NotFound(err, "action")
}

// Evidence returns an action with its comments, receipts, log entries and canonical text.
func (g *Gate) Evidence(ctx context.Context, id string) (*gatehouse.Evidence, error) {
	var out *gatehouse.Evidence
	err := g.View(ctx, "action", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		a, err := g.findAction(tx, c, id)
		if err != nil {
			return err
		}
		if a.ArchivedAt == nil {
			if a.Comments, err = tx.ListComments(a.ID); err != nil {
				return err
			}
		}
		receipts, err := ReceiptsOf(tx, a)
		if err != nil {
			return err
		}
		entries, err := tx.ListActionEntries(a.ID)
		if err != nil {
			return err
		}
		if a.CanceledBy, err = canceledBy(tx, a, entries); err != nil {
			return err
		}
		out = &gatehouse.Evidence{Action: a, Receipts: receipts, Entries: entries, Canonical: string(a.Canonical())}
		return nil
	})
	return out, err
}

// ListMirror returns the applied changes, newest first.
func (g *Gate) ListMirror(
	ctx context.Context, cursor string, limit int,
) (page gatehouse.Page[*gatehouse.AppliedMirror], err error) {
	err = g.View(ctx, "action", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		page, err = tx.ListMirror(g.ReadsAs(c.Principal), cursor, limit)
		return err
	})
	return page, err
}

// ListCorpus returns the lessons of decisions, newest first.
func (g *Gate) ListCorpus(
	ctx context.Context, cursor string, limit int,
) (page gatehouse.Page[*gatehouse.CorpusEntry], err error) {
	err = g.View(ctx, "action", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		page, err = tx.ListCorpus(g.ReadsAs(c.Principal), cursor, limit)
		return err
	})
	return page, err
}

// ListEntries returns numbered entries of the tenant's log, starting at an index. Callers who
// may read only their own objects get the entries about these.
func (g *Gate) ListEntries(ctx context.Context, from int64, limit int) (list []*gatehouse.Entry, err error) {
	err = g.View(ctx, "entry", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if g.ReadsAs(c.Principal) != "" {
			list, err = g.ownEntries(tx, c, from, limit)
			return err
		}
		list, err = tx.ListEntries(from, limit)
		return err
	})
	return list, err
}

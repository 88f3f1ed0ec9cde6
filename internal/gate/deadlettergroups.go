package gate

import (
	"cmp"
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// GroupDeadLetters groups the tenant's dead letters by error.
func (g *Gate) GroupDeadLetters(
	ctx context.Context, f gatehouse.DeadLetterFilter,
) (*gatehouse.DeadLetterGroups, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	f.Group, f.Cursor = "", ""
	out := &gatehouse.DeadLetterGroups{Items: []gatehouse.DeadLetterGroup{}}
	at := make(map[string]int)
	err = g.walkDead(ctx, f, g.ReadsAs(c.Principal), func(p *gatehouse.Push) bool {
		if out.Seen == gatehouse.MaxGrouped {
			out.Capped = true
			return false
		}
		out.Seen++
		key, ended := p.GroupKey(), lastAt(p)
		i, known := at[key]
		if !known {
			i, at[key] = len(out.Items), len(out.Items)
			out.Items = append(out.Items, gatehouse.DeadLetterGroup{
				Key: key, Connector: p.Connector, ErrorCode: p.ErrorCode, Status: p.Status, Words: p.Words(),
				OldestAt: ended, NewestAt: ended,
			})
		}
		x := &out.Items[i]
		x.Count++
		if ended.Before(x.OldestAt) {
			x.OldestAt = ended
		}
		if ended.After(x.NewestAt) {
			x.NewestAt, x.Words = ended, p.Words()
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out.Items, func(a, b gatehouse.DeadLetterGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), a.OldestAt.Compare(b.OldestAt), cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}

// walkDead calls fn for the dead letters that a filter selects, newest first, until
// fn returns false. It ignores the filter's limit. Each page is read by a transaction of its own, since a
// tenant may have any number of dead letters.
func (g *Gate) walkDead(
	ctx context.Context, f gatehouse.DeadLetterFilter, readBy string, fn func(*gatehouse.Push) bool,
) error {
	filter := pushFilter(f)
	filter.ReadBy, filter.Limit = readBy, gatehouse.MaxLimit
	for {
		var page gatehouse.Page[*gatehouse.Push]
		err := g.View(ctx, "push", func(tx gatehouse.ReadTx, _ *gatehouse.Caller) (err error) {
			page, err = tx.ListPushes(filter)
			return err
		})
		if err != nil {
			return err
		}
		for _, p := range page.Items {
			if f.Group != "" && p.GroupKey() != f.Group {
				continue
			}
			if !fn(p) {
				return nil
			}
		}
		if filter.Cursor = page.NextCursor; filter.Cursor == "" {
			return nil
		}
	}
}

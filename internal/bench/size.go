package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// sized is the number of actions of a round, unless Options.Scale is less; sizedParts is the number of parts that
// are shown.
const sized, sizedParts = 2000, 8

// size measures the disk space of an applied action: the growth of the database in a round, divided by the number of
// actions. The use cases write all rows; no row is a copy that fill makes.
func (r *runner) size(ctx context.Context) error {
	targets := noopTargets()
	return r.within(ctx, "size", Setup{Targets: targets, Idle: true}, 16, func(dbs databases, w *world) (err error) {
		registry, err := dispatch.NewRegistry(targets...)
		if err != nil {
			return err
		}
		n := min(sized, r.Scale)
		var whole values
		parts := map[string]*values{}
		last, err := dbs.parts(ctx)
		if err != nil {
			return err
		}
		for round := range r.Rounds {
			r.say("size, round %d of %d", round+1, r.Rounds)
			texts, err := w.apply(ctx, registry, 1+round*n, n)
			if err != nil {
				return err
			}
			now, err := dbs.parts(ctx)
			if err != nil {
				return err
			}
			total := 0.0
			each := func(name string) float64 { return float64(now[name]-last[name]) / float64(n) }
			for name := range now {
				total += each(name)
			}
			for name := range now {
				if parts[name] == nil {
					parts[name] = &values{}
				}
				parts[name].add(each(name), total)
			}
			whole.add(total, texts)
			last = now
		}
		r.report(Line{Figure: "size", Name: "disk for each applied action", Unit: "bytes", Lower: true,
			Baseline: "its proposal and its entries of the log, as JSON"}, whole)
		names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
			return cmp.Compare(spreadOf(parts[b].ours).Median, spreadOf(parts[a].ours).Median)
		})
		for _, name := range names[:min(sizedParts, len(names))] {
			r.report(Line{Figure: "size", Name: "… of which " + name, Unit: "bytes", Lower: true, Baseline: "all parts"},
				*parts[name])
		}
		return nil
	})
}

// apply proposes, approves and carries out n actions, and runs the background work. It returns the length of one
// action's proposal and audit entries as JSON, in bytes.
func (w *world) apply(ctx context.Context, registry *dispatch.Registry, from, n int) (float64, error) {
	agent := gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: w.agent, Via: gatehouse.ViaAPI})
	list := make([]pending, n)
	_, err := drive(ctx, 16, time.Hour, n, func(int) (func(int) error, func(), error) {
		return func(item int) error {
			a, _, err := w.App.Propose(agent, proposal(from+item))
			if err == nil {
				list[item] = pending{id: a.ID, digest: a.Digest}
			}
			return err
		}, func() {}, nil
	})
	if err == nil {
		err = w.approveAll(ctx, list)
	}
	if err == nil {
		_, err = w.carry(ctx, registry, 16, n)
	}
	if err == nil {
		err = w.background(ctx)
	}
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(proposal(from))
	if err != nil {
		return 0, err
	}
	length := len(text)
	err = w.Store.View(ctx, w.tenant, func(tx gatehouse.ReadTx) error {
		a, err := tx.FindAction(list[0].id)
		if err == nil && a.Status != gatehouse.StatusApplied {
			err = fmt.Errorf("the action is %s", a.Status)
		}
		entries, e := tx.ListActionEntries(list[0].id)
		for _, e := range entries {
			length += len(e.Body)
		}
		return errors.Join(err, e)
	})
	return float64(length), err
}

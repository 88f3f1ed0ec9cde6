package gatetest

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// Archive archives every action of a tenant that can be archived, whatever its age,
// and returns how many it archived.
func (w *World) Archive(tenant string) (n int) {
	w.t.Helper()
	w.Clock.Advance(time.Second)
	for after, more := int64(0), true; more; {
		var plan *gatehouse.ArchivePlan
		var before time.Time
		w.must(w.Store.ViewQueues(context.Background(), func(q gatehouse.ReadQueues) (err error) {
			before = q.Now()
			plan, err = q.PlanArchive(after, before, 4)
			return err
		}))
		after, more = plan.Next, plan.Next != 0
		for _, f := range plan.Families {
			if f.Tenant != tenant {
				continue
			}
			w.must(w.Store.Update(context.Background(), tenant, func(tx gatehouse.Tx) error {
				one, err := gate.ArchiveFamilies(tx, []gatehouse.ActionFamily{f}, before)
				n += one
				return err
			}))
		}
	}
	return n
}

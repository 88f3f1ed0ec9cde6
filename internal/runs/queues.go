package runs

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// maxQueues bounds the tools that RunQueues looks at: the first tools, by name, with ready steps in any tenant.
const maxQueues = 1000

// RunQueues returns the queues, the workers and the schedules. A caller who may read
// only their own runs gets an error with code role_required.
func (r *Runs) RunQueues(ctx context.Context) (*gatehouse.RunQueues, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if r.gate.ReadsAs(c.Principal) != "" {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired,
			"only a caller who may read all runs of the tenant may read the queues")
	}
	var out *gatehouse.RunQueues
	err = r.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		out = &gatehouse.RunQueues{
			At: q.Now(), Queues: []gatehouse.ToolQueue{}, Workers: []gatehouse.WorkerState{},
			Schedules: []gatehouse.ScheduleState{},
		}
		tools, err := q.ReadyTools(c.Principal.Tenant, maxQueues)
		if err != nil {
			return err
		}
		for _, t := range tools {
			out.Queues = append(out.Queues, gatehouse.ToolQueue{Tool: t.Tool, OldestAt: t.Since, Leased: t.Leased})
		}
		tx := q.In(c.Principal.Tenant)
		leases, err := tx.OpenLeases(gatehouse.MaxOpenLeases)
		if err != nil {
			return err
		}
		out.Workers = workersOf(leases)
		schedules, err := tx.ListSchedules(gatehouse.MaxSchedules)
		for _, s := range schedules {
			out.Schedules = append(out.Schedules,
				gatehouse.ScheduleState{Workflow: s.Workflow, Version: s.Version, NextAt: s.NextAt})
		}
		return err
	})
	return out, err
}

// workersOf sums up the leases of each holder.
func workersOf(leases []gatehouse.OpenLease) []gatehouse.WorkerState {
	list := []gatehouse.WorkerState{}
	at := make(map[string]int)
	for _, l := range leases {
		i, known := at[l.Worker]
		if !known {
			i, at[l.Worker] = len(list), len(list)
			list = append(list, gatehouse.WorkerState{Worker: l.Worker, Tools: []string{}})
		}
		w := &list[i]
		tool := l.Tool
		if l.Lane != "" {
			w.Pushes++
			tool = l.Lane
		} else {
			w.Steps++
		}
		if tool != "" && !slices.Contains(w.Tools, tool) {
			w.Tools = append(w.Tools, tool)
		}
		if l.Until.After(w.LeaseUntil) {
			w.LeaseUntil = l.Until
		}
	}
	for _, w := range list {
		slices.Sort(w.Tools)
	}
	slices.SortFunc(list, func(a, b gatehouse.WorkerState) int {
		if a.Worker < b.Worker {
			return -1
		}
		return 1
	})
	return list
}

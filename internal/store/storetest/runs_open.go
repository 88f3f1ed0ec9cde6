package storetest

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// openLeases checks that OpenLeases lists the leased steps, not the dispatcher's own pushes, and that ListSchedules
// lists the tenant's schedules.
func (s *suite) openLeases() {
	w := s.workflow(tenant, "triage", 1)
	s.readySteps(w, "crm", 3)
	claimed := s.claimSteps(time.Minute, gatehouse.StepShare{Lane: laneOf(w, "crm"), Limit: 2})
	s.pushIn(gatehouse.PushSent)
	next := s.now().Add(time.Hour)
	s.update(func(tx gatehouse.Tx) error {
		return tx.PutSchedule(&gatehouse.Schedule{Tenant: tenant, Workflow: w.Name, Version: 1, NextAt: next}, time.Time{})
	})
	look := func(tenant string, limit int) (leases []gatehouse.OpenLease, schedules []*gatehouse.Schedule) {
		s.Helper()
		s.as(tenant).view(func(tx gatehouse.ReadTx) (err error) {
			if leases, err = tx.OpenLeases(limit); err == nil {
				schedules, err = tx.ListSchedules(limit)
			}
			return err
		})
		return leases, schedules
	}
	leases, schedules := look(tenant, 10)
	held := gatehouse.OpenLease{Worker: "w1", Tool: "crm", Until: *claimed[0].LeaseUntil}
	s.same("the leases", leases, []gatehouse.OpenLease{held, held})
	s.same("the schedules", schedules, []*gatehouse.Schedule{{Tenant: tenant, Workflow: w.Name, Version: 1, NextAt: next}})
	one, _ := look(tenant, 1)
	s.same("one lease", len(one), 1)
	leases, schedules = look("acme", 10)
	s.same("of another tenant", len(leases)+len(schedules), 0)
}

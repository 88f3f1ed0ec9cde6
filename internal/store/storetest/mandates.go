package storetest

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// mandates: a mandate is found by each field of the filter, counts its uses, is
// narrowed and never widened, ends once, and is visible only in its tenant.
func (s *suite) mandates() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	now := s.now()
	euro := func(amount gatehouse.Decimal) []gatehouse.Magnitude {
		return []gatehouse.Magnitude{{Amount: amount, Currency: "EUR"}}
	}
	limit := gatehouse.Limit{Count: 3, Amounts: euro("20.50")}
	m := &gatehouse.Mandate{
		ID: "mnd_1", Tenant: tenant, Action: "act_1", Agent: "prn_bot", AgentName: "bot", Goal: "<b>refund</b>",
		Steps: []gatehouse.MandateStep{{
			Cover: gatehouse.Cover{
				ActionType: "refund", Connector: "shop", Fingerprint: "f1", Operation: "refund", EntityType: "order",
				Keys: []string{"1", "2"}, When: "true",
			},
			Budget: gatehouse.Budget{Limit: limit},
		}},
		InAll: gatehouse.Budget{Limit: limit}, PerDay: &gatehouse.Budget{Limit: limit}, Level: gatehouse.L4,
		Voters: []gatehouse.MandateVoter{{ID: "prn_ana", Name: "ana"}}, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	over := *m
	over.ID, over.Agent = "mnd_0", "prn_other"
	over.CreatedAt, over.ExpiresAt = now.Add(-2*time.Hour), now.Add(-time.Hour)
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.InsertMandate(&over); err != nil {
			return err
		}
		return tx.InsertMandate(m)
	})
	s.updateReturns(gatehouse.ErrConflict, "stored twice", func(tx gatehouse.Tx) error { return tx.InsertMandate(m) })
	s.as("acme").updateReturns(gatehouse.ErrOtherTenant, "stored by another tenant",
		func(tx gatehouse.Tx) error { return tx.InsertMandate(m) })
	ids := func(in string, f gatehouse.MandateFilter) (list []string) {
		f.Limit = 10
		s.as(in).view(func(tx gatehouse.ReadTx) error {
			found, err := tx.ListMandates(f)
			for _, m := range found {
				list = append(list, m.ID)
			}
			return err
		})
		return list
	}
	s.same("all", ids(tenant, gatehouse.MandateFilter{}), []string{"mnd_1", "mnd_0"})
	s.same("open", ids(tenant, gatehouse.MandateFilter{Open: true}), []string{"mnd_1"})
	s.same("of an agent", ids(tenant, gatehouse.MandateFilter{Agent: "prn_other"}), []string{"mnd_0"})
	s.same("of another tenant", ids("acme", gatehouse.MandateFilter{}), []string(nil))
	find := func(tx gatehouse.Tx) error { _, err := tx.FindMandate(m.ID); return err }
	lock := func(tx gatehouse.Tx) error { _, err := tx.LockMandate(m.ID); return err }
	s.as("acme").updateReturns(gatehouse.ErrNotFound, "found in another tenant", find)
	s.as("acme").updateReturns(gatehouse.ErrNotFound, "locked in another tenant", lock)

	change := func(what string, fn func(*gatehouse.Mandate)) {
		s.update(func(tx gatehouse.Tx) error {
			held, err := tx.LockMandate(m.ID)
			if err != nil {
				return err
			}
			fn(held)
			return tx.UpdateMandate(held)
		})
		fn(m)
		s.view(func(tx gatehouse.ReadTx) error {
			got, err := tx.FindMandate(m.ID)
			if err == nil {
				s.same(what, got, m)
			}
			return err
		})
	}
	change("used", func(m *gatehouse.Mandate) { m.Use(0, euro("5"), now) })
	change("paused", func(m *gatehouse.Mandate) { m.Pause(now, "ana", "") })
	change("resumed", func(m *gatehouse.Mandate) { m.Resume() })
	two := 2
	change("narrowed", func(m *gatehouse.Mandate) {
		until := now.Add(time.Minute)
		if err := m.Narrow(gatehouse.Narrowing{InAll: &gatehouse.LowerLimit{Count: &two}, Until: &until}, now); err != nil {
			s.Error(err)
		}
	})
	for what, widen := range map[string]func(*gatehouse.Mandate){
		"more":           func(m *gatehouse.Mandate) { m.InAll.Count = 3 },
		"longer":         func(m *gatehouse.Mandate) { m.ExpiresAt = now.Add(time.Hour) },
		"unused":         func(m *gatehouse.Mandate) { m.InAll.Used = 0 },
		"over the limit": func(m *gatehouse.Mandate) { m.InAll.Used = 3 },
	} {
		wider := *m
		widen(&wider)
		update := func(tx gatehouse.Tx) error { return tx.UpdateMandate(&wider) }
		if err := s.store.Update(s.Context(), tenant, update); err == nil {
			s.Errorf("%s: the row was widened", what)
		}
	}
	change("ended", func(m *gatehouse.Mandate) { m.End(now, "ana", gatehouse.GrantRevoked) })
	s.updateReturns(gatehouse.ErrConflict, "ended twice", func(tx gatehouse.Tx) error { return tx.UpdateMandate(m) })
}

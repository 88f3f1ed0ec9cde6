package storetest

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// preferences: one row for each person and channel of a tenant, and the last one that
// was stored counts.
func (s *suite) preferences() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	now := s.now()
	mail := &gatehouse.Preference{
		Tenant: tenant, PrincipalID: "prn_ana", Channel: "mail", ChangedAt: &now,
		Muted: []gatehouse.MessageTopic{gatehouse.TopicReminders, gatehouse.TopicDigests},
		Quiet: &gatehouse.QuietHours{From: "20:00", To: "07:00", Zone: "Europe/Berlin"},
	}
	phones := &gatehouse.Preference{
		Tenant: tenant, PrincipalID: "prn_ana", Channel: "phones", ChangedAt: &now, Muted: []gatehouse.MessageTopic{},
	}
	bens := &gatehouse.Preference{
		Tenant: tenant, PrincipalID: "prn_ben", Channel: "mail", ChangedAt: &now,
		Muted: []gatehouse.MessageTopic{gatehouse.TopicOutcomes},
	}
	put := func(p *gatehouse.Preference) {
		s.update(func(tx gatehouse.Tx) error { return tx.PutPreference(p) })
	}
	list := func(in, principal string) (list []*gatehouse.Preference) {
		s.as(in).view(func(tx gatehouse.ReadTx) (err error) {
			list, err = tx.ListPreferences(principal)
			return err
		})
		return list
	}
	put(phones)
	put(bens)
	put(mail)
	s.same("ana's", list(tenant, "prn_ana"), []*gatehouse.Preference{mail, phones})
	s.same("everybody's", list(tenant, ""), []*gatehouse.Preference{mail, phones, bens})
	s.same("in another tenant", list("acme", ""), []*gatehouse.Preference(nil))
	s.as("acme").updateReturns(gatehouse.ErrOtherTenant, "put in another tenant", func(tx gatehouse.Tx) error {
		return tx.PutPreference(mail)
	})
	later := now.Add(time.Hour)
	mail.Muted, mail.Quiet, mail.ChangedAt = []gatehouse.MessageTopic{gatehouse.TopicDigests}, nil, &later
	put(mail)
	s.same("replaced", list(tenant, "prn_ana"), []*gatehouse.Preference{mail, phones})
}

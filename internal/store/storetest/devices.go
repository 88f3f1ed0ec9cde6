package storetest

import (
	"bytes"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// devices: a device belongs to one person of one tenant. An endpoint is stored once: if another person adds the same
// endpoint, the new device replaces the old one.
func (s *suite) devices() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	now := s.now()
	device := func(id, principal, endpoint string, age time.Duration) *gatehouse.Device {
		return &gatehouse.Device{
			ID: id, Tenant: tenant, PrincipalID: principal, Label: "Firefox on Android", CreatedAt: now.Add(-age),
			Service: "push.example", Subscription: gatehouse.Subscription{
				Endpoint: "https://push.example/" + endpoint, P256DH: bytes.Repeat([]byte{4}, gatehouse.P256DHSize),
				Auth: bytes.Repeat([]byte{7}, gatehouse.PushAuthSize),
			},
		}
	}
	phone, laptop := device("dev_1", "prn_ana", "a", time.Hour), device("dev_2", "prn_ana", "b", 0)
	shared := device("dev_3", "prn_ben", "c", 0)
	s.update(func(tx gatehouse.Tx) error {
		for _, d := range []*gatehouse.Device{phone, laptop, shared} {
			if err := tx.PutDevice(d); err != nil {
				return err
			}
		}
		return nil
	})
	list := func(in, principal string) (list []*gatehouse.Device) {
		s.as(in).view(func(tx gatehouse.ReadTx) (err error) {
			list, err = tx.ListDevices(principal)
			return err
		})
		return list
	}
	owners := func(in string) (list []string) {
		s.as(in).view(func(tx gatehouse.ReadTx) (err error) {
			list, err = tx.DeviceOwners()
			return err
		})
		return list
	}
	s.same("ana's", list(tenant, "prn_ana"), []*gatehouse.Device{laptop, phone})
	s.same("ana's in another tenant", list("acme", "prn_ana"), []*gatehouse.Device(nil))
	s.same("owners", owners(tenant), []string{"prn_ana", "prn_ben"})
	s.same("owners in another tenant", owners("acme"), []string(nil))
	s.as("acme").updateReturns(gatehouse.ErrNotFound, "found in another tenant", func(tx gatehouse.Tx) error {
		_, err := tx.FindDevice(phone.ID)
		return err
	})

	phone.LastSentAt, phone.LastMessage, phone.LastError = &now, "ntf_1", "slow down"
	s.as("acme").updateReturns(gatehouse.ErrOtherTenant, "update in another tenant",
		func(tx gatehouse.Tx) error { return tx.UpdateDevice(phone) })
	s.as("acme").update(func(tx gatehouse.Tx) error { return tx.DeleteDevice(laptop.ID) })
	if got := list(tenant, "prn_ana"); len(got) != 2 || got[1].LastSentAt != nil {
		s.Errorf("another tenant changed the devices: %v", got)
	}
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateDevice(phone) })
	s.update(func(tx gatehouse.Tx) error {
		got, err := tx.FindDevice(phone.ID)
		s.same("an updated device", got, phone)
		return err
	})

	taken := device("dev_4", "prn_ben", "a", 0)
	s.update(func(tx gatehouse.Tx) error { return tx.PutDevice(taken) })
	s.same("ana's, one taken over", list(tenant, "prn_ana"), []*gatehouse.Device{laptop})
	s.same("ben's", list(tenant, "prn_ben"), []*gatehouse.Device{taken, shared})
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateDevice(phone) })
	s.update(func(tx gatehouse.Tx) error { return tx.DeleteDevice(laptop.ID) })
	s.update(func(tx gatehouse.Tx) error { return tx.DeleteDevice(laptop.ID) })
	s.same("owners at the end", owners(tenant), []string{"prn_ben"})
}

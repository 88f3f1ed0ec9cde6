package notify

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// devices are the devices to which a message is sent; none on a channel that does not send to devices.
func devices(tx gatehouse.DeviceReader, c *Configured, row *gatehouse.Notification) ([]*gatehouse.Device, error) {
	if !c.Trait().Devices {
		return nil, nil
	}
	list, err := tx.ListDevices(row.Recipient)
	if err != nil || row.Kind != gatehouse.NotifyTest || row.Data == "" {
		return list, err
	}
	var only struct {
		Device string `json:"device"`
	}
	err = json.Unmarshal([]byte(row.Data), &only)
	return slices.DeleteFunc(list, func(d *gatehouse.Device) bool { return d.ID != only.Device }), err
}

// reaches reports whether a channel reaches a person.
func (s *fanOut) reaches(c *Configured, p *gatehouse.Principal) (bool, error) {
	if !c.Trait().Devices {
		return c.Reaches(p), nil
	}
	if s.owners == nil {
		list, err := s.tx.DeviceOwners()
		if err != nil {
			return false, err
		}
		s.owners = make(map[string]bool, len(list))
		for _, id := range list {
			s.owners[id] = true
		}
	}
	return s.owners[p.ID], nil
}

// recordDevices stores the outcome of a message on each device, and removes devices that are gone.
func (n *Notifier) recordDevices(tx gatehouse.Tx, m *gatehouse.Notification, outcomes []DeviceOutcome) error {
	for _, o := range outcomes {
		d, err := tx.FindDevice(o.Device.ID)
		if errors.Is(err, gatehouse.ErrNotFound) || err == nil && d.LastMessage == m.ID {
			continue
		}
		switch {
		case err != nil:
		case o.Err != nil && refusal(o.Err).Gone:
			if err = tx.DeleteDevice(d.ID); err == nil {
				err = tx.AppendLeaf(deviceGone(d))
			}
		case o.Err != nil:
			d.LastError = shortError(o.Err)
			err = tx.UpdateDevice(d)
		default:
			now := tx.Now()
			d.LastSentAt, d.LastMessage, d.LastError = &now, m.ID, ""
			err = tx.UpdateDevice(d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func deviceGone(d *gatehouse.Device) *gatehouse.Leaf {
	text := func(name, value string) gatehouse.Member {
		return gatehouse.Member{Name: name, Value: gatehouse.StringJSON(value)}
	}
	return &gatehouse.Leaf{
		Tenant: d.Tenant, Type: "device.gone", Subject: d.PrincipalID, Actor: "system",
		Data: gatehouse.ObjectJSON(text("device", d.ID), text("label", d.Label), text("service", d.Service)),
	}
}

package shared

import "github.com/gatehouse-dev/gatehouse"

func scanDevice(r Row) (*gatehouse.Device, error) {
	d := &gatehouse.Device{
		Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(),
		Subscription: gatehouse.Subscription{Endpoint: r.Text(), P256DH: r.Blob(), Auth: r.Blob()},
		Label:        r.Text(), CreatedAt: r.Time(), LastSentAt: r.TimePtr(), LastMessage: r.Text(),
		LastError: r.Text(),
	}
	d.Service = d.PushService()
	return d, nil
}

// FindDevice finds a device by id.
func (t Reads) FindDevice(id string) (*gatehouse.Device, error) {
	return find(t, scanDevice, `
SELECT tenant, id, principal_id, endpoint, p256dh, auth, label, created_at, last_sent_at, last_message, last_error
FROM device WHERE tenant = $1 AND id = $2`, t.Tenant(), id)
}

// ListDevices lists a principal's devices, newest first.
func (t Reads) ListDevices(principal string) ([]*gatehouse.Device, error) {
	return list(t, scanDevice, `
SELECT tenant, id, principal_id, endpoint, p256dh, auth, label, created_at, last_sent_at, last_message, last_error
FROM device WHERE tenant = $1 AND principal_id = $2 ORDER BY created_at DESC, id DESC`, t.Tenant(), principal)
}

// DeviceOwners lists the principals with a device.
func (t Reads) DeviceOwners() ([]string, error) {
	return list(t, scanText, `
SELECT DISTINCT principal_id FROM device WHERE tenant = $1 ORDER BY principal_id`, t.Tenant())
}

// PutDevice stores a device, or replaces the one with the same endpoint.
func (t Writes) PutDevice(d *gatehouse.Device) error {
	if err := t.Owns(d.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO device (tenant, id, principal_id, endpoint, p256dh, auth, label, created_at, last_sent_at,
  last_message, last_error)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (tenant, endpoint) DO UPDATE SET id = excluded.id, principal_id = excluded.principal_id,
  p256dh = excluded.p256dh, auth = excluded.auth, label = excluded.label, created_at = excluded.created_at,
  last_sent_at = excluded.last_sent_at, last_message = excluded.last_message, last_error = excluded.last_error`,
		d.Tenant, d.ID, d.PrincipalID, d.Endpoint, d.P256DH, d.Auth, d.Label, d.CreatedAt, d.LastSentAt,
		d.LastMessage, d.LastError)
}

// UpdateDevice writes the outcome of the device's last message.
func (t Writes) UpdateDevice(d *gatehouse.Device) error {
	if err := t.Owns(d.Tenant); err != nil {
		return err
	}
	return t.Write(`
UPDATE device SET last_sent_at = $1, last_message = $2, last_error = $3 WHERE tenant = $4 AND id = $5`,
		d.LastSentAt, d.LastMessage, d.LastError, d.Tenant, d.ID)
}

// DeleteDevice deletes a device.
func (t Writes) DeleteDevice(id string) error {
	return t.Write(`DELETE FROM device WHERE tenant = $1 AND id = $2`, t.Tenant(), id)
}

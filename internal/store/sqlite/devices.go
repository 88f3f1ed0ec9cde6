package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const selectDevice = `SELECT tenant, id, principal_id, endpoint, p256dh, auth, label, created_at, last_sent_at,
last_message, last_error FROM device WHERE tenant = ?1 AND `

// FindDevice finds by id.
func (t *readTx) FindDevice(id string) (d *gatehouse.Device, err error) {
	err = t.one(selectDevice+`id = ?2`, func(r *stmt) error { d = shared.ScanDevice(r); return nil }, t.tenant, id)
	return d, err
}

// ListDevices lists newest first.
func (t *readTx) ListDevices(principal string) (list []*gatehouse.Device, err error) {
	err = t.each(selectDevice+`principal_id = ?2 ORDER BY created_at DESC, id DESC`,
		func(r *stmt) error { list = append(list, shared.ScanDevice(r)); return nil }, t.tenant, principal)
	return list, err
}

// DeviceOwners lists the principals with a device.
func (t *readTx) DeviceOwners() (list []string, err error) {
	err = t.each(`SELECT DISTINCT principal_id FROM device WHERE tenant = ?1 ORDER BY principal_id`,
		func(r *stmt) error { list = append(list, r.Text()); return nil }, t.tenant)
	return list, err
}

// PutDevice stores a device, or replaces the one with its endpoint.
func (t *tx) PutDevice(d *gatehouse.Device) error {
	if err := t.owns(d.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO device (tenant, id, principal_id, endpoint, p256dh, auth, label, created_at,
last_sent_at, last_message, last_error) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (tenant, endpoint) DO UPDATE SET id = excluded.id, principal_id = excluded.principal_id,
p256dh = excluded.p256dh, auth = excluded.auth, label = excluded.label, created_at = excluded.created_at,
last_sent_at = excluded.last_sent_at, last_message = excluded.last_message, last_error = excluded.last_error`,
		d.Tenant, d.ID, d.PrincipalID, d.Endpoint, d.P256DH, d.Auth, d.Label, d.CreatedAt, d.LastSentAt,
		d.LastMessage, d.LastError)
	return err
}

// UpdateDevice writes the outcome of a message.
func (t *tx) UpdateDevice(d *gatehouse.Device) error {
	if err := t.owns(d.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`UPDATE device SET last_sent_at = ?1, last_message = ?2, last_error = ?3
WHERE tenant = ?4 AND id = ?5`,
		d.LastSentAt, d.LastMessage, d.LastError, t.tenant, d.ID)
	return err
}

// DeleteDevice deletes a device.
func (t *tx) DeleteDevice(id string) error {
	_, err := t.exec(`DELETE FROM device WHERE tenant = ?1 AND id = ?2`,
		t.tenant, id)
	return err
}

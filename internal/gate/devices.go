package gate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.DeviceService = (*Gate)(nil)

// deviceChannel returns the first channel that sends to the devices of a tenant,
// nil for none.
func (g *Gate) deviceChannel(tenant string) *ChannelInfo {
	i := slices.IndexFunc(g.config.Channels, func(info ChannelInfo) bool {
		return info.Endpoint != nil && slices.Contains(info.Tenants, tenant)
	})
	if i < 0 {
		return nil
	}
	return &g.config.Channels[i]
}

// errNoDevices is the error for a tenant without a channel that sends to devices.
func errNoDevices() *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeUnsupported, "no channel of kind webpush is configured for this tenant")
}

// SendsToDevices reports whether the caller's tenant has a channel that sends to
// devices.
func (g *Gate) SendsToDevices(ctx context.Context) bool {
	c, err := gatehouse.CallerFrom(ctx)
	return err == nil && g.deviceChannel(c.Principal.Tenant) != nil
}

// ListDevices returns the caller's devices, newest first.
func (g *Gate) ListDevices(ctx context.Context) (list []*gatehouse.Device, err error) {
	err = g.View(ctx, "device", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		list, err = tx.ListDevices(c.Principal.ID)
		return err
	})
	return list, err
}

// AddDevice stores the caller's browser. A browser that belonged to another principal
// of the tenant becomes the caller's.
func (g *Gate) AddDevice(ctx context.Context, label string, s gatehouse.Subscription) (*gatehouse.Device, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return nil, err
	}
	info := g.deviceChannel(c.Principal.Tenant)
	if info == nil {
		return nil, errNoDevices()
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if err := info.Endpoint(s.Endpoint); err != nil {
		return nil, gatehouse.Violations{{Pointer: "/endpoint", Detail: err.Error()}}.Err()
	}
	if r := []rune(label); len(r) > gatehouse.MaxDeviceLabel {
		label = string(r[:gatehouse.MaxDeviceLabel])
	}
	d := &gatehouse.Device{
		ID: NewID("dev"), Tenant: c.Principal.Tenant, PrincipalID: c.Principal.ID, Label: label,
		Service: s.PushService(), Subscription: s,
	}
	_, err = changeOwn(ctx, g, func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) (*struct{}, error) {
		have, err := tx.ListDevices(p.ID)
		if err != nil {
			return nil, err
		}
		again := slices.ContainsFunc(have, func(k *gatehouse.Device) bool { return k.Endpoint == s.Endpoint })
		if len(have) >= gatehouse.MaxDevices && !again {
			return nil, gatehouse.Violations{{
				Pointer: "/endpoint", Detail: "cannot be added: you have the maximum number of devices; remove one first",
			}}.Err()
		}
		d.CreatedAt = tx.Now()
		if err := tx.PutDevice(d); err != nil {
			return nil, err
		}
		return nil, recordDevice(tx, c, "device.added", d)
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// RemoveDevice removes one of the caller's devices.
func (g *Gate) RemoveDevice(ctx context.Context, id string) error {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return err
	}
	err = g.Do(ctx, c, func(tx gatehouse.Tx) error {
		d, err := ownDevice(tx, c, id)
		if err != nil {
			return err
		}
		if err := tx.DeleteDevice(id); err != nil {
			return err
		}
		return recordDevice(tx, c, "device.removed", d)
	})
	return usecase.NotFound(err, "device")
}

// ownDevice finds a device of the caller; other people's are not found.
func ownDevice(tx gatehouse.DeviceReader, c *gatehouse.Caller, id string) (*gatehouse.Device, error) {
	d, err := tx.FindDevice(id)
	if err == nil && d.PrincipalID != c.Principal.ID {
		err = gatehouse.ErrNotFound
	}
	return d, err
}

func recordDevice(tx gatehouse.LogWriter, c *gatehouse.Caller, event string, d *gatehouse.Device) error {
	data := map[string]any{"device": d.ID, "label": d.Label, "service": d.Service}
	if c.Via != "" {
		data["via"] = c.Via
	}
	return tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: d.Tenant, Type: event, Subject: d.PrincipalID, Actor: c.Principal.ID, Data: usecase.Object(data),
	})
}

// TestDevice sends a test message to one of the caller's devices.
func (g *Gate) TestDevice(ctx context.Context, id string) (*gatehouse.Notification, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.Exists(ctx, "device", id); err != nil {
		return nil, err
	}
	info := g.deviceChannel(c.Principal.Tenant)
	if info == nil {
		return nil, errNoDevices()
	}
	n := testMessage(c, info)
	n.Recipient = c.Principal.ID
	n.Data = gatehouse.ObjectJSON(gatehouse.Member{Name: "device", Value: gatehouse.StringJSON(id)})
	n, err = g.sendTest(ctx, c, n, func(tx gatehouse.Tx) error {
		_, err := ownDevice(tx, c, id)
		return err
	})
	return n, usecase.NotFound(err, "device")
}

// WebPushKey returns the key by which push services identify a tenant. The first
// call creates the key.
func (g *Gate) WebPushKey(ctx context.Context, tenant string) (*ecdsa.PrivateKey, error) {
	if g.config.Master == nil {
		return nil, errNoMaster()
	}
	find := func(tx gatehouse.ReadTx) (*gatehouse.RingKey, error) { return activeRingKey(tx, gatehouse.RingWebPush) }
	var k *gatehouse.RingKey
	err := g.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) (err error) {
		k, err = find(tx)
		return err
	})
	for err == nil && k == nil {
		err = g.Store.Update(ctx, tenant, func(tx gatehouse.Tx) (err error) {
			if k, err = find(tx); err != nil || k != nil {
				return err
			}
			k, err = g.makeWebPushKey(tx, tenant)
			return err
		})
		if errors.Is(err, gatehouse.ErrConflict) { // another replica was first
			k, err = nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	secret, err := g.ringSecret(k)
	if err != nil {
		return nil, err
	}
	return ecdsa.ParseRawPrivateKey(elliptic.P256(), secret)
}

func (g *Gate) makeWebPushKey(tx gatehouse.Tx, tenant string) (*gatehouse.RingKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	secret, err := private.Bytes()
	if err != nil {
		return nil, err
	}
	k, err := g.newRingKey(tx, tenant, initAuthor, gatehouse.RingWebPush, secret)
	if err != nil {
		return nil, err
	}
	return k, tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: tenant, Type: "webpush.key_created", Subject: k.ID, Actor: initAuthor,
		Data: usecase.Object(map[string]any{"number": int(k.Number)}),
	})
}

// resealWebPushKey seals the tenant's key for web push under the present master key.
func (g *Gate) resealWebPushKey(tx ringWriter) error {
	old, err := activeRingKey(tx, gatehouse.RingWebPush)
	if err != nil || old == nil || old.Master == g.config.Master.ID() || !g.config.Master.Has(old.Master) {
		return err
	}
	return g.reseal(tx, old, old.Master)
}

// OwnWebPushKey returns the public half of the tenant's key, as a browser takes it:
// an uncompressed point.
func (g *Gate) OwnWebPushKey(ctx context.Context) ([]byte, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return nil, err
	}
	if g.deviceChannel(c.Principal.Tenant) == nil {
		return nil, errNoDevices()
	}
	private, err := g.WebPushKey(ctx, c.Principal.Tenant)
	if err != nil {
		return nil, err
	}
	return private.PublicKey.Bytes()
}

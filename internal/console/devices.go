package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// Devices is the device service, with methods that only the console calls.
type Devices interface {
	gatehouse.DeviceService
	// SendsToDevices reports whether the caller's tenant has a channel that sends to devices.
	SendsToDevices(ctx context.Context) bool
	// OwnWebPushKey returns the public key of the caller's tenant, with which a browser subscribes, as an
	// uncompressed point.
	OwnWebPushKey(ctx context.Context) ([]byte, error)
	AddDevice(ctx context.Context, label string, s gatehouse.Subscription) (*gatehouse.Device, error)
}

const devicesPath = "/settings/notifications"

// deviceRoutes are the page of the person's devices, and the files that let a browser install the
// console as an app. The service worker is at the root, because it controls only the paths below
// its own.
func (c *Console) deviceRoutes() []route {
	if c.cfg.Devices == nil {
		return nil
	}
	return []route{
		{pattern: "GET " + devicesPath, handle: c.devices},
		{pattern: "POST " + messagePreferencesPath, handle: c.setMessagePreference},
		{pattern: "POST " + devicesPath + "/key", handle: c.devicesKey},
		{pattern: "POST " + devicesPath + "/devices", handle: c.addDevice},
		{pattern: "POST " + devicesPath + "/devices/{device}/test", handle: c.testDevice},
		{pattern: "POST " + devicesPath + "/devices/{device}/remove", handle: c.removeDevice},
		{pattern: "GET /service-worker.js", public: true, handle: c.file("worker.js", "text/javascript; charset=utf-8")},
		{pattern: "GET /manifest.webmanifest", public: true, handle: c.file("manifest.json", "application/manifest+json")},
		{pattern: "GET /icon.png", public: true, handle: c.file("icon.png", "image/png")},
	}
}

// file serves an embedded file under a path that never changes.
func (c *Console) file(name, kind string) func(*view) error {
	return func(v *view) error {
		body, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		v.w.Header().Set("Content-Type", kind)
		_, _ = v.w.Write(body)
		return nil
	}
}

// devicesView is the page of the person's devices.
type devicesView struct {
	list []*gatehouse.Device
	// on says that the tenant has a channel that sends to devices.
	on bool
	// tested is the test that was just sent, nil for none.
	tested *gatehouse.Notification
	failed *gatehouse.Error
	// preferences are the person's choices by channel, saved is the channel whose choice was just
	// saved, and refusedChange the one that was refused.
	preferences   []*gatehouse.Preference
	saved         string
	refusedChange *gatehouse.PreferenceChange
}

func (c *Console) devices(v *view) error { return c.showDevices(v, http.StatusOK, &devicesView{}) }

func (c *Console) showDevices(v *view, status int, p *devicesView) error {
	var err error
	if p.list, err = c.cfg.Devices.ListDevices(v.ctx); err != nil {
		return err
	}
	if c.cfg.Preferences != nil {
		if p.preferences, err = c.cfg.Preferences.ListPreferences(v.ctx); err != nil {
			return err
		}
	}
	for _, one := range p.preferences {
		if p.refusedChange != nil && one.Channel == p.refusedChange.Channel {
			one.Muted, one.Quiet = p.refusedChange.Muted, p.refusedChange.Quiet // as it was typed
		}
	}
	p.on = c.cfg.Devices.SendsToDevices(v.ctx)
	return v.render(status, "Notifications", settingsPath, devicesBody(v, p))
}

// devicesKey answers a script with the public key that the browser needs to subscribe.
func (c *Console) devicesKey(v *view) error {
	key, err := c.cfg.Devices.OwnWebPushKey(v.ctx)
	if err != nil {
		return err
	}
	return v.json(map[string]string{"key": base64.RawURLEncoding.EncodeToString(key)})
}

// addDevice stores a subscription, in the format of PushSubscription.toJSON.
func (c *Console) addDevice(v *view) error {
	body, err := v.body()
	if err != nil {
		return err
	}
	var in struct {
		Endpoint string `json:"endpoint"`
		Keys     struct {
			P256DH string `json:"p256dh"`
			Auth   string `json:"auth"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return gatehouse.E(gatehouse.CodeMalformed, "the subscription cannot be read")
	}
	s := gatehouse.Subscription{Endpoint: in.Endpoint}
	var violations gatehouse.Violations
	for _, f := range []struct {
		pointer, text string
		to            *[]byte
	}{{"/keys/p256dh", in.Keys.P256DH, &s.P256DH}, {"/keys/auth", in.Keys.Auth, &s.Auth}} {
		if *f.to, err = base64.RawURLEncoding.DecodeString(f.text); err != nil {
			violations.Add(f.pointer, "must be base64url")
		}
	}
	if err := violations.Err(); err != nil {
		return err
	}
	d, err := c.cfg.Devices.AddDevice(v.ctx, browserWord(v.r.UserAgent()), s)
	if err != nil {
		return err
	}
	return v.jsonWith(http.StatusCreated, map[string]string{"id": d.ID})
}

func (c *Console) testDevice(v *view) error {
	n, err := c.cfg.Devices.TestDevice(v.ctx, v.r.PathValue("device"))
	if err != nil {
		return c.devicesRefused(v, err)
	}
	return c.showDevices(v, http.StatusOK, &devicesView{tested: n})
}

func (c *Console) removeDevice(v *view) error {
	if err := v.requireConfirmed(); err != nil {
		return c.devicesRefused(v, err)
	}
	if err := c.cfg.Devices.RemoveDevice(v.ctx, v.r.PathValue("device")); err != nil {
		return c.devicesRefused(v, err)
	}
	return v.redirect(devicesPath)
}

func (c *Console) devicesRefused(v *view, err error) error {
	e := refusalOf(err)
	if e == nil {
		return err
	}
	return c.showDevices(v, gatehouse.StatusOf(e.Code), &devicesView{failed: e})
}

// accepted reports whether a test has reached the push service.
func accepted(n *gatehouse.Notification) bool {
	return n.Status == gatehouse.NotificationAccepted || n.Status == gatehouse.NotificationDelivered
}

// quietHours are the quiet hours of a preference, or empty ones.
func quietHours(p *gatehouse.Preference) gatehouse.QuietHours {
	if p.Quiet == nil {
		return gatehouse.QuietHours{}
	}
	return *p.Quiet
}

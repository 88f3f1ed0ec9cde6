package gatehouse

import (
	"context"
	"crypto/ecdh"
	"net/url"
	"time"
)

// The bounds of devices.
const (
	MaxDevices     = 10   // of one person
	MaxEndpoint    = 2048 // bytes
	MaxDeviceLabel = 64   // characters
)

// Device is a browser in which a person gets notifications by web push.
type Device struct {
	ID          string `json:"id"`
	Tenant      string `json:"tenant"`
	PrincipalID string `json:"principal_id"`
	// Label names the browser, such as "Firefox on Android".
	Label     string    `json:"label"`
	CreatedAt time.Time `json:"created_at"`
	// Service is the host of the push service.
	Service string `json:"service"`
	// LastSentAt is when the push service last accepted a message, nil for never.
	LastSentAt *time.Time `json:"last_sent_at"`
	// LastError is the last failure, "" after a success.
	LastError string `json:"last_error,omitempty"`
	// Subscription says how to reach the device. It is secret.
	Subscription `json:"-"`
	// LastMessage is the id of the last notification that the push service accepted for
	// this device. If that notification is retried because another device has not got it,
	// the retry skips this device.
	LastMessage string `json:"-"`
}

// Subscription is a browser's push subscription (W3C Push API, RFC 8030).
type Subscription struct {
	// Endpoint is the URL of the push service.
	Endpoint string
	// P256DH is the browser's public key, an uncompressed point on P-256, and Auth
	// its authentication secret of 16 bytes (RFC 8291).
	P256DH, Auth []byte
}

// Sizes of the keys of a subscription, in bytes.
const (
	P256DHSize   = 65
	PushAuthSize = 16
)

// Validate checks the format of the fields; it does not resolve the endpoint's host.
func (s *Subscription) Validate() error {
	var v Violations
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil:
		v.Add("/endpoint", "must be an https URL")
	case len(s.Endpoint) > MaxEndpoint:
		v.Add("/endpoint", "must have at most %d bytes", MaxEndpoint)
	}
	if _, err := ecdh.P256().NewPublicKey(s.P256DH); err != nil || len(s.P256DH) != P256DHSize {
		v.Add("/keys/p256dh", "must be an uncompressed point on P-256")
	}
	if len(s.Auth) != PushAuthSize {
		v.Add("/keys/auth", "must have %d bytes", PushAuthSize)
	}
	return v.Err()
}

// PushService returns the host of the endpoint.
func (s *Subscription) PushService() string {
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}

// DeviceService lets people see and remove their own devices. Browsers add devices
// in the console.
type DeviceService interface {
	// ListDevices returns the caller's devices, newest first.
	ListDevices(ctx context.Context) ([]*Device, error)
	// RemoveDevice ends the notifications of one of the caller's devices.
	RemoveDevice(ctx context.Context, id string) error
	// TestDevice sends a test to one of the caller's devices, and waits briefly for
	// its outcome.
	TestDevice(ctx context.Context, id string) (*Notification, error)
}

// DeviceReader finds devices.
type DeviceReader interface {
	FindDevice(id string) (*Device, error)
	// ListDevices returns the devices of a principal, newest first.
	ListDevices(principal string) ([]*Device, error)
	// DeviceOwners returns the ids of all principals with a device, in order.
	DeviceOwners() ([]string, error)
}

// DeviceWriter writes devices.
type DeviceWriter interface {
	// PutDevice stores a device. It replaces a device with the same endpoint.
	PutDevice(d *Device) error
	// UpdateDevice writes LastSentAt, LastMessage and LastError. For a removed
	// device it writes nothing.
	UpdateDevice(d *Device) error
	// DeleteDevice deletes a device, if it is there.
	DeleteDevice(id string) error
}

package client

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.DeviceService = (*Client)(nil)

// ListDevices returns the caller's devices, newest first.
func (c *Client) ListDevices(ctx context.Context) ([]*gatehouse.Device, error) {
	return list[*gatehouse.Device](ctx, c, "/devices", nil)
}

// RemoveDevice ends the notifications of one of the caller's devices.
func (c *Client) RemoveDevice(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/devices/" + segment(id)})
	return err
}

// TestDevice sends a test to one of the caller's devices.
func (c *Client) TestDevice(ctx context.Context, id string) (*gatehouse.Notification, error) {
	return post[gatehouse.Notification](ctx, c, false, "/devices/"+segment(id)+"/test", nil)
}

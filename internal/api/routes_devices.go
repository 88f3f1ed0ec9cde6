package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// removedDevice is the answer to removeDevice.
type removedDevice struct {
	ID      string `json:"id"`
	Removed bool   `json:"removed"`
}

// deviceRoutes let people manage the browsers that get their notifications.
func (s *Server) deviceRoutes() []route {
	d := s.cfg.Devices
	if d == nil {
		return nil
	}
	return []route{
		{
			method: "GET", path: "/devices", name: "listDevices", tag: tagNotifications,
			summary: "List your devices",
			doc: "Lists the browsers in which the caller gets notifications by web push, the newest first. People add " +
				"browsers in the console.",
			status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Device]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) { return list(d.ListDevices(ctx)) }),
		}, {
			method: "DELETE", path: "/devices/{id}", name: "removeDevice", tag: tagNotifications,
			summary: "Remove one of your devices", doc: "The device gets no more notifications.",
			object: ObjectDevice, status: http.StatusOK, out: typeOf[removedDevice](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return reply{value: removedDevice{c.id, true}}, d.RemoveDevice(ctx, c.id)
			}),
		}, {
			method: "POST", path: "/devices/{id}/test", name: "testDevice", tag: tagNotifications,
			summary: "Send a test to one of your devices",
			doc: "The server answers once the push service has answered, or after 25 seconds. The status says whether the " +
				"push service accepted the test.",
			object: ObjectDevice, status: http.StatusOK, out: typeOf[gatehouse.Notification](),
			codes: []gatehouse.Code{gatehouse.CodeUnsupported},
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(d.TestDevice(ctx, c.id))
			}),
		},
	}
}

package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

const tagNotifications = "Notifications"

// notificationID is the body of retryNotification.
type notificationID struct {
	ID string `json:"id"`
}

// channelName is the body of testChannel.
type channelName struct {
	Channel string `json:"channel"`
}

// channelList is the answer to listChannels.
type channelList struct {
	Items []*gatehouse.ChannelState `json:"items"`
}

func (s *Server) notificationRoutes() []route {
	n := s.cfg.Notifications
	if n == nil {
		return nil
	}
	watchers := []gatehouse.Role{gatehouse.RoleOperator, gatehouse.RoleAuditor}
	return []route{
		{
			method: "GET", path: "/notifications", name: "listNotifications", tag: tagNotifications,
			summary: "List sent messages",
			doc: "One row for each recipient and channel, the newest first. accepted: the next hop has accepted the message. " +
				"delivered: the message has arrived. muted: the message was no longer needed, or the recipient does not want it " +
				"or cannot be reached.",
			roles: watchers, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Notification]](),
			query: paging(
				param{
					name: "status",
					kind: paramEnum,
					enum: words(gatehouse.NotificationStatuses()),
					doc:  "Only messages in this state.",
				},
				param{name: "channel", max: 128, doc: "Only messages of this channel."},
				param{name: "action", max: 128, doc: "Only messages about this action, by its whole id."},
			),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				f := gatehouse.NotificationFilter{
					Status: gatehouse.NotificationStatus(
						c.query["status"],
					), Channel: c.query["channel"], ActionID: c.query["action"],
					Limit: c.query.limit(), Cursor: c.query["cursor"],
				}
				page, err := n.ListNotifications(ctx, f)
				if err == nil && len(page.Items) == 0 && f.Cursor == "" {
					err = knownChannel(ctx, n, pointerTo("channel"), f.Channel)
				}
				return answer(page, err)
			}),
		}, {
			method: "POST", path: "/notifications/retry", name: "retryNotification", tag: tagNotifications,
			summary: "Send a notification again now", doc: "The notification must be failed or queued.",
			roles: operators, status: http.StatusOK, out: typeOf[gatehouse.Notification](),
			codes:   []gatehouse.Code{gatehouse.CodeTooLate, gatehouse.CodeNotFound},
			example: `{"id":"ntf_1"}`,
			handler: body(nil, func(ctx context.Context, _ *call, in *notificationID) (reply, error) {
				return answer(n.RetryNotification(ctx, in.ID))
			}),
		}, {
			method: "POST", path: "/notifications/retry-failed", name: "retryFailedNotifications",
			tag:     tagNotifications,
			summary: "Show failed notifications, or send them again now",
			doc: "Selects the notifications that failed since a time, of one channel or of all, the newest first. A dry " +
				"run unless dry_run is false. If next_cursor is not empty, repeat the request with it as cursor.",
			roles: operators, status: http.StatusOK, out: typeOf[gatehouse.RetryAnswer](), idempotent: true,
			example: `{"since":"2026-11-21T08:00:00Z","dry_run":false}`,
			handler: body((*gatehouse.RetryRequest).Validate,
				func(ctx context.Context, _ *call, in *gatehouse.RetryRequest) (reply, error) {
					out, err := n.RetryNotifications(ctx, *in)
					if err == nil && len(out.Items) == 0 && in.Cursor == "" {
						err = knownChannel(ctx, n, "/channel", in.Channel)
					}
					return answer(out, err)
				}),
		}, {
			method: "GET", path: "/channels", name: "listChannels", tag: tagNotifications,
			summary: "List the channels with their states", doc: "Lists the configured channels that serve the caller's tenant.",
			roles: watchers, status: http.StatusOK, out: typeOf[channelList](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				list, err := n.ListChannels(ctx)
				return reply{value: channelList{list}}, err
			}),
		}, {
			method: "POST", path: "/channels/test", name: "testChannel", tag: tagNotifications,
			summary: "Send a test over a channel",
			doc: "Sends the test to the caller, or to the channel's configured destination. The server answers once the " +
				"channel has answered, or after 25 seconds; the status field of the returned notification is the result of " +
				"the test.",
			roles: admins, status: http.StatusOK, out: typeOf[gatehouse.Notification](),
			codes:   []gatehouse.Code{gatehouse.CodeNotFound},
			example: `{"channel":"mail"}`,
			handler: body(nil, func(ctx context.Context, _ *call, in *channelName) (reply, error) {
				return answer(n.TestChannel(ctx, in.Channel))
			}),
		},
	}
}

// knownChannel returns an error if no channel has the name. It is for empty answers only, because messages of
// a former channel are still listed.
func knownChannel(ctx context.Context, n gatehouse.NotificationService, pointer, name string) error {
	if name == "" {
		return nil
	}
	channels, err := n.ListChannels(ctx)
	if err != nil || slices.ContainsFunc(channels,
		func(s *gatehouse.ChannelState) bool { return s.Channel == name }) {
		return err
	}
	return unknownName(pointer, "channel", name)
}

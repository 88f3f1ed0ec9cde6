package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// preferenceRoutes let people choose which messages they get.
func (s *Server) preferenceRoutes() []route {
	p := s.cfg.Preferences
	if p == nil {
		return nil
	}
	return []route{
		{
			method: "GET", path: "/notifications/preferences", name: "listPreferences", tag: tagNotifications,
			summary: "List which messages you want",
			doc:     "The caller's own preference for each channel of the tenant that sends to persons.",
			status:  http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Preference]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) { return list(p.ListPreferences(ctx)) }),
		}, {
			method: "PUT", path: "/notifications/preferences", name: "setPreference", tag: tagNotifications,
			summary: "Choose which messages you want on a channel",
			doc: "Replaces the caller's own preference for the channel. Messages about a muted topic get the status " +
				"muted, except questions and alerts that no other working channel sends. Questions and alerts can be muted " +
				"only while another channel that reaches the caller keeps them.",
			status: http.StatusOK, out: typeOf[gatehouse.Preference](),
			example: `{"channel":"mail","muted":["digests"],"quiet":{"from":"20:00","to":"07:00"}}`,
			handler: body(nil, func(ctx context.Context, _ *call, in *gatehouse.PreferenceChange) (reply, error) {
				return answer(p.SetPreference(ctx, *in))
			}),
		},
	}
}

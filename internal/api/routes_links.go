package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// linkKeyRoutes manage the keys that sign the links in mails.
func (s *Server) linkKeyRoutes() []route {
	k := s.cfg.LinkKeys
	if k == nil {
		return nil
	}
	return []route{
		{
			method: "GET", path: "/links/keys", name: "listLinkKeys", tag: tagAdmin,
			summary: "List the keys that sign links",
			doc: "Lists the keys of the caller's tenant, the newest first, without their secrets. retired keys verify links, " +
				"but sign no new ones.",
			roles: admins, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.RingKey]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) { return list(k.ListLinkKeys(ctx)) }),
		}, {
			method: "POST", path: "/links/keys/rotate", name: "rotateLinkKeys", tag: tagAdmin,
			summary: "Sign links with a new key",
			doc: "Links that were already sent stay valid until they expire. The server rotates keys by itself: see " +
				"links.rotate_every of the configuration.",
			roles: admins, changesRights: true, status: http.StatusOK, out: typeOf[gatehouse.RingKey](),
			codes:   []gatehouse.Code{gatehouse.CodeUnsupported},
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) { return answer(k.RotateLinkKeys(ctx)) }),
		}, {
			method: "POST", path: "/links/keys/{id}/revoke", name: "revokeLinkKey", tag: tagAdmin,
			summary: "End all links that a key has signed",
			doc:     "The links end at once. An active key is replaced by a new one if the server has a master key.",
			roles:   admins, changesRights: true, object: ObjectLinkKey, status: http.StatusOK, out: typeOf[gatehouse.RingKey](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(k.RevokeLinkKey(ctx, c.id))
			}),
		},
	}
}

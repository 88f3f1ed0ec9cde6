package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// secretRoutes manage the secrets of the store. They store no answers under an
// Idempotency-Key, because the store would then hold a hash of the secret.
func (s *Server) secretRoutes() []route {
	k := s.cfg.Secrets
	if k == nil {
		return nil
	}
	codes := []gatehouse.Code{gatehouse.CodeUnsupported}
	return []route{
		{
			method: "GET", path: "/secrets", name: "listSecrets", tag: tagAdmin,
			summary: "List the secrets of the store",
			doc: "Lists the secrets of the caller's tenant by name, never a value. A missing secret is one that the " +
				"configuration names and nobody has set. An unreadable secret is sealed under a master key that the server " +
				"does not have, or its key or value is damaged.",
			roles: admins, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Secret]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) { return list(k.ListSecrets(ctx)) }),
		}, {
			method: "POST", path: "/secrets", name: "setSecret", tag: tagAdmin,
			summary: "Store a secret",
			doc:     "The name must be new, or its secret revoked. Connectors that name the secret use it within seconds.",
			roles:   admins, changesRights: true, status: http.StatusCreated, out: typeOf[gatehouse.Secret](),
			codes:   append(codes, gatehouse.CodeAlreadyExists),
			example: `{"name":"shop-token","value":"value"}`,
			handler: body(nil, func(ctx context.Context, _ *call, in *gatehouse.NewSecret) (reply, error) {
				return answer(k.SetSecret(ctx, *in))
			}),
		}, {
			method: "POST", path: "/secrets/{id}/rotate", name: "rotateSecret", tag: tagAdmin,
			summary: "Replace the value of a secret",
			doc:     "Connectors use the new value within seconds, without a restart; approvals stay.",
			roles:   admins, changesRights: true, object: ObjectSecret, status: http.StatusOK, out: typeOf[gatehouse.Secret](),
			codes:   codes,
			example: `{"value":"value"}`,
			handler: body(nil, func(ctx context.Context, c *call, in *gatehouse.SecretValue) (reply, error) {
				return answer(k.RotateSecret(ctx, gatehouse.NewSecret{Name: c.id, Value: in.Value}))
			}),
		}, {
			method: "POST", path: "/secrets/{id}/revoke", name: "revokeSecret", tag: tagAdmin,
			summary: "Delete the value of a secret",
			doc: "Pushes of its connectors wait, and become dead letters if the secret is not set again. A repeated call " +
				"changes nothing.",
			roles: admins, changesRights: true, object: ObjectSecret, status: http.StatusOK, out: typeOf[gatehouse.Secret](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) { return answer(k.RevokeSecret(ctx, c.id)) }),
		},
	}
}

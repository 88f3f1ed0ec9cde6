package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// connectorRoutes read and propose the connectors in the store.
func (s *Server) connectorRoutes() []route {
	m := s.cfg.Connectors
	if m == nil {
		return nil
	}
	connectorReaders := []gatehouse.Role{gatehouse.RoleOperator, gatehouse.RoleAdmin}
	return []route{
		{
			method: "GET", path: "/connector-versions", name: "listConnectorVersions", tag: tagAdmin,
			summary: "List the versions of the connectors in the store",
			doc: "Lists the newest first, without their source. Only for the tenant default, whose administrators run the " +
				"server.",
			roles: connectorReaders, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.ConnectorVersion]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return list(m.ListConnectorVersions(ctx))
			}),
		}, {
			method: "POST", path: "/connector-versions/propose", name: "proposeConnectors", tag: tagAdmin,
			summary: "Propose to replace the connectors in the store",
			doc: "Makes an action of L4 that shows the difference, and that another person must approve. Its push stores the " +
				"next " +
				"version, which every replica uses within seconds. Secrets are named, never literal.",
			roles: admins, changesRights: true, status: http.StatusCreated, out: typeOf[gatehouse.Action](), idempotent: true,
			codes:   []gatehouse.Code{gatehouse.CodeTargetChanged, gatehouse.CodeUnsupported},
			example: `{"source":"connectors: {}\n","base":0}`,
			handler: body((*gatehouse.ConnectorProposal).Validate,
				func(ctx context.Context, _ *call, in *gatehouse.ConnectorProposal) (reply, error) {
					return answer(m.ProposeConnectors(ctx, *in))
				}),
		}, {
			method: "GET", path: "/connector-versions/newest", name: "getNewestConnectors", tag: tagAdmin,
			summary: "Read the connectors in the store", doc: "The newest version, with its source.",
			roles: connectorReaders, status: http.StatusOK, out: typeOf[gatehouse.ConnectorVersion](),
			codes:   []gatehouse.Code{gatehouse.CodeNotFound},
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) { return answer(m.FindConnectors(ctx, 0)) }),
		}, {
			method: "GET", path: "/connector-versions/{id}", name: "getConnectors", tag: tagAdmin,
			summary: "Read a version of the connectors in the store", doc: "{id} is its number.",
			roles: connectorReaders, object: ObjectConnectorVersion,
			status: http.StatusOK, out: typeOf[gatehouse.ConnectorVersion](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				version, err := numberOf(c.id, ObjectConnectorVersion)
				if err != nil {
					return reply{}, err
				}
				return answer(m.FindConnectors(ctx, version))
			}),
		},
	}
}

package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// deletedGroup is the answer to the deletion of a group.
type deletedGroup struct {
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
}

func (s *Server) groupRoutes() []route {
	return []route{
		{
			method: "GET", path: "/groups", name: "listGroups", tag: tagAdmin,
			summary: "List groups",
			doc: "The groups of the caller's tenant, with their members and where each membership comes from: hand, or " +
				"the issuer of a sign-in provider.",
			roles: admins, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Group]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return list(s.cfg.Admin.ListGroups(ctx))
			}),
		}, {
			method: "GET", path: "/groups/{id}", name: "getGroup", tag: tagAdmin,
			summary: "Read a group", doc: "{id} is its name.",
			roles: admins, object: ObjectGroup, status: http.StatusOK, out: typeOf[gatehouse.Group](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Admin.FindGroup(ctx, c.id))
			}),
		}, {
			method: "PUT", path: "/groups/{id}", name: "putGroup", tag: tagAdmin,
			summary: "Make a group, or set its members",
			doc: "{id} is its name. The given members, by id or name, replace those that were set by hand; members that " +
				"come from a sign-in stay. With new, a group that exists is refused (already_exists) and keeps its members.",
			codes: []gatehouse.Code{gatehouse.CodeAlreadyExists},
			roles: admins, changesRights: true, status: http.StatusOK, out: typeOf[gatehouse.Group](),
			example: `{"members":["ana"]}`,
			handler: body(nil, func(ctx context.Context, c *call, in *gatehouse.GroupMembers) (reply, error) {
				return answer(s.cfg.Admin.PutGroup(ctx, c.id, *in))
			}),
		}, {
			method: "PATCH", path: "/groups/{id}", name: "changeGroup", tag: tagAdmin,
			summary: "Add or remove members",
			doc: "Adds members by hand; removes members of every source. A member that comes from a sign-in is a member again " +
				"after " +
				"the next sign-in, unless the provider says otherwise.",
			roles: admins, changesRights: true, object: ObjectGroup, status: http.StatusOK, out: typeOf[gatehouse.Group](),
			example: `{"add":["ana"],"remove":["ben"]}`,
			handler: body(nil, func(ctx context.Context, c *call, in *gatehouse.GroupChange) (reply, error) {
				return answer(s.cfg.Admin.ChangeGroup(ctx, c.id, *in))
			}),
		}, {
			method: "DELETE", path: "/groups/{id}", name: "deleteGroup", tag: tagAdmin,
			summary: "Delete a group", doc: "Ends every membership at once: nobody can answer open approvals that ask only " +
				"this group.",
			roles: admins, changesRights: true, object: ObjectGroup, status: http.StatusOK, out: typeOf[deletedGroup](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return reply{value: deletedGroup{c.id, true}}, s.cfg.Admin.DeleteGroup(ctx, c.id)
			}),
		},
	}
}

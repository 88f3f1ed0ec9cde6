package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *Server) conversationRoutes() []route {
	codes := []gatehouse.Code{gatehouse.CodeAlreadyDecided, gatehouse.CodeExpired, gatehouse.CodeSelfApproval}
	return []route{
		{
			method: "POST", path: "/proposed-actions/{id}/comments", name: "comment", tag: tagActions,
			summary: "Ask, answer or comment on a pending action",
			doc: "People who may decide the action, its proposer and administrators may comment. Questions go to the " +
				"proposer. Only the proposer answers; an answer gives the question's number in answers. A comment decides " +
				"nothing. The conversation ends with the decision, and is in the action's comments. The log has the digest " +
				"of each text.",
			roles: []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleAdmin}, object: ObjectAction,
			status: http.StatusCreated, out: typeOf[gatehouse.Action](), idempotent: true, codes: codes,
			example: `{"text":"why?","kind":"question"}`,
			handler: body((*gatehouse.CommentRequest).Validate,
				func(ctx context.Context, c *call, in *gatehouse.CommentRequest) (reply, error) {
					return answer(s.cfg.Actions.Comment(ctx, c.id, *in))
				}),
		}, {
			method: "POST", path: "/proposed-actions/{id}/assign", name: "assign", tag: tagActions,
			summary: "Assign a pending action to a person",
			doc: "People who may decide the action, and administrators, may assign it to a person who may decide it. The " +
				"assignee is an id or a name; an empty assignee removes the assignment. The person is notified, and lists show " +
				"the assignment. An assignment does not change who may decide.",
			roles: []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleAdmin}, object: ObjectAction,
			status: http.StatusOK, out: typeOf[gatehouse.Action](), idempotent: true, codes: codes,
			example: `{"assignee":"ben"}`,
			handler: body(checkAssign, func(ctx context.Context, c *call, in *gatehouse.AssignRequest) (reply, error) {
				return answer(s.cfg.Actions.Assign(ctx, c.id, *in))
			}),
		},
	}
}

func checkAssign(r *gatehouse.AssignRequest) error {
	var v gatehouse.Violations
	v.CheckText("/assignee", r.Assignee, 128)
	return v.Err()
}

// checkNames is for a list without items: it returns an error if a filter names a group, principal or workflow
// that does not exist. Old actions can name a deleted group, so a list with items is not checked. Agents and
// services get the empty list instead of an error: they must not learn which names exist.
func (s *Server) checkNames(ctx context.Context, c *call) error {
	if c.caller.Principal.Kind != gatehouse.KindPerson {
		return nil
	}
	principal := func(name string) error { _, err := s.cfg.Admin.FindPrincipal(ctx, name); return err }
	for _, one := range []struct {
		param, what string
		find        func(name string) error
	}{
		{"group", "group", func(name string) error { _, err := s.cfg.Admin.FindGroup(ctx, name); return err }},
		{"assignee", "principal", principal},
		{"proposed_by", "principal", principal},
		{"workflow", "workflow", func(name string) error { _, err := s.cfg.Runs.FindWorkflow(ctx, name, 0); return err }},
	} {
		name := c.query[one.param]
		if name == "" || one.param == "assignee" && name == "me" {
			continue
		}
		switch err := one.find(name); {
		case gatehouse.CodeOf(err) == gatehouse.CodeNotFound:
			return unknownName(pointerTo(one.param), one.what, name)
		case err != nil:
			return err
		}
	}
	return nil
}

// unknownName is the error of a filter by a name that does not exist.
func unknownName(pointer, what, name string) error {
	detail := "names a " + what + " that does not exist: " + gatehouse.Quote(name)
	return gatehouse.Violations{{Pointer: pointer, Detail: detail}}.Err()
}

// assigneeOf is the assignee that a list is filtered by; me is the caller.
func assigneeOf(ctx context.Context, c *call) (string, error) {
	name := c.query["assignee"]
	if name != "me" {
		return name, nil
	}
	caller, err := gatehouse.CachedCallerFrom(ctx)
	if err != nil {
		return "", err
	}
	return caller.Principal.ID, nil
}

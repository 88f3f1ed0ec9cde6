package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// mandateRoutes let agents propose plans, and people stop approved plans.
func (s *Server) mandateRoutes() []route {
	m := s.cfg.Mandates
	if m == nil {
		return nil
	}
	mandateReaders := append([]gatehouse.Role{gatehouse.RoleProposer}, grantReaders...)
	people := []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleAdmin}
	change := func(path, name, summary, doc string, fn func(context.Context, string) (*gatehouse.Mandate, error)) route {
		return route{
			method: "POST", path: "/mandates/{id}/" + path, name: name, tag: tagDecisions, summary: summary, doc: doc,
			roles: people, changesRights: true, object: ObjectMandate, idempotent: true,
			status: http.StatusOK, out: typeOf[gatehouse.Mandate](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) { return answer(fn(ctx, c.id)) }),
		}
	}
	resume := change("resume", "resumeMandate", "Resume a paused mandate",
		"An approver who may decide what the agent proposes may resume it.", m.ResumeMandate)
	resume.codes = []gatehouse.Code{gatehouse.CodeSelfApproval}
	return []route{
		{
			method: "GET", path: "/mandates", name: "listMandates", tag: tagDecisions,
			summary: "List mandates",
			doc: "Lists the newest 500 mandates of the tenant, newest first, including ended ones. A caller with the role " +
				"proposer only reads its own.",
			roles: mandateReaders, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Mandate]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) { return list(m.ListMandates(ctx)) }),
		}, {
			method: "POST", path: "/mandates", name: "proposeMandate", tag: tagDecisions,
			summary: "Propose a plan",
			doc: "Proposes an action of L4 that shows the most that the plan allows. When people have approved the action, " +
				"its push creates the mandate. From then on, the calling agent's actions within the mandate are approved at " +
				"once. The active policy has to allow mandates, and still judges each action. goal only explains the plan: the " +
				"mandate covers what steps say.",
			roles: []gatehouse.Role{gatehouse.RoleProposer}, status: http.StatusCreated, out: typeOf[gatehouse.Action](),
			idempotent: true,
			example: `{"goal":"pay back","steps":[{"action_type":"refund","connector":"shop","operation":"refund",` +
				`"entity_type":"order","when":"true","count":3,"amounts":[{"amount":"10.00","currency":"EUR"}]}],"for":"48h"}`,
			handler: body(nil, func(ctx context.Context, _ *call, in *gatehouse.Plan) (reply, error) {
				return answer(m.ProposeMandate(ctx, *in))
			}),
		}, {
			method: "GET", path: "/mandates/{id}", name: "getMandate", tag: tagDecisions,
			summary: "Read a mandate", doc: "Returns the mandate with its limits, and the used part of each limit.",
			roles: mandateReaders, object: ObjectMandate, status: http.StatusOK, out: typeOf[gatehouse.Mandate](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) { return answer(m.FindMandate(ctx, c.id)) }),
		}, {
			method: "POST", path: "/mandates/{id}/narrow", name: "narrowMandate", tag: tagDecisions,
			summary: "Lower the limits of a mandate at once",
			doc: "Any approver or administrator may lower them. An omitted limit does not change. If the count of " +
				"in_all is already used up, the mandate ends. Wider limits need a new plan.",
			roles: people, changesRights: true, object: ObjectMandate, idempotent: true,
			status: http.StatusOK, out: typeOf[gatehouse.Mandate](),
			example: `{"in_all":{"count":2}}`,
			handler: body(nil, func(ctx context.Context, c *call, in *gatehouse.Narrowing) (reply, error) {
				return answer(m.NarrowMandate(ctx, c.id, *in))
			}),
		},
		change("pause", "pauseMandate", "Pause a mandate at once",
			"Any approver or administrator may pause it. A failed action, or one of unknown outcome, pauses it too. A repeated "+
				"call changes nothing.",
			m.PauseMandate),
		resume,
		change("revoke", "revokeMandate", "End a mandate at once",
			"Any approver or administrator may end it. Actions that it approved stay approved. A repeated call changes "+
				"nothing.", m.RevokeMandate),
	}
}

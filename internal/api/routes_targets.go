package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// targetRoutes read targets, and take reports of changes in target systems.
func (s *Server) targetRoutes() []route {
	t := s.cfg.Targets
	if t == nil {
		return nil
	}
	return []route{{
		method: "GET", path: "/proposed-actions/{id}/target", name: "readTarget", tag: tagActions,
		summary: "Read the target of an action now",
		doc: "The connector reads the target of a pending action, or what the reversal of an applied action would change. " +
			"Nothing is changed. cannot_rebase: the state cannot be read. busy: the target did not answer. A program may read " +
			"only the targets of its own actions.",
		roles: []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator}, object: ObjectAction,
		status: http.StatusOK, out: typeOf[gatehouse.TargetState](),
		codes: []gatehouse.Code{gatehouse.CodeCannotRebase},
		handler: noBody(func(ctx context.Context, c *call) (reply, error) {
			return answer(t.ReadTarget(ctx, c.id))
		}),
	}, {
		method: "GET", path: "/proposed-actions/{id}/preview", name: "previewAction", tag: tagActions,
		summary: "Ask the target what a pending action would do",
		doc: "A dry run, or a transaction that is rolled back: nothing is changed, and the preview decides nothing. none " +
			"says why there is no preview. " +
			"busy: the target did not answer. Only for people, and only if can_preview is set.",
		roles: []gatehouse.Role{
			gatehouse.RoleApprover, gatehouse.RoleOperator, gatehouse.RoleAdmin, gatehouse.RoleAuditor,
		}, object: ObjectAction, status: http.StatusOK, out: typeOf[gatehouse.Preview](),
		handler: noBody(func(ctx context.Context, c *call) (reply, error) {
			return answer(t.Preview(ctx, c.id))
		}),
	}, {
		method: "POST", path: "/targets/changed", name: "targetChanged", tag: tagActions,
		summary: "Report that an entity in a target system has changed",
		doc: "Marks the open actions on the entity that were proposed on another version: their cards say so, and an " +
			"approver gets target_changed, unless the connector reads the target itself. One call marks at most 200 " +
			"actions; if more is true, repeat the request. It marks only actions that lack the mark. action_ids is empty " +
			"for an agent that may read only its own actions.",
		roles:  []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleOperator},
		status: http.StatusOK, out: typeOf[gatehouse.TargetChanges](), idempotent: true,
		example: `{"connector":"shop","entity_type":"item","entity_ref":"SKU-1","version":"8"}`,
		handler: body(
			(*gatehouse.TargetChange).Validate,
			func(ctx context.Context, _ *call, in *gatehouse.TargetChange) (reply, error) {
				return answer(t.TargetChanged(ctx, *in))
			},
		),
	}}
}

// TargetHooks takes the signed reports of target systems.
type TargetHooks interface {
	// ReportTarget marks the open actions on the entity that a report names. A
	// repeated delivery gets the first answer, and replayed true. The context has no
	// caller: the signature over headers and body is the authority. An unknown
	// source is an error with code not_found, a missing or wrong signature one with
	// code bad_signature.
	ReportTarget(ctx context.Context, source string, h http.Header, body []byte) (
		out *gatehouse.TargetChanges, replayed bool, err error)
}

// reported is the answer to a report.
type reported struct {
	Marked int `json:"marked"`
}

// targetHookRoute is served outside the pipeline, because senders have no key.
var targetHookRoute = route{
	method: "POST", path: "/hooks/targets/{source}", name: "reportTarget", tag: tagActions,
	summary: "Report a changed target, signed",
	doc: "Needs no key: the signature that the configuration requires of this source is the authority. Marks open " +
		"actions as POST /targets/changed does, but only on entities of the source's connector. A repeated delivery gets " +
		"the first answer, with Idempotency-Replayed: true.",
	status: http.StatusOK, out: typeOf[reported](), open: true,
	codes: []gatehouse.Code{gatehouse.CodeBadSignature, gatehouse.CodeNotFound, gatehouse.CodeKeyReused},
}

func (s *Server) receiveTarget(w http.ResponseWriter, r *http.Request) (int, error) {
	source := r.PathValue("source")
	_, body, err := s.readHook(w, r, &targetHookRoute, "targets/"+source)
	if err != nil {
		return 0, err
	}
	out, replayed, err := s.cfg.TargetHooks.ReportTarget(r.Context(), source, r.Header, body)
	if gatehouse.CodeOf(publicError(err)) == gatehouse.CodeNotFound {
		err = noHook()
	}
	if err != nil {
		return 0, err
	}
	if replayed {
		w.Header()["Idempotency-Replayed"] = headerTrue
	}
	return http.StatusOK, s.write(w, http.StatusOK, &call{}, reported{out.Marked})
}

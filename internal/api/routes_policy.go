package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

const tagPolicy = "Policies"

// policySource is a policy's YAML.
type policySource struct {
	Source string `json:"source"`
}

func (s *Server) policyRoutes() []route {
	return []route{
		{
			method: "POST", path: "/policies", name: "applyPolicy", tag: tagPolicy,
			summary: "Store a policy and make it the active one",
			doc: "201 when it is a new version, 200 with unchanged when it is the active version already. A policy that " +
				"does not load gets 422 with line and column, and nothing changes.",
			roles: admins, changesRights: true, status: http.StatusCreated,
			out: typeOf[gatehouse.PolicyVersion](), idempotent: true,
			codes:   []gatehouse.Code{gatehouse.CodePolicyGated},
			example: `{"source":"rules: []"}`,
			handler: body(func(in *policySource) error { return requireSource(in.Source) },
				func(ctx context.Context, _ *call, in *policySource) (reply, error) {
					v, err := s.cfg.Policies.ApplyPolicy(ctx, in.Source)
					out, err := answer(v, err)
					if err == nil && v.Unchanged {
						out.status = http.StatusOK
					}
					return out, err
				}),
		}, {
			method: "POST", path: "/policies/propose", name: "proposePolicy", tag: tagPolicy,
			summary: "Propose to replace the active policy",
			doc: "Makes an action of L4 that shows the difference, and that another person must approve; its push applies the " +
				"policy. " +
				"Where the active policy says policy_changes: gated, there is no other way.",
			roles: admins, changesRights: true, status: http.StatusCreated, out: typeOf[gatehouse.Action](), idempotent: true,
			example: `{"source":"rules: []\n"}`,
			codes:   []gatehouse.Code{gatehouse.CodeNotFound},
			handler: body(func(in *gatehouse.PolicyProposal) error { return requireSource(in.Source) },
				func(ctx context.Context, _ *call, in *gatehouse.PolicyProposal) (reply, error) {
					return answer(s.cfg.Policies.ProposePolicy(ctx, *in))
				}),
		}, {
			method: "GET", path: "/policies", name: "listPolicies", tag: tagPolicy,
			summary: "List policy versions", doc: "Lists the newest first, without their source.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.PolicyVersion]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return list(s.cfg.Policies.ListPolicies(ctx))
			}),
		}, {
			method: "GET", path: "/policies/active", name: "getActivePolicy", tag: tagPolicy,
			summary: "Read the active policy", doc: "Returns the policy with its source.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.PolicyVersion](),
			codes: []gatehouse.Code{gatehouse.CodeNotFound},
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return answer(s.cfg.Policies.ActivePolicy(ctx))
			}),
		}, {
			method: "GET", path: "/policies/usage", name: "getPolicyUsage", tag: tagPolicy,
			summary: "Show the use of the ceilings",
			doc: "The used and the free part of each account of the active policy's ceilings, at most 50 per ceiling, the " +
				"fullest first. " +
				"An agent that may read only its own actions sees neither the accounts of other agents nor those of targets.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.CeilingAccount]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return list(s.cfg.Policies.PolicyUsage(ctx))
			}),
		}, {
			method: "GET", path: "/policies/{id}", name: "getPolicy", tag: tagPolicy,
			summary: "Read a policy version", doc: "{id} is its number.",
			roles: readers, object: ObjectPolicy, status: http.StatusOK, out: typeOf[gatehouse.PolicyVersion](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				version, err := versionOf(c.id)
				if err != nil {
					return reply{}, err
				}
				return answer(s.cfg.Policies.FindPolicy(ctx, version))
			}),
		}, {
			method: "POST", path: "/policies/{id}/activate", name: "activatePolicy", tag: tagPolicy,
			summary: "Make a stored version the active one",
			doc: "{id} is its number. An action keeps the version that judged it; the active version can only veto the " +
				"action.",
			roles: admins, changesRights: true, object: ObjectPolicy, status: http.StatusOK,
			out:   typeOf[gatehouse.PolicyVersion](),
			codes: []gatehouse.Code{gatehouse.CodePolicyGated},
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				version, err := versionOf(c.id)
				if err != nil {
					return reply{}, err
				}
				return answer(s.cfg.Policies.ActivatePolicy(ctx, version))
			}),
		}, {
			method: "POST", path: "/policies/explain", name: "explainPolicy", tag: tagPolicy,
			summary: "Show how a proposal would be judged", doc: "Takes a proposal and stores nothing. It is judged as a " +
				"proposal of the caller. If fewer people may answer than must approve, the outcome is deny, with that reason " +
				"first. Only a caller with the role proposer counts as the proposer, who may not answer.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.Explanation](),
			codes:   []gatehouse.Code{gatehouse.CodeUnsupported},
			example: exampleProposal,
			handler: body((*gatehouse.Proposal).Validate,
				func(ctx context.Context, _ *call, in *gatehouse.Proposal) (reply, error) {
					return answer(s.cfg.Policies.ExplainPolicy(ctx, in))
				}),
		},
	}
}

// versionOf parses a policy version from the path; anything else is not found.
func versionOf(id string) (int, error) { return numberOf(id, ObjectPolicy) }

// numberOf parses the number of a version.
func numberOf(id, kind string) (int, error) {
	version, err := strconv.Atoi(id)
	if err != nil || version < 1 || strconv.Itoa(version) != id {
		return 0, gatehouse.E(gatehouse.CodeNotFound, "no such %s", strings.ReplaceAll(kind, "_", " "))
	}
	return version, nil
}

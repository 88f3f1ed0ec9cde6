package github

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// merge merges the approved commit: GitHub compares it with the head. Only another pull request can
// reverse it.
func (c *Connector) merge(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	state, failed := c.readAndCompare(ctx, call)
	if failed != nil {
		return connector.Result{}, failed
	}
	if open, _ := rest.TextOf(state, "state"); open != "open" {
		return connector.Result{}, &connector.Error{
			Kind:   connector.Terminal,
			Code:   string(gatehouse.CodeTargetChanged),
			Detail: "the pull request is not open any more",
		}
	}
	_, number := splitReference(call)
	fields, _ := call.ProposedChange.Fields()
	body := append(fields, gatehouse.Member{Name: "sha", Value: gatehouse.StringJSON(call.Target.Version)})
	res, doc, failed := c.send(ctx, http.MethodPut, path(call, "pulls", number, "merge"),
		gatehouse.ObjectJSON(body...), http.StatusOK)
	if failed != nil {
		switch failed.Code {
		case "http_409":
			failed.Code = string(gatehouse.CodeTargetChanged)
			failed.Detail = "the head of the pull request has another commit now"
		case "http_405":
			failed.Code = "not_mergeable"
			failed.Detail = "GitHub does not merge it: checks, reviews, protection or a conflict"
		}
		return res, failed
	}
	res.ExternalID, _ = rest.TextOf(doc, "sha")
	return res, notAsApproved(doc, gatehouse.Member{Name: "merged", Value: "true"})
}

// merged checks whether the approved commit was merged into the approved branch.
func (c *Connector) merged(
	ctx context.Context, call connector.Call,
) (commit string, there bool, failed *connector.Error) {
	state, _, failed := c.read(ctx, call)
	if failed != nil {
		return "", false, failed
	}
	head, _ := rest.TextOf(state, "head")
	base, _ := rest.TextOf(state, "base")
	want, _ := rest.TextOf(call.CurrentState, "base")
	merged, _ := state.Get("merged")
	commit, _ = rest.TextOf(state, "merge_commit_sha")
	return commit, merged == "true" && head == call.Target.Version && base == want, nil
}

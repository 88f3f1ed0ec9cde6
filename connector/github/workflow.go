package github

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// dispatch starts a workflow. If the workflow receives the action's id, a second attempt first
// checks whether the first one succeeded.
func (c *Connector) dispatch(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	if call.Attempt > 1 && c.input != "" {
		run, there, failed := c.started(ctx, call)
		if failed != nil {
			return connector.Result{}, rest.NothingSent(failed)
		}
		if there {
			return runResult(call, run), nil
		}
	}
	_, file := splitReference(call)
	fields, _ := call.ProposedChange.Fields()
	var body []gatehouse.Member
	inputs := gatehouse.JSON("{}")
	for _, m := range fields {
		if m.Name == "inputs" {
			inputs = m.Value
			continue
		}
		body = append(body, m)
	}
	given, _ := inputs.Fields()
	if c.input != "" {
		given = append(given, gatehouse.Member{Name: c.input, Value: gatehouse.StringJSON(call.ActionID)})
	}
	if len(given) > 0 {
		body = append(body, gatehouse.Member{Name: "inputs", Value: gatehouse.ObjectJSON(given...)})
	}
	if c.runDetails {
		body = append(body, gatehouse.Member{Name: "return_run_details", Value: "true"})
	}
	res, doc, failed := c.send(ctx, http.MethodPost, path(call, "actions", "workflows", file, "dispatches"),
		gatehouse.ObjectJSON(body...), http.StatusOK, http.StatusNoContent)
	if failed != nil {
		return res, failed
	}
	if id, ok := doc.Get("workflow_run_id"); ok {
		started := runResult(call, id)
		res.ExternalID, res.Reversal = started.ExternalID, started.Reversal
	}
	return res, nil
}

// runResult is the result for a started run. Canceling it is a weak reversal: the effects of its
// jobs remain.
func runResult(call connector.Call, id gatehouse.JSON) connector.Result {
	ref := reference(call, id)
	return connector.Result{
		ExternalID: ref, ResponseMetadata: gatehouse.ObjectJSON(gatehouse.Member{Name: "workflow_run_id", Value: id}),
		Reversal: &gatehouse.Reversal{
			Operation: opCancelRun, Target: gatehouse.Target{EntityType: "run", EntityRef: ref},
			ProposedChange: `{"canceled":true}`,
		},
	}
}

// started searches for the run that an earlier attempt started: its title contains the action's id. Nothing is
// compared, because GitHub does not show the inputs of a run, and nobody can edit a run.
func (c *Connector) started(
	ctx context.Context, call connector.Call,
) (id gatehouse.JSON, there bool, failed *connector.Error) {
	_, file := splitReference(call)
	query := url.Values{"event": {"workflow_dispatch"}}
	if from := since(call); from != "" {
		query.Set("created", ">="+from)
	}
	at := path(call, "actions", "workflows", file, "runs")
	run, there, failed := c.search(ctx, at, query, "workflow_runs", "runs", func(run gatehouse.JSON) bool {
		title, _ := rest.TextOf(run, "display_title")
		return strings.Contains(title, call.ActionID)
	})
	if !there {
		return "", false, failed
	}
	id, there = run.Get("id")
	return id, there, nil
}

// since is a minute before the action was proposed; "" if that time is not known.
func since(call connector.Call) string {
	at := call.ProposedAt()
	if at.IsZero() {
		return ""
	}
	return at.Add(-time.Minute).UTC().Format(time.RFC3339)
}

// cancelRun asks a run to stop. The run may still complete.
func (c *Connector) cancelRun(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	state, failed := c.readAndCompare(ctx, call)
	if failed != nil {
		return connector.Result{}, failed
	}
	if status, _ := rest.TextOf(state, "status"); status == "completed" {
		return connector.Result{}, rest.TargetChanged("the run is over")
	}
	_, id := splitReference(call)
	res, _, failed := c.send(ctx, http.MethodPost, path(call, "actions", "runs", id, "cancel"), "", http.StatusAccepted)
	res.ExternalID = call.Target.EntityRef
	return res, failed
}

package github

import (
	"context"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// ReadBack implements [connector.ReadBacker]. It never returns Absent, because an earlier call may
// still arrive.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	res, there, failed := c.readBack(ctx, call)
	switch {
	case failed != nil && !there:
		return connector.Inconclusive, connector.Result{}, failed
	case failed != nil || !there:
		return connector.Inconclusive, connector.Result{}, nil //nolint:nilerr // an effect that differs proves nothing
	}
	return connector.Present, res, nil
}

// readBack returns true together with a failure if the effect is there, but not proven to be as approved.
func (c *Connector) readBack(ctx context.Context, call connector.Call) (connector.Result, bool, *connector.Error) {
	res := connector.Result{ExternalID: call.Target.EntityRef}
	switch call.Operation {
	case opComment:
		made, there, failed := c.commented(ctx, call)
		if !there {
			return res, false, failed
		}
		res, failed = commentResult(call, made)
		return res, true, failed
	case opAddLabel, opRemoveLabel:
		state, there, failed := c.read(ctx, call)
		name, _ := rest.TextOf(call.ProposedChange, "label")
		return res, there && has(state, name) == (call.Operation == opAddLabel), failed
	case opMerge:
		commit, there, failed := c.merged(ctx, call)
		res.ExternalID = commit
		return res, there, failed
	case opDispatch:
		if c.input == "" {
			return res, false, nil
		}
		run, there, failed := c.started(ctx, call)
		if !there {
			return res, false, failed
		}
		return runResult(call, run), true, nil
	case opRelease:
		made, there, failed := c.released(ctx, call)
		if !there {
			return res, false, failed
		}
		if res, failed = releaseResult(call, made); failed == nil {
			failed = c.checkTag(ctx, call)
		}
		return res, true, failed
	case opCancelRun:
		state, there, failed := c.read(ctx, call)
		status, _ := rest.TextOf(state, "conclusion")
		return res, there && status == "cancelled", failed
	}
	// An entity that cannot be seen is not necessarily deleted.
	return res, false, nil
}

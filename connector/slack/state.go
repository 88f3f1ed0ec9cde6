package slack

import (
	"context"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// compare reports how a message differs from a call's pre-image.
func compare(call connector.Call, m message, there bool) connector.State {
	if !there {
		return connector.State{Expected: call.CurrentState, Actual: "null"}
	}
	if want, _ := rest.TextOf(call.CurrentState, "text"); !unchanged(want, m.text("text")) {
		return connector.State{Expected: textState(want), Actual: textState(m.text("text"))}
	}
	return connector.State{Matches: true}
}

// Checks implements [connector.SelectiveChecker].
func (c *Connector) Checks(call connector.Call) bool { return call.Operation != opPost }

// Check implements [connector.Checker].
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	if !c.Checks(call) {
		return connector.State{Matches: true, Unchecked: true}, nil
	}
	channel, ts := channelAndTimestamp(call)
	m, there, failed := c.find(ctx, channel, ts)
	if failed != nil {
		return connector.State{}, failed
	}
	return compare(call, m, there), nil
}

// ReadsState implements [connector.StateReader].
func (c *Connector) ReadsState(call connector.Call) bool { return c.Checks(call) }

// ReadState implements [connector.StateReader].
func (c *Connector) ReadState(ctx context.Context, call connector.Call) (connector.Snapshot, error) {
	if !c.ReadsState(call) {
		return connector.Snapshot{}, &connector.Error{
			Kind: connector.Terminal, Code: "unsupported", Detail: "a message that is not posted yet has no state",
		}
	}
	channel, ts := channelAndTimestamp(call)
	m, there, failed := c.find(ctx, channel, ts)
	switch {
	case failed != nil:
		return connector.Snapshot{}, failed
	case !there:
		return connector.Snapshot{Gone: true}, nil
	}
	return connector.Snapshot{
		Matches: compare(call, m, true).Matches, CurrentState: textState(m.text("text")),
	}, nil
}

// ReadBack implements [connector.ReadBacker]. A posted message that is not found proves nothing,
// because an earlier call may still arrive.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	finding, res, failed := c.readBack(ctx, call)
	if failed != nil {
		return connector.Inconclusive, connector.Result{}, failed
	}
	return finding, res, nil
}

func (c *Connector) readBack(
	ctx context.Context, call connector.Call,
) (connector.Finding, connector.Result, *connector.Error) {
	if call.Operation == opPost {
		m, there, failed := c.posted(ctx, call)
		if failed != nil || !there {
			return connector.Inconclusive, connector.Result{}, failed
		}
		if res, differs := c.approved(call, m, c.postedResult(call, m)); differs == nil {
			return connector.Present, res, nil
		}
		return connector.Inconclusive, connector.Result{}, nil
	}
	channel, ts := channelAndTimestamp(call)
	m, there, failed := c.find(ctx, channel, ts)
	res := connector.Result{ExternalID: call.Target.EntityRef}
	want, _ := rest.TextOf(call.ProposedChange, "text")
	stands := there && sameText(want, m.text("text"))
	if call.Operation == opDelete {
		stands = !there
	}
	switch {
	case failed != nil:
		return connector.Inconclusive, connector.Result{}, failed
	case !stands:
		return connector.Inconclusive, connector.Result{}, nil
	case there:
		res.ResponseMetadata = rest.Found(m.json)
	}
	return connector.Present, res, nil
}

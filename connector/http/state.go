package httpconn

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// ReadsState reports whether the operation has a check and, if the call names a version, whether the
// check reads the version.
func (c *Connector) ReadsState(call connector.Call) bool {
	op, ok := c.operations[call.Operation]
	return ok && op.check != nil && (call.Target.Version == "" || op.check.version != nil)
}

// ReadState reads the target with the operation's check.
func (c *Connector) ReadState(ctx context.Context, call connector.Call) (connector.Snapshot, error) {
	if !c.ReadsState(call) {
		return connector.Snapshot{}, unreadable("unsupported",
			"the operation's check does not read the state of its target")
	}
	op := c.operations[call.Operation]
	pre, _ := call.CurrentState.Fields()
	byVersion := call.Target.Version != ""
	a, doc, gone, err := c.look(ctx, op, call, len(pre) > 0 || op.check.version.needsBody(byVersion))
	if err != nil || gone {
		return connector.Snapshot{Gone: gone}, err
	}

	out := connector.Snapshot{Matches: true}
	if byVersion {
		var ok bool
		if out.Version, ok = op.check.version.version(a, doc); !ok {
			return connector.Snapshot{}, unreadable("no_version", "the target's answer has no version")
		}
		out.Matches = sameVersion(call.Target.Version, out.Version)
	}
	state, ok := doc.at(op.check.state)
	if (!ok || !state.IsObject()) && len(pre) > 0 {
		return connector.Snapshot{}, unreadable("no_state", "the target's answer has no object where its state is read")
	}
	out.Matches = out.Matches && op.check.compare(doc, call).Matches
	out.CurrentState = stateOf(state, pre, call.ProposedChange)
	return out, nil
}

// stateOf selects from a state the members of a pre-image, null for a missing one, and the members
// that a change touches; "" for none.
func stateOf(state gatehouse.JSON, pre []gatehouse.Member, change gatehouse.JSON) gatehouse.JSON {
	members := make([]gatehouse.Member, 0, len(pre))
	taken := make(map[string]bool, len(pre))
	for _, f := range pre {
		value, ok := state.Get(f.Name)
		if !ok {
			value = "null"
		}
		members = append(members, gatehouse.Member{Name: f.Name, Value: value})
		taken[f.Name] = true
	}
	touched, _ := change.Fields()
	for _, f := range touched {
		if value, ok := state.Get(f.Name); ok && !taken[f.Name] {
			members = append(members, gatehouse.Member{Name: f.Name, Value: value})
		}
	}
	if len(members) == 0 {
		return ""
	}
	return gatehouse.ObjectJSON(members...)
}

func unreadable(code, detail string) *connector.Error {
	return &connector.Error{Kind: connector.Terminal, Code: code, Detail: detail}
}

package stepfunctions

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// machine compares a state machine with the requirements of a call: an active standard workflow, in
// the proposal's revision if the proposal names one.
func (c *Connector) machine(ctx context.Context, call connector.Call) (connector.State, *connector.Error) {
	x, failure := c.ask(ctx, "DescribeStateMachine",
		textObject("stateMachineArn", c.arn("stateMachine", call.Target.EntityRef)))
	if failure != nil {
		return connector.State{}, failure
	}
	want := []string{"type", "STANDARD", "status", "ACTIVE"}
	if call.Target.Version != "" {
		want = append(want, "version", call.Target.Version)
	}
	switch {
	case errorName(x.doc) == "StateMachineDoesNotExist":
		return connector.State{Expected: textObject(want...), Actual: "null"}, nil
	case x.answer.Status != http.StatusOK || !x.doc.IsObject():
		return connector.State{}, unread(x)
	}
	version := rest.Text(x.doc, "revisionId")
	if version == "" {
		version = "INITIAL" // it was never updated
	}
	is := []string{"type", rest.Text(x.doc, "type"), "status", rest.Text(x.doc, "status")}
	if call.Target.Version != "" {
		is = append(is, "version", version)
	}
	if expected, actual := textObject(want...), textObject(is...); expected != actual {
		return connector.State{Expected: expected, Actual: actual}, nil
	}
	return connector.State{Matches: true}, nil
}

// unread is the failure of reading a state.
func unread(x *exchange) *connector.Error {
	failure := x.refusal()
	failure.Kind = connector.Transient
	return failure
}

// Check implements [connector.Checker].
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	if v := c.validate(call); len(v) > 0 {
		return connector.State{}, rest.Invalid(v.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if call.Operation == opStart {
		state, failure := c.machine(ctx, call)
		if failure != nil {
			return connector.State{}, failure
		}
		return state, nil
	}
	x, failure := c.ask(ctx, "DescribeExecution", textObject("executionArn", call.Target.EntityRef))
	if failure != nil {
		return connector.State{}, failure
	}
	// A task waits only while its execution is running.
	expected := gatehouse.JSON(`{"status":"RUNNING"}`)
	switch {
	case errorName(x.doc) == "ExecutionDoesNotExist":
		return connector.State{Expected: expected, Actual: "null"}, nil
	case x.answer.Status != http.StatusOK || !x.doc.IsObject():
		return connector.State{}, unread(x)
	}
	if actual := textObject("status", rest.Text(x.doc, "status")); actual != expected {
		return connector.State{Expected: expected, Actual: actual}, nil
	}
	return connector.State{Matches: true}, nil
}

// ReadBack implements [connector.ReadBacker]. It never returns Absent, because AWS shows executions
// and their events with a delay.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	none := connector.Result{}
	if v := c.validate(call); len(v) > 0 {
		return connector.Inconclusive, none, rest.Invalid(v.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if call.Operation == opStart {
		known, failure := c.started(ctx, call)
		switch {
		case known != nil:
			return connector.Present, *known, nil
		case failure != nil:
			return connector.Inconclusive, none, failure
		}
		return connector.Inconclusive, none, nil
	}
	found, failure := c.answered(ctx, call)
	switch {
	case failure != nil:
		return connector.Inconclusive, none, failure
	case !found:
		return connector.Inconclusive, none, nil
	}
	return connector.Present, connector.Result{
		ExternalID: call.Target.EntityRef,
		ResponseMetadata: gatehouse.ObjectJSON(gatehouse.Member{Name: "found", Value: textObject("executionArn",
			call.Target.EntityRef)}),
	}, nil
}

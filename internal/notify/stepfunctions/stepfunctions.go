// Package stepfunctions answers the AWS Step Functions tasks that proposals name in their
// callbacks.
package stepfunctions

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	aws "github.com/gatehouse-dev/gatehouse/connector/stepfunctions"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
)

// closedTries is the last attempt after which the answer to a closed task is tried again, because an earlier
// attempt may have answered the task. Each attempt reads the execution's history, which AWS may update with a
// delay.
const closedTries = 3

// errorPrefix is the prefix of the error names with which a task fails; the action's status
// follows.
const errorPrefix = "gatehouse."

// whyGone is the reason for canceling an action.
const whyGone = "the Step Functions task that waits for it no longer exists: it timed out, or was stopped"

// Callback answers tasks.
type Callback struct {
	tasks *aws.Tasks
	open  func(*gatehouse.Action) (string, error)
}

// New makes a channel for the tasks of an account. open decrypts an action's task token; it returns
// "" if the action has none.
func New(tasks *aws.Tasks, open func(*gatehouse.Action) (string, error)) *Callback {
	return &Callback{tasks, open}
}

// Kind is step_functions.
func (*Callback) Kind() string { return gatehouse.CallbackStepFunctions }

// Trait says that the channel makes callbacks.
func (*Callback) Trait() notify.Trait { return notify.Trait{Every: true, Callback: true} }

// Reaches matters for personal channels only.
func (*Callback) Reaches(*gatehouse.Principal) bool { return false }

// Check refuses an execution of another account or Region.
func (c *Callback) Check(cb *gatehouse.Callback) error {
	if cb.ExecutionARN == "" || c.tasks.Owns(cb.ExecutionARN) {
		return nil
	}
	return gatehouse.Violations{{
		Pointer: "/callback/execution_arn",
		Detail:  "belongs to another account or Region: see callbacks.step_functions",
	}}.Err()
}

// Send makes one call: a heartbeat, or the answer to the task. The task succeeds when the action is
// approved or, if the callback says so, when it is applied; it fails otherwise.
func (c *Callback) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	a := m.Action
	token, err := c.open(a)
	if err != nil {
		// The error is not final: the master key may be missing only for a time.
		return notify.Sent{}, errors.New("the task token cannot be decrypted: check the master keys")
	}
	if token == "" {
		return notify.Sent{}, &notify.Refusal{
			Final: true, Recipient: true, Err: errors.New("the action has no task token"),
		}
	}
	task := aws.Task{
		Token: token, Execution: a.Callback.ExecutionARN, Tenant: m.Tenant, ActionID: a.ID, Key: m.ID, Attempt: m.Attempt,
	}
	wanted := gatehouse.StatusApproved
	if a.Callback.On == gatehouse.CallbackOnFinished {
		wanted = gatehouse.StatusApplied
	}
	data := webhook.NewData(m)
	switch {
	case m.Kind == gatehouse.NotifyHeartbeat:
		err = c.tasks.Heartbeat(ctx, token)
	case m.Reached == wanted:
		var content []byte
		if content, err = json.Marshal(data); err == nil {
			var output gatehouse.JSON
			if output, err = gatehouse.Canonicalize(content); err == nil {
				err = c.tasks.Succeed(ctx, task, output)
			}
		}
	default:
		err = c.tasks.Fail(ctx, task, errorPrefix+string(m.Reached), cause(&data))
	}
	if err != nil {
		return notify.Sent{}, refusal(err, m.Attempt)
	}
	return notify.Sent{Delivered: true}, nil
}

// cause explains why a task fails.
func cause(d *webhook.Data) string {
	text := "The action " + d.ActionID + " is " + d.Status
	if d.DecidedBy != "" {
		text += ", decided by " + d.DecidedBy
	}
	parts := []string{text + "."}
	for _, v := range d.Votes {
		if v.Decision == string(gatehouse.Reject) && v.Notes != "" {
			parts = append(parts, v.By+": "+v.Notes)
		}
	}
	if d.Failure != nil {
		parts = append(parts, d.Failure.Code+": "+d.Failure.Detail)
	}
	return strings.Join(parts, " ")
}

// refusal converts a [connector.Error] to a [notify.Refusal]; it returns any other error unchanged.
func refusal(err error, attempt int) error {
	var e *connector.Error
	if !errors.As(err, &e) {
		return err
	}
	r := &notify.Refusal{After: e.RetryAfter, Err: errors.New(e.Code + ": " + e.Detail)}
	switch e.Code {
	case aws.CodeGone:
		r.Final, r.Recipient, r.Abandoned = true, true, whyGone
	case aws.CodeClosed:
		r.Final, r.Recipient = attempt > closedTries, true
	case "invalid_token", "invalid_output":
		r.Final, r.Recipient = true, true
	case "rate_limited":
		r.Recipient = true
	}
	return r
}

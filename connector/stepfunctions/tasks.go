package stepfunctions

import (
	"context"
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Tasks answers tasks that wait with a token in one account and Region, for any state machine. Each
// method except Owns makes one call that changes something. Errors are of type [*connector.Error];
// their code is CodeGone or CodeClosed if the task no longer waits.
type Tasks struct{ c *Connector }

// The error codes for a task that no longer waits. Succeed and Fail return CodeGone if no earlier
// attempt has answered the task, and CodeClosed if that is not known. Heartbeat always returns
// CodeGone.
const (
	CodeGone   = string(gatehouse.CodeTargetChanged)
	CodeClosed = codeClosed
)

// Task is a waiting task.
type Task struct {
	Token string
	// Execution is the ARN of the task's execution, used to read the history; "" if it is not
	// known.
	Execution string
	// Tenant, ActionID and Key identify the answer's sender; Key finds the answer in the history.
	Tenant, ActionID, Key string
	// Attempt counts from 1.
	Attempt int
}

// NewTasks checks a configuration, except its state machines and operations. It makes no call.
func NewTasks(cfg Config, secrets func(name string) (string, error)) (*Tasks, error) {
	if err := cfg.checkPlace(); err != nil {
		return nil, err
	}
	c, err := newConnector(cfg, secrets)
	if err != nil {
		return nil, err
	}
	return &Tasks{c}, nil
}

// Owns reports whether an execution belongs to this account and Region.
func (t *Tasks) Owns(executionARN string) bool {
	return strings.HasPrefix(executionARN, t.c.arn(execution, ""))
}

// Succeed answers with an output object, to which it adds a member gatehouse.
func (t *Tasks) Succeed(ctx context.Context, task Task, output gatehouse.JSON) error {
	return t.answer(ctx, task, opSuccess, gatehouse.Member{Name: "output", Value: output})
}

// Fail answers with the name of an error and its cause, to which it appends a mark.
func (t *Tasks) Fail(ctx context.Context, task Task, name, cause string) error {
	return t.answer(ctx, task, opFailure, gatehouse.Member{Name: "cause", Value: gatehouse.StringJSON(cause)},
		gatehouse.Member{Name: "error", Value: gatehouse.StringJSON(name)})
}

func (t *Tasks) answer(ctx context.Context, task Task, operation string, members ...gatehouse.Member) error {
	ctx, cancel := context.WithTimeout(ctx, t.c.timeout)
	defer cancel()
	members = append(members, gatehouse.Member{Name: "task_token", Value: gatehouse.StringJSON(task.Token)})
	_, err := t.c.answer(ctx, connector.Call{
		Tenant: task.Tenant, ActionID: task.ActionID, IdempotencyKey: task.Key, Attempt: task.Attempt,
		Operation: operation, Target: gatehouse.Target{EntityType: execution, EntityRef: task.Execution},
		ProposedChange: gatehouse.ObjectJSON(members...),
	})
	return err
}

// Heartbeat reports that the task is still being worked on.
func (t *Tasks) Heartbeat(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, t.c.timeout)
	defer cancel()
	x, failure := t.c.do(ctx, "SendTaskHeartbeat", textObject("taskToken", token))
	switch {
	case failure != nil:
		return failure
	case x.answer.Status == http.StatusOK:
		return nil
	}
	failure = x.refusal()
	switch errorName(x.doc) {
	case "TaskTimedOut", "TaskDoesNotExist":
		failure.Kind, failure.Code = connector.Terminal, CodeGone
	}
	return failure
}

package stepfunctions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

var _ connector.ProbeReporter = (*Connector)(nil)

// Probe implements [connector.Prober].
func (c *Connector) Probe(ctx context.Context) error {
	_, err := c.ProbeReport(ctx)
	return err
}

// callerForm finds the account of the caller in the message of an AccessDeniedException, which
// begins with "User: arn:aws:iam::123456789012:user/name is not authorized".
var callerForm = regexp.MustCompile(`arn:aws[a-z-]*:(?:iam|sts)::([0-9]{12}):`)

// ProbeReport calls DescribeStateMachine for each state machine in turn, until one exists, access
// is denied or a call fails. AWS checks the signature before the permission, so an
// AccessDeniedException proves that the credentials are valid.
func (c *Connector) ProbeReport(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	const accepted = "its target answers and accepts the credentials"
	for _, name := range slices.Sorted(maps.Keys(c.cfg.StateMachines)) {
		x, failure := c.ask(ctx, "DescribeStateMachine", textObject("stateMachineArn", c.arn("stateMachine", name)))
		if failure != nil {
			return "", errors.New(failure.Detail)
		}
		switch kind := errorName(x.doc); {
		case x.answer.Status == http.StatusOK:
			return accepted, nil
		case kind == "AccessDeniedException":
			// The AWS front end, which checks permissions, sends Message; Step Functions itself sends message.
			text := cmp.Or(rest.Text(x.doc, "Message"), rest.Text(x.doc, "message"))
			caller := callerForm.FindStringSubmatch(text)
			if caller != nil && caller[1] != c.cfg.Account {
				return "", fmt.Errorf("the credentials are for the account %s, not %s", caller[1], c.cfg.Account)
			}
			return accepted + ", which may not describe the state machine " + name, nil
		case kind != "StateMachineDoesNotExist":
			return "", errors.New(x.refusal().Detail)
		}
	}
	return "", fmt.Errorf("the account %s has none of the state machines in %s", c.cfg.Account, c.cfg.Region)
}

package serve

import (
	"errors"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	aws "github.com/gatehouse-dev/gatehouse/connector/stepfunctions"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/natscall"
	"github.com/gatehouse-dev/gatehouse/internal/notify/stepfunctions"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
)

// callbackChannel is a channel that makes the callbacks of one type.
type callbackChannel interface {
	notify.Channel
	Check(*gatehouse.Callback) error
}

// callbacks adds the configured types of callbacks to the channels, and returns them
// for the use cases.
func (n *Node) callbacks() (infos []gate.CallbackInfo, err error) {
	cfg := n.config.Callbacks
	tenants := tenantsOrDefault(cfg.Tenants)
	add := func(kind string, c callbackChannel, failure error) {
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("callbacks.%s.%w", kind, failure))
			return
		}
		n.channels = append(n.channels, &notify.Configured{
			Name: gatehouse.CallbackChannel(kind), Tenants: tenants, Channel: c,
		})
		infos = append(infos, gate.CallbackInfo{Type: kind, Tenants: tenants, Check: c.Check})
	}
	if w := cfg.Webhook; w != nil {
		secret, missing := n.config.Secret(w.Secret)
		c, failure := webhook.NewCallback(webhook.CallbackConfig{
			Hosts: w.Hosts, Private: w.PrivateHosts, Secret: secret,
		})
		add(gatehouse.CallbackWebhook, c, errors.Join(missing, failure))
	}
	if c := cfg.NATS; c != nil {
		channel, failure := natscall.New(n.nats, c.Prefix, n.feed.Prefix)
		add(gatehouse.CallbackNATS, channel, failure)
	}
	if s := cfg.StepFunctions; s != nil {
		tasks, failure := aws.NewTasks(tasksConfig(s), n.config.Secret)
		// The gate is made after its channels.
		open := func(a *gatehouse.Action) (string, error) { return n.Gate.TaskToken(a) }
		add(gatehouse.CallbackStepFunctions, stepfunctions.New(tasks, open), failure)
	}
	return infos, err
}

func tasksConfig(s *config.StepFunctionsCallbacks) aws.Config {
	c := aws.Config{
		Region: s.Region, Account: s.Account, Partition: s.Partition, Endpoint: s.Endpoint, AllowPrivate: s.AllowPrivate,
		Credentials: aws.Credentials{
			AccessKeyID:     connector.Secret{Secret: s.AccessKeyID},
			SecretAccessKey: connector.Secret{Secret: s.SecretAccessKey},
		},
	}
	if s.SessionToken != "" {
		c.Credentials.SessionToken = &connector.Secret{Secret: s.SessionToken}
	}
	return c
}

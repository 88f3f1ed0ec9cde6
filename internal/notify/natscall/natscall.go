// Package natscall publishes the callbacks of proposals to NATS subjects that belong to a JetStream
// stream.
package natscall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
)

// Callback publishes to each proposal's subject.
type Callback struct {
	js     jetstream.JetStream
	prefix string
}

// New makes a channel for subjects with a prefix. own is the prefix of this server's own subjects,
// to which nobody else may publish. With a nil conn, there is no cluster and nothing is sent.
func New(conn *nats.Conn, prefix, own string) (*Callback, error) {
	switch {
	case !gatehouse.ValidSubject(prefix):
		return nil, errors.New("prefix: must be a NATS subject without wildcards")
	case strings.HasPrefix(prefix, "$") || strings.HasPrefix(prefix, "_"):
		return nil, errors.New("prefix: $ and _ begin subjects of NATS itself")
	case within(prefix, own) || within(own, prefix):
		return nil, fmt.Errorf(
			"prefix: the subjects under %s are this server's own: see nats.prefix",
			gatehouse.Quote(own),
		)
	}
	c := &Callback{prefix: prefix}
	if conn == nil {
		return c, nil
	}
	var err error
	c.js, err = jetstream.New(conn)
	return c, err
}

// within reports whether a subject equals a prefix or is below it.
func within(subject, prefix string) bool {
	return prefix != "" && (subject == prefix || strings.HasPrefix(subject, prefix+"."))
}

// Kind is nats.
func (*Callback) Kind() string { return gatehouse.CallbackNATS }

// Trait says that the channel makes callbacks.
func (*Callback) Trait() notify.Trait { return notify.Trait{Every: true, Callback: true} }

// Reaches matters for personal channels only.
func (*Callback) Reaches(*gatehouse.Principal) bool { return false }

// Check refuses a subject that is not below the prefix.
func (c *Callback) Check(cb *gatehouse.Callback) error {
	if within(cb.Subject, c.prefix) {
		return nil
	}
	return gatehouse.Violations{{
		Pointer: "/callback/subject", Detail: "must begin with " + c.prefix + ": see callbacks.nats.prefix",
	}}.Err()
}

// Send publishes once, with the message's id as Nats-Msg-Id, and waits until the stream has stored
// it.
func (c *Callback) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	if c.js == nil {
		return notify.Sent{}, errors.New("no NATS cluster is configured")
	}
	fail := func(err error) (notify.Sent, error) {
		return notify.Sent{}, &notify.Refusal{Final: true, Recipient: true, Err: err}
	}
	if m.Action == nil || m.Action.Callback == nil {
		return fail(errors.New("the action has no callback"))
	}
	if c.Check(m.Action.Callback) != nil {
		return fail(errors.New("the subject is not allowed any more"))
	}
	content, err := json.Marshal(webhook.NewBody(m))
	if err != nil {
		return fail(err)
	}
	ack, err := c.js.PublishMsg(ctx, &nats.Msg{
		Subject: m.Action.Callback.Subject, Data: content, Header: nats.Header{"Content-Type": {"application/json"}},
	}, jetstream.WithMsgID(m.ID), jetstream.WithRetryAttempts(0))
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return notify.Sent{}, &notify.Refusal{
			Recipient: true, Err: errors.New("no JetStream stream has the subject"),
		}
	case err != nil:
		return notify.Sent{}, err
	}
	return notify.Sent{Delivered: true, Ref: fmt.Sprintf("%s:%d", ack.Stream, ack.Sequence)}, nil
}

package email

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"strconv"
	"time"

	"code.dny.dev/ssrf"
	"github.com/wneessen/go-mail"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// messageID is the same for each attempt of an action, and reveals nothing about the action.
func (c *Connector) messageID(call connector.Call) string {
	return "gatehouse." + call.TargetKey()[:40] + "@" + c.domain
}

// message composes the mail. Texts of the proposal appear only in the recipients, the subject, the body
// and the reply headers.
func (c *Connector) message(call connector.Call) (*mail.Msg, error) {
	m := mail.NewMsg()
	m.Subject(textOf(call.ProposedChange, "subject"))
	m.SetMessageIDWithValue(c.messageID(call))
	m.SetDateWithValue(time.Now())
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetGenHeader("X-Auto-Response-Suppress", "All")
	if parent := textOf(call.ProposedChange, "in_reply_to"); parent != "" {
		m.SetGenHeader(mail.HeaderInReplyTo, parent)
		m.SetGenHeader(mail.HeaderReferences, parent)
	}
	m.SetBodyString(mail.TypeTextPlain, textOf(call.ProposedChange, "text"))
	return m, errors.Join(m.From(c.from.String()), m.To(call.Target.EntityRef), m.Cc(copies(call)...))
}

// maxReplies limits what a server replies within one dialogue, in bytes.
const maxReplies = 1 << 20

// limited is a connection that breaks off when the server replies too much.
type limited struct {
	net.Conn
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("the server replies with more than 1 MiB")
	}
	n, err := l.Conn.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// mechanisms are the ways to sign in, the preferred one first. go-mail's own discovery leaves out PLAIN and LOGIN
// with implicit TLS, because it does not see that the connection is encrypted. Where a username is configured,
// the connection always is: see Config.TLS.
var mechanisms = []mail.SMTPAuthType{
	mail.SMTPAuthSCRAMSHA256PLUS, mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthSCRAMSHA1PLUS, mail.SMTPAuthSCRAMSHA1,
	mail.SMTPAuthNTLM, mail.SMTPAuthCramMD5, mail.SMTPAuthPlain, mail.SMTPAuthLogin,
}

// client makes a client for the server. Its connection closes when ctx ends.
func (c *Connector) client(ctx context.Context) (*mail.Client, error) {
	timeout := c.timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Millisecond, min(timeout, time.Until(deadline)))
	}
	options := []mail.Option{
		mail.WithPort(c.server.port),
		mail.WithTimeout(timeout),
		mail.WithTLSConfig(c.server.tls),
		mail.WithHELO(c.domain),
		mail.WithTLSPolicy(c.server.policy),
		mail.WithDialContextFunc(func(dial context.Context, network, address string) (net.Conn, error) {
			conn, err := rest.NewDialer(c.private).DialContext(dial, network, address)
			if err != nil {
				return nil, err
			}
			context.AfterFunc(ctx, func() { _ = conn.Close() })
			limit := &limited{Conn: conn, left: maxReplies}
			if c.server.implicit {
				secure := tls.Client(limit, c.server.tls)
				return secure, secure.HandshakeContext(dial)
			}
			return limit, nil
		}),
	}
	if c.server.implicit {
		options = append(options, mail.WithSSL())
	}
	if c.username != "" {
		options = append(options, mail.WithOpportunisticSMTPAuth(mechanisms...),
			mail.WithUsername(c.username), mail.WithPassword(c.password))
	}
	return mail.NewClient(c.server.host, options...)
}

// Probe signs in to the server and sends nothing.
func (c *Connector) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	client, err := c.client(ctx)
	if err != nil {
		return err
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return errors.New(unsent(ctx, err).Detail)
	}
	return client.CloseWithSMTPClient(session)
}

// Execute implements [connector.Connector].
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	if err := c.Validate(call); err != nil {
		return connector.Result{}, rest.Invalid(err)
	}
	m, err := c.message(call)
	if err != nil {
		return connector.Result{}, rest.Invalid(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	client, err := c.client(ctx)
	if err != nil {
		return connector.Result{}, rest.Invalid(err)
	}
	res := connector.Result{RequestMetadata: c.metadata(call)}
	err = client.DialAndSendWithContext(ctx, m)
	// A missing answer to QUIT does not matter.
	if !m.IsDelivered() {
		return res, failure(ctx, m, err)
	}
	res.ExternalID = "<" + c.messageID(call) + ">"
	res.ResponseMetadata = gatehouse.ObjectJSON(
		gatehouse.Member{Name: "answer", Value: gatehouse.StringJSON(cut(m.ServerResponse()))})
	return res, nil
}

// metadata is the part of the mail that the receipt keeps.
func (c *Connector) metadata(call connector.Call) gatehouse.JSON {
	sum := sha256.Sum256([]byte(textOf(call.ProposedChange, "text")))
	return gatehouse.MustJSON(map[string]any{
		"server":      net.JoinHostPort(c.server.host, strconv.Itoa(c.server.port)),
		"message_id":  "<" + c.messageID(call) + ">",
		"from":        c.from.Address,
		"to":          call.Target.EntityRef,
		"cc":          copies(call),
		"subject":     textOf(call.ProposedChange, "subject"),
		"text_sha256": hex.EncodeToString(sum[:]),
	})
}

// failure classifies a mail whose acceptance the server has not confirmed.
func failure(ctx context.Context, m *mail.Msg, err error) *connector.Error {
	var send *mail.SendError
	if !errors.As(m.SendError(), &send) && !errors.As(err, &send) {
		return unsent(ctx, err)
	}
	code := send.ErrorCode()
	e := &connector.Error{Code: fmt.Sprintf("smtp_%d", code), Says: cut(send.Error()), Err: err}
	answered := code >= 400 && code < 600
	switch send.Reason {
	case mail.ErrSMTPDataClose, mail.ErrWriteContent:
		switch {
		case !answered:
			e.Kind, e.Code = connector.Ambiguous, "connection_lost"
			e.Detail = "the connection failed before the server answered the message"
		case code < 500:
			e.Kind, e.Detail = connector.Transient, fmt.Sprintf("the server does not take the message now: %d", code)
		default:
			e.Kind, e.Detail = connector.Terminal, fmt.Sprintf("the server refuses the message: %d", code)
		}
	default: // the dialogue ended before the message
		switch {
		case answered && code >= 500:
			e.Kind = connector.Terminal
			e.Detail = fmt.Sprintf("the server refuses the sender, a recipient or the message: %d", code)
		case answered:
			e.Kind = connector.NotSent
			e.Detail = fmt.Sprintf("the server does not take the sender, a recipient or the message now: %d", code)
		default:
			return unsent(ctx, err)
		}
	}
	return e
}

// unsent is the failure of a dialogue that ended before the mail.
func unsent(ctx context.Context, err error) *connector.Error {
	e := &connector.Error{Kind: connector.NotSent, Code: "unreachable", Err: err}
	var answer *textproto.Error
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP):
		e.Kind, e.Code = connector.Terminal, "address_refused"
		e.Detail = "the host has an internal address; nothing was sent"
	case errors.As(err, &answer) && answer.Code >= 400 && answer.Code < 600:
		e.Code = fmt.Sprintf("smtp_%d", answer.Code)
		e.Detail = fmt.Sprintf("the server refuses the connection or the sign-in: %d", answer.Code)
		e.Says = cut(answer.Msg)
		if answer.Code >= 500 {
			e.Kind = connector.Terminal
		}
	case ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded):
		e.Code, e.Detail = "timeout", "the time ran out before the message was sent"
	default:
		e.Detail = "no dialogue with the server: " + cut(err.Error())
	}
	return e
}

// cut limits how much of a server's message is kept.
func cut(s string) string {
	if r := []rune(s); len(r) > 500 {
		s = string(r[:500]) + "…"
	}
	return s
}

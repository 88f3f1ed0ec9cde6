// Package email sends messages as mail over SMTP.
package email

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// The values of [Config.TLS].
const (
	StartTLS    = "starttls"
	ImplicitTLS = "implicit"
	NoTLS       = "none"
)

// timeout limits connecting and signing in, and separately the sending of the mail.
const timeout = 15 * time.Second

// Config configures a channel.
type Config struct {
	// SMTP is the server, as HOST:PORT.
	SMTP string
	// TLS is starttls (the default), implicit, or none.
	TLS string
	// CA holds PEM certificates that are trusted in addition to the system's; "" for none.
	CA string
	// Username and Password sign in to the server; both are "" for a server without authentication.
	Username, Password string
	// From is the sender's address. Its domain is used in the Message-IDs.
	From string
	// Addresses maps people's names to their addresses. A name that is missing here is used as the
	// address itself if it is one, or else as the local part of an address at Domain, if Domain is
	// set.
	Addresses map[string]string
	Domain    string
	// Bounces is the address that gets undeliverable mail back: the envelope sender of each mail is a
	// subaddress of it, such as bounce+ID.MAC@example.com. "" sends with From.
	Bounces string
	// BounceKeys authenticate the envelope senders: the first signs, all verify.
	BounceKeys [][]byte
	// Catch receives the mails instead of a server, for development; nil sends them.
	Catch func(raw []byte) error
}

// Channel sends mail.
type Channel struct {
	config    Config
	host      string
	domain    string
	from      string
	returns   *returnPath // nil for none
	addresses map[string]string
	options   []mail.Option
}

// New checks the configuration. It does not contact the server.
func New(c Config) (*Channel, error) {
	if c.Catch != nil {
		c.SMTP, c.TLS = "localhost:25", NoTLS
	}
	host, portText, err := net.SplitHostPort(c.SMTP)
	if err != nil || host == "" {
		return nil, errors.New("smtp: must be HOST:PORT")
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, errors.New("smtp: the port must be a number")
	}
	from, err := netmail.ParseAddress(c.From)
	if err != nil {
		return nil, errors.New("from: must be an address, such as gatehouse@example.com")
	}
	_, domain, _ := strings.Cut(from.Address, "@")
	ch := &Channel{config: c, host: host, domain: domain, from: from.Address, addresses: make(map[string]string)}
	for name, address := range c.Addresses {
		if !plain(address) {
			return nil, fmt.Errorf("addresses.%s: must be an address, such as ana@example.com", name)
		}
		ch.addresses[strings.ToLower(name)] = address
	}
	if c.Domain != "" && !plain("someone@"+c.Domain) {
		return nil, errors.New("domain: must be a domain, such as example.com")
	}
	if c.Bounces != "" {
		if ch.returns, err = newReturnPath(c.Bounces, c.BounceKeys); err != nil {
			return nil, err
		}
	}
	if (c.Username == "") != (c.Password == "") {
		return nil, errors.New("username and password must be set together")
	}
	return ch, ch.connection(port)
}

// connection prepares the options for connecting to the server.
func (c *Channel) connection(port int) error {
	settings := &tls.Config{ServerName: c.host, MinVersion: tls.VersionTLS12}
	if c.config.CA != "" {
		pool, err := notify.CertPool(c.config.CA)
		if err != nil {
			return fmt.Errorf("ca: %w", err)
		}
		settings.RootCAs = pool
	}
	c.options = []mail.Option{
		mail.WithPort(port),
		mail.WithTimeout(timeout),
		mail.WithTLSConfig(settings),
		mail.WithHELO(c.domain),
	}
	switch c.config.TLS {
	case "", StartTLS:
		c.options = append(c.options, mail.WithTLSPolicy(mail.TLSMandatory))
	case ImplicitTLS:
		c.options = append(c.options, mail.WithSSL())
	case NoTLS:
		c.options = append(c.options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		return errors.New("tls: must be starttls, implicit or none")
	}
	if c.config.Username != "" {
		c.options = append(c.options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover),
			mail.WithUsername(c.config.Username), mail.WithPassword(c.config.Password))
	}
	return nil
}

// plain reports whether s is a bare, unambiguous address.
func plain(s string) bool {
	a, err := netmail.ParseAddress(s)
	return err == nil && a.Name == "" && a.Address == s && !strings.ContainsAny(s, "\r\n")
}

// Kind is email.
func (*Channel) Kind() string { return "email" }

// Trait says that the channel sends to people.
func (*Channel) Trait() notify.Trait { return notify.Trait{Personal: true, Private: true} }

// Reaches reports whether the person has an address.
func (c *Channel) Reaches(p *gatehouse.Principal) bool { return c.address(p) != "" }

// address is a person's address, "" for none.
func (c *Channel) address(p *gatehouse.Principal) string {
	if address := c.addresses[strings.ToLower(p.Name)]; address != "" {
		return address
	}
	if strings.Contains(p.Name, "@") {
		if plain(p.Name) {
			return p.Name
		}
		return ""
	}
	if c.config.Domain != "" && plain(p.Name+"@"+c.config.Domain) {
		return p.Name + "@" + c.config.Domain
	}
	return ""
}

// Send sends one mail. A repeated message has the same Message-ID.
func (c *Channel) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	msg, err := c.mail(m)
	if err != nil {
		return notify.Sent{}, &notify.Refusal{Final: true, Recipient: true, Err: err}
	}
	if c.config.Catch != nil {
		var raw bytes.Buffer
		if _, err := msg.WriteTo(&raw); err != nil {
			return notify.Sent{}, err
		}
		return notify.Sent{Ref: msg.GetMessageID(), Delivered: true}, c.config.Catch(raw.Bytes())
	}
	client, err := mail.NewClient(c.host, c.options...)
	if err != nil {
		return notify.Sent{}, err
	}
	// An error after the server has accepted the mail, such as one of RSET or QUIT, does not matter.
	if err := client.DialAndSendWithContext(ctx, msg); err != nil && !msg.IsDelivered() {
		return notify.Sent{}, refusal(msg, err)
	}
	return notify.Sent{Ref: msg.GetMessageID()}, nil
}

// refusal classifies the server's answer: a permanent error about the sender, the recipient or the
// mail ends the message, anything else is retried.
func refusal(msg *mail.Msg, err error) error {
	var send *mail.SendError
	if !errors.As(err, &send) && msg.HasSendError() {
		errors.As(msg.SendError(), &send)
	}
	if send == nil || send.IsTemp() || send.ErrorCode() < 500 {
		return err
	}
	return &notify.Refusal{Final: true, Recipient: send.Reason == mail.ErrSMTPRcptTo, Err: err}
}

// mail composes the mail.
func (c *Channel) mail(m *notify.Message) (*mail.Msg, error) {
	msg := mail.NewMsg()
	if err := msg.FromFormat("Gatehouse", c.from); err != nil {
		return nil, err
	}
	to := c.address(m.To)
	if err := msg.To(to); err != nil {
		return nil, err
	}
	if c.returns != nil {
		sender, err := c.returns.sender(m.Tenant, m.ID, to)
		if err != nil {
			return nil, err
		}
		if err := msg.EnvelopeFrom(sender); err != nil {
			return nil, err
		}
	}
	subject := m.Subject
	id := m.ID + "@" + c.domain
	if m.Action != nil {
		root := m.Action.ID + ".0@" + c.domain
		if m.Kind == gatehouse.NotifyAsked {
			id = root
		} else {
			subject = "Re: " + subject
			msg.SetGenHeader(mail.HeaderInReplyTo, "<"+root+">")
			msg.SetGenHeader(mail.HeaderReferences, "<"+root+">")
		}
	}
	msg.Subject(subject)
	msg.SetMessageIDWithValue(id)
	msg.SetDateWithValue(m.At)
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetGenHeader("X-Auto-Response-Suppress", "All")
	if m.Unsubscribe != "" { // RFC 8058
		msg.SetGenHeader(mail.HeaderListUnsubscribe, "<"+m.Unsubscribe+">")
		msg.SetGenHeader(mail.HeaderListUnsubscribePost, "List-Unsubscribe=One-Click")
	}
	text, html, err := bodies(m)
	if err != nil {
		return nil, err
	}
	msg.SetBodyString(mail.TypeTextPlain, text)
	msg.AddAlternativeString(mail.TypeTextHTML, html)
	return msg, nil
}

package email_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/email"
	"github.com/gatehouse-dev/gatehouse/internal/notify/mailtest"
)

const password = "password-of-the-gate"

// The server is a real SMTP server, with STARTTLS and a user.
func start(t testing.TB) *mailtest.Server {
	t.Helper()
	s := mailtest.Start(t)
	s.Require("gate", password)
	return s
}

func config(s *mailtest.Server) email.Config {
	return email.Config{
		SMTP: s.Addr, CA: s.CA, AllowPrivate: true, Username: "gate", Password: connector.Secret{Secret: "MAIL"},
		From: "Gatehouse <gate@acme.example>", Recipients: []string{"@shop.example", "ana@other.example"},
	}
}

var secrets = connectortest.Named(map[string]string{"MAIL": password})

func newConnector(t testing.TB, cfg email.Config) *email.Connector {
	t.Helper()
	c, err := email.New(t.Context(), cfg, secrets)
	connectortest.Must(t, err)
	return c.(*email.Connector)
}

func call(change gatehouse.JSON) connector.Call {
	return connectortest.Call("send", "recipient", "bo@shop.example", "", change)
}

const hello = gatehouse.JSON(`{"subject":"Your order","text":"It is on its way.\nGrüße"}`)

func wantFailure(t testing.TB, err error, kind connector.Kind, code string) {
	t.Helper()
	var e *connector.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Code != code {
		t.Errorf("got %v, want %v: %s", err, kind, code)
		return
	}
	if strings.Contains(e.Error()+e.Says, password) {
		t.Error("the password is in the failure")
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	not := connectortest.Not("SMTP returns no values and checks no clock; TestBrokenReplies has broken answers",
		connectortest.Garbled, connectortest.Dropped, connectortest.Changed, connectortest.WrongDate, connectortest.Skewed)
	not[connectortest.LostBefore] = "before the last command, nothing is in doubt"
	connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
		s := start(t)
		refuse := func(code int) { s.Recipients(func(string) error { return &smtp.SMTPError{Code: code, Message: "no"} }) }
		return &connectortest.Fixture{
			Connector: newConnector(t, config(s)), Call: call(hello), Creates: true,
			Read:    func(*testing.T) gatehouse.JSON { return gatehouse.MustJSON(len(s.Mails())) },
			Effects: func(*testing.T) int { return len(s.Mails()) },
			Secrets: []string{password},
			Expired: connectortest.WithSecret(email.New, config(s), "pass-that-has-expired"),
			Break: func(_ *testing.T, fault connectortest.Fault) func() {
				switch fault {
				case connectortest.Busy:
					refuse(450)
				case connectortest.Outage:
					refuse(421)
				case connectortest.Unauthorized:
					s.Require("gate", "other")
				case connectortest.LostAfter:
					s.AfterData(func() error { return mailtest.ErrHangup })
				}
				return func() { s.Recipients(nil); s.AfterData(nil); s.Require("gate", password) }
			},
		}
	}})
}

// TestSend: the mail has the approved content and the connector's headers.
func TestSend(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := newConnector(t, config(s))
	to := call(
		`{"cc":["ana@other.example"],"in_reply_to":"<q1@shop.example>",` +
			`"subject":"Größe: 42 — “ok”","text":".\nFrom here\n"}`,
	)
	res, err := c.Execute(t.Context(), to)
	if err != nil || res.Reversal != nil || !strings.Contains(string(res.ResponseMetadata), "OK") {
		t.Fatalf("%v, %+v", err, res)
	}
	mails := s.Mails()
	if len(mails) != 1 {
		t.Fatalf("%d mails", len(mails))
	}
	m := mails[0]
	for name, want := range map[string]string{
		"From": `"Gatehouse" <gate@acme.example>`, "To": "<bo@shop.example>", "Cc": "<ana@other.example>",
		"Message-Id": res.ExternalID, "Auto-Submitted": "auto-generated", "In-Reply-To": "<q1@shop.example>",
		"References": "<q1@shop.example>",
	} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if m.Subject() != "Größe: 42 — “ok”" || m.From != "gate@acme.example" ||
		!strings.Contains(string(m.Raw), "From here") {
		t.Errorf("%q from %s:\n%s", m.Subject(), m.From, m.Raw)
	}
	// Another attempt has the same Message-ID, another tenant a different one.
	to.Attempt = 2
	again, err := c.Execute(t.Context(), to)
	if err != nil || again.ExternalID != res.ExternalID {
		t.Errorf("%v, %s", err, again.ExternalID)
	}
	to.Tenant = "acme"
	if other, err := c.Execute(t.Context(), to); err != nil || other.ExternalID == res.ExternalID {
		t.Errorf("%v, %s", err, other.ExternalID)
	}
	if err := c.Probe(t.Context()); err != nil || len(s.Mails()) != 3 {
		t.Errorf("%v, %d mails", err, len(s.Mails()))
	}
}

// TestImplicitTLS signs in at a server that offers only PLAIN.
func TestImplicitTLS(t *testing.T) {
	t.Parallel()
	s := mailtest.StartImplicit(t)
	s.Require("gate", password)
	cfg := config(s)
	cfg.TLS = "implicit"
	c := newConnector(t, cfg)
	if err := c.Probe(t.Context()); err != nil {
		t.Errorf("the test call: %v", err)
	}
	if _, err := c.Execute(t.Context(), call(hello)); err != nil || len(s.Mails()) != 1 {
		t.Errorf("%v, %d mails", err, len(s.Mails()))
	}
	s.Require("gate", "other")
	_, err := c.Execute(t.Context(), call(hello))
	wantFailure(t, err, connector.Terminal, "smtp_535")
	cfg.CA = ""
	_, err = newConnector(t, cfg).Execute(t.Context(), call(hello))
	wantFailure(t, err, connector.NotSent, "unreachable")
}

// TestFaults: the phase of the dialogue determines what a failure proves.
func TestFaults(t *testing.T) {
	t.Parallel()
	answer := func(code int) error {
		return &smtp.SMTPError{
			Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: "no " + "thanks",
		}
	}
	rcpt := func(code int) func(*mailtest.Server, *email.Config) {
		return func(s *mailtest.Server, _ *email.Config) { s.Recipients(func(string) error { return answer(code) }) }
	}
	data := func(err error) func(*mailtest.Server, *email.Config) {
		return func(s *mailtest.Server, _ *email.Config) { s.AfterData(func() error { return err }) }
	}
	for name, test := range map[string]struct {
		trouble func(*mailtest.Server, *email.Config)
		kind    connector.Kind
		code    string
		reached int // mails that the server was given in full
	}{
		"recipient refused":   {rcpt(550), connector.Terminal, "smtp_550", 0},
		"recipient, not now":  {rcpt(450), connector.NotSent, "smtp_450", 0},
		"message refused":     {data(answer(554)), connector.Terminal, "smtp_554", 1},
		"message, not now":    {data(answer(451)), connector.Transient, "smtp_451", 1},
		"lost after the data": {data(mailtest.ErrHangup), connector.Ambiguous, "connection_lost", 1},
		"another password": {
			func(s *mailtest.Server, _ *email.Config) { s.Require("gate", "other") }, connector.Terminal, "smtp_535", 0,
		},
		"not signed in": {
			func(_ *mailtest.Server, c *email.Config) {
				c.Username, c.Password.Secret = "", ""
			}, connector.Terminal, "smtp_502", 0,
		},
		"another certificate": {
			func(_ *mailtest.Server, c *email.Config) { c.CA = "" }, connector.NotSent, "unreachable", 0,
		},
		"no TLS on either side": {
			func(_ *mailtest.Server, c *email.Config) {
				c.TLS, c.Username, c.Password.Secret = "none", "", ""
			}, connector.Terminal, "smtp_530", 0,
		},
		"nobody there": {
			func(_ *mailtest.Server, c *email.Config) { c.SMTP = "127.0.0.1:1" }, connector.NotSent, "unreachable", 0,
		},
		"an internal address": {
			func(_ *mailtest.Server, c *email.Config) {
				c.AllowPrivate = false
			}, connector.Terminal, "address_refused", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			cfg := config(s)
			test.trouble(s, &cfg)
			_, err := newConnector(t, cfg).Execute(t.Context(), call(hello))
			wantFailure(t, err, test.kind, test.code)
			if len(s.Mails()) != test.reached {
				t.Errorf("the server was given %d mails", len(s.Mails()))
			}
		})
	}
}

// TestOneOfTwoRefused: a mail goes to all of its recipients, or to none.
func TestOneOfTwoRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Recipients(func(to string) error {
		if strings.HasPrefix(to, "ana@") {
			return &smtp.SMTPError{Code: 550, Message: "unknown"}
		}
		return nil
	})
	_, err := newConnector(
		t,
		config(s),
	).Execute(t.Context(), call(`{"cc":["ana@other.example"],"subject":"s","text":"t"}`))
	wantFailure(t, err, connector.Terminal, "smtp_550")
	if len(s.Mails()) != 0 {
		t.Errorf("%d mails", len(s.Mails()))
	}
}

// TestTimeout: if the server does not answer, the call ends with its context and reports the phase
// that it reached.
func TestTimeout(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	connectortest.Must(t, err)
	defer silent.Close()
	s := start(t)
	cfg := config(s)
	cfg.SMTP = silent.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = newConnector(t, cfg).Execute(ctx, call(hello))
	wantFailure(t, err, connector.NotSent, "timeout")

	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	s.AfterData(func() error { cancel(); <-over; return nil })
	_, err = newConnector(t, config(s)).Execute(ctx, call(hello))
	wantFailure(t, err, connector.Ambiguous, "connection_lost")
}

func TestValidate(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := newConnector(t, config(s))
	to := func(address string) connector.Call {
		c := call(hello)
		c.Target.EntityRef = address
		return c
	}
	for name, test := range map[string]struct {
		call connector.Call
		want string // where the first violation points to; "" for none
	}{
		"a mail":             {call(hello), ""},
		"a single recipient": {to("Ana@other.example"), ""},
		"another domain":     {to("bo@evil.example"), "/target/entity_ref"},
		"a domain below":     {to("bo@x.shop.example"), "/target/entity_ref"},
		"a name":             {to("Bo <bo@shop.example>"), "/target/entity_ref"},
		"two":                {to("bo@shop.example,x@evil.example"), "/target/entity_ref"},
		"a line break":       {to("bo@shop.example\r\nBcc: x@evil.example"), "/target/entity_ref"},
		"a route":            {to("@evil.example:bo@shop.example"), "/target/entity_ref"},
		"a copy elsewhere": {
			call(`{"cc":["bo@shop.example","x@evil.example"],"subject":"s","text":"t"}`), "/proposed_change/cc/1",
		},
		"a header":            {call(`{"subject":"s\r\nBcc: x@evil.example","text":"t"}`), "/proposed_change/subject"},
		"a control character": {call(`{"subject":"s","text":"t\u0000"}`), "/proposed_change/text"},
		"HTML":                {call(`{"html":"<b>","subject":"s","text":"t"}`), "/proposed_change"},
		"a reply to nothing": {
			call(`{"in_reply_to":"<a@b>\r\nX: y","subject":"s","text":"t"}`), "/proposed_change/in_reply_to",
		},
		"no subject": {call(`{"text":"t"}`), "/proposed_change"},
	} {
		err := c.Validate(test.call)
		var invalid *gatehouse.Error
		got := ""
		if errors.As(err, &invalid) {
			got = invalid.Violations[0].Pointer
		}
		if got != test.want || (err == nil) != (test.want == "") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if test.want == "" {
			continue
		}
		_, err = c.Execute(t.Context(), test.call)
		wantFailure(t, err, connector.Terminal, "invalid")
	}
	if len(s.Mails()) != 0 {
		t.Errorf("%d mails", len(s.Mails()))
	}
	anybody := config(s)
	anybody.Recipients = []string{"*"}
	if err := newConnector(t, anybody).Validate(to("bo@evil.example")); err != nil {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	s := start(t)
	base := newConnector(t, config(s))
	low := config(s)
	low.Floor, low.Tenants, low.Timeout = 1, []string{"acme"}, gatehouse.Span(time.Second)
	c := newConnector(t, low)
	if c.Fingerprint() != base.Fingerprint() || c.Floor(call(hello)) != 1 || base.Floor(call(hello)) != 3 {
		t.Errorf("levels %d and %d", c.Floor(call(hello)), base.Floor(call(hello)))
	}
	if d := c.Declarations(); len(d) != 1 ||
		d[0] != (connector.Declaration{Operation: "send", EntityType: "recipient", Level: 1}) {
		t.Errorf("%+v", d)
	}
	configure := func() email.Config { return config(s) }
	connectortest.Refuses(t, email.New, configure, secrets, map[string]func(*email.Config){
		"smtp: must be HOST:PORT":   func(c *email.Config) { c.SMTP = "mail.example" },
		"from: must be an address":  func(c *email.Config) { c.From = "Gatehouse" },
		"at least one is needed":    func(c *email.Config) { c.Recipients = nil },
		"neither an address":        func(c *email.Config) { c.Recipients = []string{"@"} },
		"must be set together":      func(c *email.Config) { c.Password = connector.Secret{} },
		"starttls, implicit or non": func(c *email.Config) { c.TLS = "maybe" },
		"without authentication":    func(c *email.Config) { c.TLS = "none" },
		"holds no certificate":      func(c *email.Config) { c.CA = "x" },
		"there is no secret":        func(c *email.Config) { c.Password.Secret = "OTHER" },
		"must be 1 to 5":            func(c *email.Config) { c.Floor = 6 },
		"not email":                 func(c *email.Config) { c.Type = "http" },
	})
	other := config(s)
	other.From = "other@acme.example"
	if newConnector(t, other).Fingerprint() == base.Fingerprint() {
		t.Error("the sender is not in the fingerprint")
	}
}

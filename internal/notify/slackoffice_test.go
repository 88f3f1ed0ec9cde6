package notify_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slacktest"
)

// The users of the workspace: all except eve are linked to a principal.
var (
	ana   = slacktest.User{ID: "U0ANA"}
	bo    = slacktest.User{ID: "U0BO"}
	sam   = slacktest.User{ID: "U0SAM"}
	eve   = slacktest.User{ID: "U0EVE"}
	agent = slacktest.User{ID: "U0BOT"}
)

// office is a world whose people decide in Slack.
type office struct {
	*world
	slack    *slacktest.Workspace
	notifier *notify.Notifier
	handler  *slack.Handler
	channel  *notify.Configured
}

// policyFromSlack permits decisions about L3 in Slack.
const policyFromSlack = `version: 1
slack: {decide_up_to: 3}
risk: {note: 1, price_change: 3, pair: 3, refund: 4}
rules:
  - {id: pairs, when: 'action.type == "pair"', then: needs_approval, required: 2}
`

func newOffice(t *testing.T, w *world, more ...func(*slack.Config)) *office {
	t.Helper()
	o := &office{world: w, slack: slacktest.New(t)}
	o.slack.SetNow(w.Clock.Now)
	more = append([]func(*slack.Config){func(c *slack.Config) { c.SigningSecret = slacktest.SigningSecret }}, more...)
	o.channel = w.slackChannel(o.slack, more...)
	o.apply(policyFromSlack)
	w.create(gatehouse.NewPrincipal{
		Name: "cy", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	})
	for name, user := range map[string]slacktest.User{"ana": ana, "bo": bo, "sam": sam, "bot": agent} {
		o.link(name, user.ID)
	}
	o.open()
	return o
}

// open makes a notifier and a handler, as a server does at its start.
func (o *office) open() {
	o.notifier = o.world.notifier(notify.Config{
		Channels: []*notify.Configured{o.channel}, DecideUpTo: o.Gate.SlackUpTo, DigestAfter: 1000,
	})
	o.handler = slack.NewHandler(slack.HandlerConfig{
		Gate: o.Gate, Store: o.Store, Hints: o.hub, PublicURL: "https://gate.example", Owner: "handler",
		Channels: []slack.NamedChannel{{
			Name: "slack", Tenants: o.channel.Tenants, Channel: o.channel.Channel.(*slack.Channel),
		}},
		Log: slog.New(slog.DiscardHandler), Now: o.Clock.Now,
	})
}

func (o *office) apply(source string) {
	o.t.Helper()
	if _, err := o.Gate.ApplyPolicy(o.Admin(), source); err != nil {
		o.t.Fatal(err)
	}
}

// link stores the same rows as linking does.
func (o *office) link(name, user string) {
	o.t.Helper()
	p, err := o.Gate.FindPrincipal(o.Admin(), name)
	must(o.t, err)
	err = o.Store.Update(context.Background(), p.Tenant, func(tx gatehouse.Tx) error {
		return tx.InsertIdentity(&gatehouse.ExternalIdentity{
			Tenant: p.Tenant, Issuer: gatehouse.SlackIssuer + slacktest.Team, Subject: user, PrincipalID: p.ID,
			CreatedAt: tx.Now(),
		})
	})
	must(o.t, err)
}

// settle processes everything that is due: the log, the clicks, the cards.
func (o *office) settle() {
	o.t.Helper()
	for range 2 {
		o.work()
		o.send(o.notifier, "slack")
		if _, err := o.notifier.WriteCards(context.Background(), "slack"); err != nil {
			o.t.Fatal(err)
		}
	}
}

func (o *office) work() {
	o.t.Helper()
	if _, err := o.handler.Work(context.Background()); err != nil {
		o.t.Fatal(err)
	}
}

// card is the message about an action.
func (o *office) card(a *gatehouse.Action) *slacktest.Message {
	o.t.Helper()
	var found *slacktest.Message
	for _, m := range o.slack.Messages() {
		if strings.Contains(m.All(), a.ID) && m.Thread == "" {
			if found != nil {
				o.t.Fatalf("two cards about %s", a.ID)
			}
			found = &m
		}
	}
	if found == nil {
		o.t.Fatalf("no card about %s", a.ID)
	}
	return found
}

// ask proposes a change and posts its card.
func (o *office) ask(kind string) (*gatehouse.Action, *slacktest.Message) {
	o.t.Helper()
	a := o.Propose("walnuts", kind, 12)
	o.settle()
	return a, o.card(a)
}

// press delivers a click, which must be acknowledged.
func (o *office) press(u slacktest.User, m *slacktest.Message, label string) {
	o.t.Helper()
	b := m.Button(label)
	if b == nil {
		o.t.Fatalf("the card has no button %s: %s", label, m.All())
	}
	o.deliverOK(o.slack.Request(o.slack.Press(u, m, b)))
}

func (o *office) deliverOK(r *http.Request) string {
	o.t.Helper()
	rec := o.slack.Deliver(o.handler, r)
	if rec.Code != http.StatusOK {
		o.t.Fatalf("not acknowledged: %d %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// told checks the last message that only one user has seen.
func (o *office) told(u slacktest.User, want string) {
	o.t.Helper()
	said := o.slack.Ephemerals(u.ID)
	if len(said) == 0 || !strings.Contains(said[len(said)-1], want) {
		o.t.Errorf("%s was told %q, want %q", u.ID, said, want)
	}
}

// slackOffices runs a test on both engines.
func slackOffices(t *testing.T, test func(*testing.T, *office)) {
	engines(t, func(t *testing.T, w *world) { test(t, newOffice(t, w)) })
}

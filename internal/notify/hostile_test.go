package notify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// hostileTexts attempt to add headers and recipients, to break out of the markup of mails and of
// Slack, and to hide characters.
var hostileTexts = []string{
	"x\r\nBcc: eve@evil.example\r\n\r\nbody",
	"\"'><script>alert(1)</script><img src=x onerror=alert(1)>",
	"<!channel> <https://evil.example|Open in Gatehouse> *bold* `code`",
	"\u202Etxet\u202C\u200Bword",
	"=?utf-8?q?=0d=0aBcc:_eve=40evil.example?=",
}

func (w *world) hostile(text string) *gatehouse.Action {
	w.t.Helper()
	quoted := gatehouse.StringJSON(text)
	a, _, err := w.Gate.Propose(w.As("bot"), &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:         gatehouse.Target{EntityType: "item", EntityRef: text},
		CurrentState:   gatehouse.ObjectJSON(gatehouse.Member{Name: "title", Value: `"old"`}),
		ProposedChange: gatehouse.ObjectJSON(gatehouse.Member{Name: "title", Value: quoted}),
		Rationale:      text,
		Context: gatehouse.ObjectJSON(
			gatehouse.Member{Name: "feature", Value: quoted},
			gatehouse.Member{Name: "feature_vector_state", Value: gatehouse.ObjectJSON(
				gatehouse.Member{Name: "current_edge", Value: gatehouse.ArrayJSON(quoted)},
			)},
		),
		Evaluations:  []gatehouse.Evaluation{{Name: "check", Kind: "human", Result: "warn", Details: text}},
		ArtifactDiff: &gatehouse.ArtifactDiff{Type: "spec", Summary: text},
	})
	must(w.t, err)
	return a
}

// TestHostileMail: text from agents adds no header, no recipient and no markup.
func TestHostileMail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
	for _, text := range hostileTexts {
		w.hostile(text)
	}
	w.send(n, "mail")
	mails := w.smtp.Mails()
	if len(mails) != 2*len(hostileTexts) {
		t.Fatalf("%d mails", len(mails))
	}
	for _, m := range mails {
		head, _, _ := strings.Cut(string(m.Raw), "\r\n\r\n")
		for line := range strings.SplitSeq(head, "\r\n") {
			if strings.HasPrefix(strings.ToLower(line), "bcc") || strings.ContainsAny(line, "\r\n\u202E") {
				t.Errorf("a header: %q", line)
			}
		}
		if got := m.Header.Get("To"); got != "<"+m.To+">" {
			t.Errorf("To: %s", got)
		}
		if strings.Contains(m.HTML, "<script") || strings.Contains(m.HTML, "<img") ||
			strings.Contains(m.HTML, "evil.example\"") {
			t.Errorf("markup:\n%s", m.HTML)
		}
		if strings.ContainsAny(m.Text+m.HTML+m.Subject(), "\u202E\u200B") {
			t.Errorf("hidden characters in %q", m.Subject())
		}
		if strings.Contains(m.Text, "\nBcc:") {
			t.Errorf("a line of its own:\n%s", m.Text)
		}
	}
}

// TestTenants: a channel sends nothing about a tenant that it does not serve, and tells only a
// tenant's own people about that tenant.
func TestTenants(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		if _, err := w.Gate.CreateTenant(w.Admin(), "acme"); err != nil {
			t.Fatal(err)
		}
		made, err := w.Gate.CreatePrincipal(w.Admin(), gatehouse.NewPrincipal{
			Tenant: "acme", Name: "root@acme.example", Kind: gatehouse.KindPerson,
			Roles: []gatehouse.Role{gatehouse.RoleAdmin},
		})
		must(t, err)
		key := w.Key
		w.SignIn(made.Key)
		w.create(
			gatehouse.NewPrincipal{
				Name: "ana", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
			},
		)
		w.create(gatehouse.NewPrincipal{
			Name: "bot", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer},
			Sponsor: "root@acme.example",
		})
		w.Propose("walnuts", "price_change", 12)
		foreign, ours := w.mail(), w.mail()
		ours.Name, ours.Tenants = "acme", []string{"acme", "not-yet-made"}
		n := w.notifier(notify.Config{Channels: []*notify.Configured{foreign, ours}})
		w.spread(n)
		w.Number()
		if _, err := n.FanOut(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		if _, err := n.FanOut(t.Context(), "not-yet-made"); err != nil {
			t.Errorf("a tenant that is not there: %v", err)
		}
		w.deliver(n, "mail")
		w.deliver(n, "acme")
		if got := recipients(w.smtp.Mails()); !slices.Equal(got, []string{"ana@shop.example"}) {
			t.Errorf("mails to %v", got)
		}
		if got := w.list(gatehouse.NotificationFilter{}); len(got) != 1 || got[0].Channel != "acme" {
			t.Errorf("acme's list: %v", got)
		}
		id := w.list(gatehouse.NotificationFilter{})[0].ID
		w.SignIn(key)
		if got := w.list(gatehouse.NotificationFilter{}); len(got) != 0 {
			t.Errorf("the list of default: %v", got)
		}
		if _, err := w.Gate.RetryNotification(w.As("olga"), id); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
			t.Errorf("another tenant's message: %v", err)
		}
	})
}

package notify_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slacktest"
)

// TestSlackApprove: a click is stored before it is acknowledged, shown as being recorded, decided
// in the name of the linked person, and answered; the card shows the result.
func TestSlackApprove(t *testing.T) {
	t.Parallel()
	slackOffices(t, func(t *testing.T, o *office) {
		a, m := o.ask("price_change")
		for _, want := range []string{"Approve", "Reject…", "Open in Gatehouse", "shop update on item walnuts", "version "} {
			if !strings.Contains(m.All(), want) {
				t.Errorf("the card lacks %q: %s", want, m.All())
			}
		}
		o.press(ana, m, "Approve")
		if got := o.Find(a).Status; got != gatehouse.StatusPending {
			t.Fatalf("decided before it was acknowledged: %s", got)
		}
		if _, err := o.notifier.WriteCards(context.Background(), "slack"); err != nil {
			t.Fatal(err)
		}
		if got := o.card(a); !strings.Contains(got.All(), "Recording") || got.Button("Approve") != nil {
			t.Errorf("while it is recorded: %s", got.All())
		}
		o.settle()
		done := o.Find(a)
		if done.Status != gatehouse.StatusApproved || done.DecidedBy != "ana" || done.DecidedVia != gatehouse.ViaSlack {
			t.Errorf("the action: %s by %s via %s", done.Status, done.DecidedBy, done.DecidedVia)
		}
		if got := o.card(a); !strings.Contains(got.All(), "Approved by ana") || got.Button("Approve") != nil {
			t.Errorf("the card: %s", got.All())
		}
		o.told(ana, "Recorded: you approved it.")
		if said := o.slack.Ephemerals(ana.ID); len(said) != 1 {
			t.Errorf("answered %d times: %q", len(said), said)
		}
	})
}

// TestSlackReject: a rejection opens a form for the reason at once.
func TestSlackReject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := newOffice(t, w)
	a, m := o.ask("price_change")
	o.press(bo, m, "Reject")
	views := o.slack.Views()
	if len(views) != 1 {
		t.Fatalf("%d forms", len(views))
	}
	if got := o.deliverOK(o.slack.Request(o.slack.Submit(bo, views[0], "  \n"))); !strings.Contains(got, `"errors"`) {
		t.Errorf("an empty reason: %s", got)
	}
	if got := o.deliverOK(o.slack.Request(o.slack.Submit(bo, views[0], "too <dear>"))); got != "" {
		t.Errorf("the form stays open: %s", got)
	}
	o.settle()
	done := o.Find(a)
	if done.Status != gatehouse.StatusRejected || done.Approval.Votes[0].Notes != "too <dear>" ||
		done.Approval.Votes[0].Via != gatehouse.ViaSlack {
		t.Errorf("the action: %s %+v", done.Status, done.Approval.Votes)
	}
	o.told(bo, "Recorded: you rejected it.")
	if got := o.card(a).All(); !strings.Contains(got, "Rejected by bo") {
		t.Errorf("the card: %s", got)
	}
}

// TestSlackFormFails: a click whose form cannot be opened is still answered, and records nothing.
func TestSlackFormFails(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t))
	a, m := o.ask("price_change")
	o.slack.Fail("views.open", "trigger_expired")
	o.press(ana, m, "Reject")
	o.settle()
	o.told(ana, "did not open in time")
	if got := o.Find(a).Status; got != gatehouse.StatusPending {
		t.Errorf("the action is %s", got)
	}
	if got := o.card(a); got.Button("Approve") == nil {
		t.Errorf("the card has lost its buttons: %s", got.All())
	}
}

// TestSlackTogether: two clicks and a decision in the console, all concurrent, give one decision
// and one card, and every click is answered.
func TestSlackTogether(t *testing.T) {
	t.Parallel()
	slackOffices(t, func(t *testing.T, o *office) {
		for range 4 {
			a, m := o.ask("price_change")
			before := len(o.slack.Ephemerals(ana.ID)) + len(o.slack.Ephemerals(bo.ID))
			button := m.Button("Approve")
			requests := []*http.Request{
				o.slack.Request(o.slack.Press(ana, m, button)), o.slack.Request(o.slack.Press(bo, m, button)),
			}
			var work sync.WaitGroup
			for _, r := range requests {
				work.Go(func() {
					if rec := o.slack.Deliver(o.handler, r); rec.Code != http.StatusOK {
						t.Errorf("not acknowledged: %d", rec.Code)
					}
					if _, err := o.handler.Work(context.Background()); err != nil {
						t.Error(err)
					}
				})
			}
			work.Go(func() {
				_, err := o.Gate.Decide(o.As("cy"), a.ID, gatehouse.Decision{Decision: gatehouse.Reject, Notes: "no"})
				switch gatehouse.CodeOf(err) {
				case "", gatehouse.CodeAlreadyDecided:
				default:
					t.Errorf("the console: %v", err)
				}
			})
			work.Wait()
			o.settle()
			done := o.Find(a)
			if done.Approval.Status != gatehouse.ApprovalApproved && done.Approval.Status != gatehouse.ApprovalRejected {
				t.Fatalf("the approval is %s", done.Approval.Status)
			}
			card := o.card(a)
			if !strings.Contains(card.All(), "by "+done.DecidedBy) || card.Button("Approve") != nil {
				t.Errorf("decided by %s; the card: %s", done.DecidedBy, card.All())
			}
			if got := len(o.slack.Ephemerals(ana.ID)) + len(o.slack.Ephemerals(bo.ID)) - before; got != 2 {
				t.Errorf("%d answers to two clicks", got)
			}
			o.Clock.Advance(time.Minute)
		}
	})
}

// TestSlackReplayed: a request that is repeated within the window is acknowledged each time, but is
// decided and answered only once.
func TestSlackReplayed(t *testing.T) {
	t.Parallel()
	slackOffices(t, func(t *testing.T, o *office) {
		a, m := o.ask("pair")
		r := o.slack.Request(o.slack.Press(ana, m, m.Button("Approve")))
		again := slacktest.Again(r)
		third := slacktest.Again(again)
		o.deliverOK(r)
		o.deliverOK(again)
		o.settle()
		o.Clock.Advance(4 * time.Minute)
		o.deliverOK(third)
		o.settle()
		if got := o.Find(a).Approval; got.Status != gatehouse.ApprovalRequested || len(got.Votes) != 1 {
			t.Errorf("the approval: %s, %d votes", got.Status, len(got.Votes))
		}
		if said := o.slack.Ephemerals(ana.ID); len(said) != 1 || !strings.Contains(said[0], "1 of 2") {
			t.Errorf("answers: %q", said)
		}
		if got := o.card(a); got.Button("Approve") == nil || !strings.Contains(got.All(), "1 of 2") {
			t.Errorf("the card after the first of two: %s", got.All())
		}
	})
}

// TestSlackKilled: an acknowledged click is carried out once, at whatever point the server is
// killed after the acknowledgement.
func TestSlackKilled(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"acknowledged", "decided", "recorded"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			slackOffices(t, func(t *testing.T, o *office) {
				a, m := o.ask("pair")
				o.press(ana, m, "Approve")
				if point != "acknowledged" {
					killed, kill := context.WithCancel(context.Background())
					o.handler.Failpoint = func(p string) {
						if p == point {
							kill()
							runtime.Goexit() // the server dies here
						}
					}
					_, _ = o.handler.Work(killed)
				}
				o.open() // another server
				o.settle()
				if point != "acknowledged" && len(o.slack.Ephemerals(ana.ID)) != 0 {
					t.Errorf("carried out within the lease of another")
				}
				o.Clock.Advance(2 * time.Minute)
				o.settle()
				if got := o.Find(a).Approval.Votes; len(got) != 1 || got[0].Name != "ana" {
					t.Errorf("votes: %+v", got)
				}
				if said := o.slack.Ephemerals(ana.ID); len(said) != 1 ||
					!strings.Contains(said[0], "Recorded: your approval counts, 1 of 2") {
					t.Errorf("answers: %q", said)
				}
				if n := o.logged("hitl.voted"); n != 1 {
					t.Errorf("%d entries hitl.voted", n)
				}
			})
		})
	}
}

// TestSlackRefused: nobody decides without the right to, and each refused person is told privately.
func TestSlackRefused(t *testing.T) {
	t.Parallel()
	slackOffices(t, func(t *testing.T, o *office) {
		a, m := o.ask("price_change")
		pressed := func(u slacktest.User, want string) {
			t.Helper()
			o.press(u, m, "Approve")
			o.settle()
			o.told(u, want)
			if got := o.Find(a).Status; got != gatehouse.StatusPending {
				t.Fatalf("the action is %s", got)
			}
		}
		pressed(eve, "not linked")
		pressed(slacktest.User{ID: ana.ID, Home: "T0OTHER99"}, "not linked") // a guest with ana's id
		pressed(sam, "You may not decide this")                              // sponsors the agent
		pressed(agent, "You may not decide this")                            // is an agent
		o.press(eve, m, "Reject")
		o.settle()
		o.told(eve, "not linked")
		if len(o.slack.Views()) != 0 {
			t.Error("a form for a person who is not linked")
		}
		disabled := true
		if _, err := o.Gate.UpdatePrincipal(o.Admin(), "bo", gatehouse.PrincipalChange{Disabled: &disabled}); err != nil {
			t.Fatal(err)
		}
		pressed(bo, "disabled")
		o.slack.RemoveFromChannels(eve.ID)
		o.Clock.Advance(time.Minute)
		before := o.slack.Messages()
		o.press(eve, m, "Approve")
		o.settle()
		if got := o.slack.Messages(); len(got) != len(before)+1 || got[len(got)-1].Channel != "D0EVE" {
			t.Errorf("a person who is not in the channel got no direct message: %d messages", len(got))
		}
	})
}

// TestSlackOtherCard: a button for another digest, revision or tenant decides nothing.
func TestSlackOtherCard(t *testing.T) {
	t.Parallel()
	slackOffices(t, func(t *testing.T, o *office) {
		a, m := o.ask("price_change")
		b := m.Button("Approve")
		value := b["value"].(string)
		with := func(value string) map[string]any {
			return map[string]any{"action_id": b["action_id"], "value": value}
		}
		digest := value[strings.LastIndex(value, "|")+1:]
		o.deliverOK(o.slack.Request(
			o.slack.Press(ana, m, with(strings.Replace(value, digest, "sha256:0011223344556677", 1)))))
		o.settle()
		o.told(ana, "it shows an earlier question")
		o.deliverOK(o.slack.Request(o.slack.Press(ana, m, with(strings.Replace(value, "|default|", "|acme|", 1)))))
		o.told(ana, "not served here")
		for _, wrong := range []string{"", "1|default|" + a.ID, value + "|x", "2" + value[1:], "1|default|psh_1|" + digest} {
			rec := o.slack.Deliver(o.handler, o.slack.Request(o.slack.Press(ana, m, with(wrong))))
			if rec.Code != http.StatusBadRequest {
				t.Errorf("%q: %d", wrong, rec.Code)
			}
		}
		next, err := o.Gate.Revise(o.As("bot"), a.ID, &gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target:       gatehouse.Target{EntityType: "item", EntityRef: "walnuts", Version: "7"},
			CurrentState: `{"amount":"0"}`, ProposedChange: `{"amount":"13"}`,
		})
		must(t, err)
		o.deliverOK(o.slack.Request(o.slack.Press(ana, m, b)))
		o.settle()
		o.told(ana, "newer revision")
		if got := o.Find(a).Status; got != gatehouse.StatusSuperseded {
			t.Errorf("the action is %s", got)
		}
		if got := o.Find(next).Status; got != gatehouse.StatusPending {
			t.Errorf("the revision is %s", got)
		}
		if got := o.card(a); got.Button("Approve") != nil || !strings.Contains(got.All(), "Withdrawn") {
			t.Errorf("the card of the superseded action: %s", got.All())
		}
	})
}

// TestSlackLevels: L3 is decided in Slack only if the policy permits it; L4 and expired actions are never
// decided there.
func TestSlackLevels(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t))
	grave, card := o.ask("refund")
	if card.Button("Approve") != nil || card.Button("Reject") != nil || card.Button("Open in Gatehouse") == nil {
		t.Errorf("the card of L4: %s", card.All())
	}
	value := strings.Join([]string{"1", "default", grave.ID, string(grave.Digest)[:gatehouse.DigestPrefix]}, "|")
	forged := map[string]any{"action_id": "gatehouse_approve", "value": value}
	o.deliverOK(o.slack.Request(o.slack.Press(ana, card, forged)))
	o.settle()
	o.told(ana, "L4 is decided in Gatehouse")
	if got := o.Find(grave).Status; got != gatehouse.StatusPending {
		t.Errorf("L4 is %s", got)
	}
	a, m := o.ask("price_change")
	o.apply(strings.Replace(policyFromSlack, "slack: {decide_up_to: 3}\n", "", 1))
	o.press(ana, m, "Approve")
	o.settle()
	o.told(ana, "L3 is decided in Gatehouse")
	if got := o.card(a); got.Button("Approve") != nil {
		t.Errorf("L3 without the policy's permission: %s", got.All())
	}
	o.apply(policyFromSlack)
	b, m := o.ask("price_change")
	o.Clock.Advance(49 * time.Hour)
	o.press(ana, m, "Approve")
	o.settle()
	o.told(ana, "Already resolved or expired")
	if got := o.Find(b).Status; got != gatehouse.StatusExpired {
		t.Errorf("the action is %s", got)
	}
	if got := o.card(b); got.Button("Approve") != nil || !strings.Contains(got.All(), "Nobody decided in time") {
		t.Errorf("the card of the expired action: %s", got.All())
	}
}

// TestSlackDown: while Slack is down for an hour, a stored click is decided; all messages wait, and arrive
// afterwards.
func TestSlackDown(t *testing.T) {
	t.Parallel()
	slackOffices(t, func(t *testing.T, o *office) {
		a, m := o.ask("price_change")
		o.press(ana, m, "Approve")
		o.slack.SetDown(true)
		late := o.Propose("pecans", "price_change", 3)
		for range 12 {
			o.settle()
			o.Clock.Advance(5 * time.Minute)
		}
		if got := o.Find(a); got.DecidedBy != "ana" {
			t.Fatalf("the action is %s", got.Status)
		}
		o.slack.SetDown(false)
		for range 8 {
			o.Clock.Advance(30 * time.Minute)
			o.settle()
		}
		if got := o.card(a); !strings.Contains(got.All(), "Approved by ana") {
			t.Errorf("the card: %s", got.All())
		}
		o.told(ana, "Recorded: you approved it.")
		if o.card(late).Button("Approve") == nil {
			t.Error("the late card has no button")
		}
	})
}

// TestSlackLostUpdate: an update whose answer was lost is repeated, and only one writer at a time
// writes a card.
func TestSlackLostUpdate(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t))
	a, _ := o.ask("price_change")
	o.slack.DropAnswers("chat.update", 1)
	o.Decide(a, "ana", gatehouse.Approve)
	o.settle()
	o.Clock.Advance(time.Minute)
	o.settle()
	if got := o.card(a); !strings.Contains(got.All(), "Approved by ana") || got.Updates != 2 {
		t.Errorf("%d updates: %s", got.Updates, got.All())
	}
	b, _ := o.ask("price_change")
	held := func() (c *gatehouse.PostedCard) {
		err := o.Store.Update(t.Context(), "default", func(tx gatehouse.Tx) (err error) {
			c, err = tx.ClaimCard("slack", b.ID, "another", time.Minute)
			return err
		})
		must(t, err)
		return c
	}()
	o.Decide(b, "ana", gatehouse.Reject)
	o.settle()
	if got := o.card(b); got.Updates != 0 {
		t.Errorf("written while another holds it: %s", got.All())
	}
	o.Clock.Advance(2 * time.Minute)
	o.settle()
	if got := o.card(b); !strings.Contains(got.All(), "Rejected by ana") {
		t.Errorf("after the lease of another: %s", got.All())
	}
	err := o.Store.Update(
		t.Context(),
		held.Tenant,
		func(tx gatehouse.Tx) error { return tx.UpdateCard(held, held.Generation) },
	)
	if !errors.Is(err, gatehouse.ErrConflict) {
		t.Errorf("the late writer: %v", err)
	}
}

// TestSlackCut: a card that omits a part of the action offers no approval.
func TestSlackCut(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t))
	change := map[string]string{}
	for i := range 7 {
		change[fmt.Sprint("field", i)] = fmt.Sprint("value ", i)
	}
	for name, with := range map[string]gatehouse.JSON{
		"seven fields": gatehouse.MustJSON(change),
		"a long value": gatehouse.MustJSON(map[string]string{"title": strings.Repeat("long ", 60)}),
	} {
		a, _, err := o.Gate.Propose(o.As("bot"), &gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target: gatehouse.Target{EntityType: "item", EntityRef: "walnuts"}, ProposedChange: with, CurrentState: `{}`,
		})
		must(t, err)
		o.settle()
		m := o.card(a)
		if m.Button("Approve") != nil || m.Button("Reject") == nil || !strings.Contains(m.All(), "does not show all") {
			t.Errorf("%s: %s", name, m.All())
		}
	}
}

// TestSlackRewritten: a card shows a field whose value only the agent calls unchanged, and offers no approval if
// there is no room for it.
func TestSlackRewritten(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t))
	ask := func(before, after map[string]string) *slacktest.Message {
		a, _, err := o.Gate.Propose(o.As("bot"), &gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target:       gatehouse.Target{EntityType: "item", EntityRef: "walnuts"},
			CurrentState: gatehouse.MustJSON(before), ProposedChange: gatehouse.MustJSON(after),
		})
		must(t, err)
		o.settle()
		return o.card(a)
	}
	m := ask(
		map[string]string{"price": "10.00", "bank_account": "EVIL", "note": "x"},
		map[string]string{"price": "12.50", "bank_account": "EVIL"},
	)
	if m.Button("Approve") == nil || strings.Contains(m.All(), "note") ||
		!strings.Contains(m.All(), "/bank_account: set to EVIL (unchanged, as the agent says)") ||
		!strings.Contains(m.All(), "walnuts: /price, /bank_account") {
		t.Errorf("the card: %s", m.All())
	}

	before, after := map[string]string{"price": "10.00"}, map[string]string{"price": "12.50"}
	for i := range notify.MaxDiffLines {
		name := fmt.Sprint("field", i)
		before[name], after[name] = "EVIL", "EVIL"
	}
	m = ask(before, after)
	if m.Button("Approve") != nil || m.Button("Reject") == nil || !strings.Contains(m.All(), "does not show all") ||
		!strings.Contains(m.All(), "/price: 10.00 → 12.50") {
		t.Errorf("the card: %s", m.All())
	}
}

// TestSlackEllipsis: an ellipsis of the proposer's own does not count as a cut.
func TestSlackEllipsis(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t))
	a, _, err := o.Gate.Propose(o.As("bot"), &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update", Rationale: "The label was wrong…",
		Target:         gatehouse.Target{EntityType: "item", EntityRef: "walnuts"},
		ProposedChange: `{"label":"Loading…"}`, CurrentState: `{"label":"Load"}`,
	})
	must(t, err)
	o.settle()
	m := o.card(a)
	if m.Button("Approve") == nil || strings.Contains(m.All(), "Shortened here") ||
		!strings.Contains(m.All(), "Load → Loading…") {
		t.Errorf("the card: %s", m.All())
	}
}

// TestHostileCard: text from agents is plain text even on a card with buttons, and cannot create a
// button.
func TestHostileCard(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t))
	for _, text := range append(hostileTexts, strings.Repeat("&<x>", 250), strings.Repeat("|", 40)) {
		a := o.hostile(text)
		o.settle()
		m := o.card(a)
		if texts := markup(m.Blocks); len(texts) > 0 {
			t.Errorf("marked up: %q", texts)
		}
		if strings.ContainsAny(m.All(), "\u202E\u200B") || strings.Contains(m.Text, "<") {
			t.Errorf("%q: %s", text, m.All())
		}
		if b := m.Button("Reject"); b == nil || strings.Count(b["value"].(string), "|") != 3 {
			t.Errorf("%q: the button is %v", text, b)
		}
	}
}

package app

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Everybody who can shape what a run proposes is stored as a hand on the run in
// the transaction that lets their data in, before any step can read it. What the
// run proposes after that excludes all hands from deciding: see Runs.proposerOf.

// hand stores that a principal had a hand in what the run is made from.
func (m *moving) hand(principal string) error {
	return m.tx.InsertHand(m.run.Tenant, m.run.ID, principal)
}

// handOfSender stores the principal that answers for the webhook that began the
// run, where the workflow names one.
func (m *moving) handOfSender() error {
	hook := m.def.On.Webhook
	if m.run.Trigger != gatehouse.TriggerWebhook || hook == nil || hook.Sender == "" {
		return nil
	}
	p, err := m.tx.FindPrincipal(m.run.Tenant, hook.Sender)
	if err != nil {
		return err
	}
	return m.hand(p.ID)
}

// inherit stores the hands on another run, whose output becomes this one's.
func (m *moving) inherit(run *gatehouse.Run) error {
	names, err := m.runs.hands(m.tx, run)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := m.hand(name); err != nil {
			return err
		}
	}
	return nil
}

// handsOfAction stores the hands on an applied action, whose change and receipt
// become the step's output: another proposer than the workflow, and the worker
// outside that carried it out.
func (m *moving) handsOfAction(a *gatehouse.Action) error {
	if a.ProposedBy != actorName(m.run.Workflow) {
		if err := m.hand(a.ProposerID); err != nil {
			return err
		}
	}
	if a.Push == nil {
		return nil
	}
	p, err := m.tx.FindPush(a.Tenant, a.Push.ID)
	if err != nil {
		return err
	}
	if p.Lane == "" || p.LeaseOwner == "" {
		return nil // this server's dispatcher carried it out
	}
	return m.hand(principalOf(p.LeaseOwner))
}

// principalOf is the id of the principal that holds a lease; see ownerOf.
func principalOf(owner string) string {
	id, _, _ := strings.Cut(owner, "/")
	return id
}

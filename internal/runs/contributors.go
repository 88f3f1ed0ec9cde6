package runs

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// A contributor is a principal that can influence what a run proposes. It is stored with the
// run, in the transaction that stores the principal's data, before any step can read the data.
// No contributor can decide on later proposals of the run: see Runs.proposerOf.

// addContributor stores a contributor of the run.
func (m *runTx) addContributor(principal string) error {
	return m.tx.InsertRunContributor(m.run.ID, principal)
}

// addSender stores the sender of the webhook that started the run as a contributor, if the
// workflow names one.
func (m *runTx) addSender() error {
	hook := m.def.On.Webhook
	if m.run.Trigger != gatehouse.TriggerWebhook || hook == nil || hook.Sender == "" {
		return nil
	}
	p, err := m.tx.FindPrincipal(hook.Sender)
	if err != nil {
		return err
	}
	return m.addContributor(p.ID)
}

// inheritContributors stores the contributors of another run whose output this run uses.
func (m *runTx) inheritContributors(run *gatehouse.Run) error {
	principals, err := m.runs.contributors(m.tx, run)
	if err != nil {
		return err
	}
	for _, p := range principals {
		if err := m.addContributor(p); err != nil {
			return err
		}
	}
	return nil
}

// addContributorsOfAction stores the contributors of an applied action, whose change and receipt become
// the step's output: a proposer other than the workflow, the editors, and the outside worker
// that executed the action.
func (m *runTx) addContributorsOfAction(a *gatehouse.Action) error {
	if a.ProposedBy != actorName(m.run.Workflow) {
		if err := m.addContributor(a.ProposerID); err != nil {
			return err
		}
	}
	for _, editor := range a.Editors {
		if err := m.addContributor(editor); err != nil {
			return err
		}
	}
	if a.Push == nil {
		return nil
	}
	p, err := m.tx.FindPush(a.Push.ID)
	if err != nil {
		return err
	}
	if p.Lane == "" || p.LeaseOwner == "" {
		return nil // no outside worker reported the result
	}
	return m.addContributor(principalOf(p.LeaseOwner))
}

// principalOf returns the id of the principal that holds a lease; see ownerOf.
func principalOf(owner string) string {
	id, _, _ := strings.Cut(owner, "/")
	return id
}

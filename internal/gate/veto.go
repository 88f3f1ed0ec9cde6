package gate

import (
	"context"
	"fmt"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// vetoInput is the input of a veto. A veto is the reason why the active policy no longer allows an action: the policy
// denies the action, or requires more than the approval did. If the version that judged the action is still active,
// only a raised floor of the operation can cause a veto. The input is read in a transaction. The policy evaluates it
// in that transaction if the evaluation is quick, and otherwise outside.
type vetoInput struct {
	action *gatehouse.Action
	floor  gatehouse.RiskLevel
	// decided is true once veto is known. veto is the result, "" for none.
	decided   bool
	veto      string
	judgement judgement
}

// vetoKey identifies a vetoInput. Two inputs with the same key have the same result, since
// policy versions and proposals never change.
type vetoKey struct {
	tenant, action string
	digest         gatehouse.Digest
	version        int
	floor          gatehouse.RiskLevel
	proposer       string
}

func (h *vetoInput) key() vetoKey {
	a, who := h.action, h.judgement.facts.Proposer
	return vetoKey{
		tenant: a.Tenant, action: a.ID, digest: a.Digest, version: h.judgement.version, floor: h.floor,
		proposer: fmt.Sprintf("%q %q %q %q %q", who.ID, who.Name, who.Kind, who.Roles, who.Sponsor),
	}
}

// readVetoInput reads what the veto of the active version needs. It reads the proposer if proposer is nil.
func (g *Gate) readVetoInput(
	tx vetoFacts, a *gatehouse.Action, version int, proposer *gatehouse.Principal,
) (*vetoInput, error) {
	if version == a.Policy.Version && version != 0 {
		_, floor, _, err := g.targets.Describe(a.Tenant, &a.Proposal)
		if err != nil || floor <= a.RiskLevel {
			return &vetoInput{decided: true}, nil //nolint:nilerr // other checks report a missing connector
		}
		h := &vetoInput{decided: true}
		if more := asksMore(a, gatehouse.OutcomeAllow, floor, 0); more != "" {
			h.veto = "the floor of the operation is " + floor.String() + " now: " + more
		}
		return h, nil
	}

	if proposer == nil {
		var err error
		if proposer, err = tx.FindPrincipal(a.ProposerID); err != nil {
			return nil, err
		}
	}
	_, floor, _, err := g.targets.Describe(a.Tenant, &a.Proposal)
	if err != nil {
		//nolint:nilerr // the error is the veto
		return &vetoInput{decided: true, veto: "the connector or its operation is gone"}, nil
	}

	proposal := a.Proposal
	proposal.RiskLevel = a.ClaimedRisk
	reversal, err := restores(tx, a.Reverses, &proposal)
	if err != nil {
		return nil, err
	}
	j, err := g.prepareJudgementBy(tx, policy.Facts{
		Tenant: a.Tenant, Proposal: &proposal, Proposer: proposer, Floor: floor, ProposedAt: a.ProposedAt,
		Reversal: reversal, Declared: a.Declared,
	}, version)
	if err != nil {
		return nil, err
	}
	h := &vetoInput{action: a, floor: floor, judgement: j}
	if j.policy == nil {
		h.decided, h.veto = true, h.vetoText()
	}
	return h, nil
}

// judgeQuickly judges the input within a transaction, if that is quick. It reports whether the veto is decided.
func (h *vetoInput) judgeQuickly() bool {
	if h.decided {
		return true
	}
	verdict, ok := h.judgement.policy.EvaluateQuickly(h.judgement.facts)
	if !ok {
		return false
	}
	h.judgement.Verdict = verdict
	h.decided, h.veto = true, h.vetoText()
	return true
}

// vetoText returns the veto that follows from the verdict, "" for none.
func (h *vetoInput) vetoText() string {
	j := h.judgement
	if j.Outcome != gatehouse.OutcomeDeny {
		if more := asksMore(h.action, j.Outcome, max(j.RiskLevel, h.floor, h.action.ClaimedRisk),
			j.Required); more != "" {
			return fmt.Sprintf("policy version %d asks for more: %s", j.version, more)
		}
		return ""
	}
	reason := fmt.Sprintf("policy version %d denies it", j.version)
	if len(j.Reasons) > 0 {
		reason += ": " + j.Reasons[0]
	}
	return reason
}

// vetoCache keeps the vetoes of judged inputs.
type vetoCache struct {
	mu    sync.Mutex
	vetos map[vetoKey]string
}

// maxVetos bounds the cache; a full cache is emptied.
const maxVetos = 1024

func (c *vetoCache) get(k vetoKey) (veto string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	veto, known = c.vetos[k]
	return veto, known
}

func (c *vetoCache) put(k vetoKey, veto string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vetos == nil || len(c.vetos) >= maxVetos {
		c.vetos = make(map[vetoKey]string)
	}
	c.vetos[k] = veto
}

// unjudged ends a transaction that needs a veto which has not been judged yet. The
// transaction is rerun once Do has returned.
type unjudged struct {
	gate  *Gate
	input *vetoInput
}

func (u *unjudged) Error() string {
	return "gate: the policy has to judge " + u.input.action.ID + " before the transaction"
}

// Do judges outside the transaction. It fails when the context ends.
func (u *unjudged) Do(ctx context.Context) error {
	return u.gate.judgeVeto(ctx, u.input)
}

// judgeVeto judges the input, and caches the veto. It fails when the context ends.
func (g *Gate) judgeVeto(ctx context.Context, h *vetoInput) (err error) {
	if h.decided {
		return nil
	}
	if h.judgement, err = h.judgement.evaluate(ctx); err != nil {
		return err
	}
	h.decided, h.veto = true, h.vetoText()
	g.vetos.put(h.key(), h.veto)
	return nil
}

// vetoed returns the veto within a transaction, "" for none. If the policy judges too slowly for a
// transaction, it fails with [*unjudged].
func (g *Gate) vetoed(tx vetoFacts, a *gatehouse.Action, rights *gatehouse.Rights) (string, error) {
	h, err := g.readVetoInput(tx, a, rights.PolicyVersion, rights.Proposer)
	if err != nil {
		return "", err
	}
	if h.judgeQuickly() {
		return h.veto, nil
	}
	if veto, known := g.vetos.get(h.key()); known {
		return veto, nil
	}
	held := *a
	h.action = &held // a copy, since the transaction may change its own
	return "", &unjudged{g, h}
}

package gate

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// A policy with policy_changes: gated can be replaced only through the gate: the
// change is an L4 action that another person approves, dispatched like any other.
const (
	// PolicyConnector and PolicyOperation identify actions that replace a policy.
	// Only [Gate.ProposePolicy] and [Gate.Undo] propose such actions.
	PolicyConnector = "gatehouse"
	PolicyOperation = "apply_policy"
)

// sourceText is the JSON form of a policy, or of the connectors in the store, in a change and in its pre-image.
type sourceText struct {
	Source string `json:"source"`
}

// gatedChanges reports whether the active policy can be replaced only through the
// gate. A policy that does not load counts as gated when its text has the key.
func (g *Gate) gatedChanges(tx gatehouse.PolicyReader, tenant string) (bool, error) {
	p, _, _, err := g.activePolicy(tx, tenant)
	if err != nil || p != nil {
		return p != nil && p.GatedChanges(), err
	}
	stored, err := tx.ActivePolicy()
	if errors.Is(err, gatehouse.ErrNotFound) {
		return false, nil
	}
	return err == nil && strings.Contains(stored.Source, "policy_changes"), err
}

// requireUngated fails with policy_gated when the policy can be replaced only through the gate.
func (g *Gate) requireUngated(tx gatehouse.PolicyReader, tenant string) error {
	gated, err := g.gatedChanges(tx, tenant)
	if err == nil && gated {
		err = gatehouse.E(gatehouse.CodePolicyGated,
			"the active policy has policy_changes: gated: propose the change, and have somebody else approve it")
	}
	return err
}

// ProposePolicy proposes to replace the active policy: an L4 action that shows the
// difference, for another person to approve. The digest covers both texts.
func (g *Gate) ProposePolicy(ctx context.Context, r gatehouse.PolicyProposal) (*gatehouse.Action, error) {
	c, err := g.adminWithStepUp(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := policy.Parse([]byte(r.Source)); err != nil {
		return nil, policyError(err)
	}
	active, err := g.ActivePolicy(ctx)
	if err != nil {
		return nil, err
	}
	if active.Source == r.Source {
		return nil, gatehouse.Violations{{Pointer: "/source", Detail: "is the active policy already"}}.Err()
	}
	p := &gatehouse.Proposal{
		ActionType: "policy_change", Connector: PolicyConnector, Operation: PolicyOperation,
		Target: gatehouse.Target{EntityType: "policy", EntityRef: c.Principal.Tenant,
			Version: strconv.Itoa(active.Version)},
		CurrentState:   gatehouse.MustJSON(sourceText{active.Source}),
		ProposedChange: gatehouse.MustJSON(sourceText{r.Source}),
		Rationale:      r.Rationale,
	}
	a, _, err := g.propose(ctx, c, p, lineage{revision: 1, own: true})
	return a, err
}

// ApplyApprovedPolicy activates the policy of an approved action, once: a repeated call
// for the same action returns the earlier result. from is the version that is
// replaced; when another version is active, the error has code target_changed, and
// nothing changes.
func (g *Gate) ApplyApprovedPolicy(
	ctx context.Context, tenant, actionID string, change gatehouse.JSON, from string,
) (version int, err error) {
	var text sourceText
	if err := json.Unmarshal([]byte(change), &text); err != nil {
		return 0, gatehouse.E(gatehouse.CodeInvalid, "the change holds no policy")
	}
	err = g.Update(ctx, tenant, nil, func(tx gatehouse.Tx) error {
		version = 0
		versions, err := tx.ListPolicies()
		if err != nil {
			return err
		}
		for _, v := range versions {
			if v.ActionID == actionID {
				version = v.Version
				return nil
			}
		}

		active, err := tx.ActivePolicyVersion()
		if err != nil {
			return err
		}
		if strconv.Itoa(active) != from {
			return gatehouse.E(gatehouse.CodeTargetChanged, "version %d is active, not %s", active, from)
		}

		a, err := tx.FindAction(actionID)
		if err != nil {
			return err
		}
		by := author{id: a.ProposerID, name: a.ProposedBy, tenant: tenant, via: a.DecidedVia}
		v, err := storePolicy(tx, tenant, by, text.Source, actionID)
		if err == nil {
			version = v.Version
		}
		return err
	})
	return version, err
}

// ActivePolicyOf returns the number of a tenant's active version.
func (g *Gate) ActivePolicyOf(ctx context.Context, tenant string) (version int, err error) {
	err = g.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) (err error) {
		version, err = tx.ActivePolicyVersion()
		return err
	})
	return version, err
}

// BreakGlass replaces a tenant's policy without the gate. It takes no caller: it is
// for people with direct access to the store, when nobody can approve any more. The
// log gets an entry of its own type besides policy.applied, and every administrator
// is notified.
func (g *Gate) BreakGlass(ctx context.Context, tenant, source string) (*gatehouse.PolicyVersion, error) {
	if _, err := policy.Parse([]byte(source)); err != nil {
		return nil, policyError(err)
	}
	by := machineAuthor("break_glass")
	var out *gatehouse.PolicyVersion
	err := g.Update(ctx, tenant, nil, func(tx gatehouse.Tx) error {
		if _, err := tx.FindTenant(); err != nil {
			return usecase.NotFound(err, "tenant "+tenant)
		}
		var err error
		if out, err = storePolicy(tx, tenant, by, source, ""); err != nil {
			return err
		}
		return recordPolicy(tx, by, "policy.break_glass", out)
	})
	if err != nil {
		return nil, err
	}
	g.Log.WarnContext(ctx, "BREAK-GLASS: a policy was changed without the gate, with direct access to the store",
		"tenant", tenant, "version", out.Version, "sha256", out.SHA256)
	return out, nil
}

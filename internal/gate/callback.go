package gate

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

// CallbackInfo describes an enabled type of callbacks to the use cases.
type CallbackInfo struct {
	Type    string
	Tenants []string
	// Check refuses a callback whose destination the configuration does not allow.
	Check func(*gatehouse.Callback) error
}

// withCallback checks the callback of a proposal and seals its task token for the action with
// the id. It does not change the proposal. A revision that the gate makes inherits the callback
// of the action that it replaces.
func (g *Gate) withCallback(
	tenant, id string, p *gatehouse.Proposal, from lineage,
) (*gatehouse.Proposal, error) {
	if p.Callback == nil {
		return p, nil
	}
	c := *p.Callback
	if from.supersedes != nil && from.supersedes.Callback == p.Callback {
		var err error
		if c.TaskToken, err = g.TaskToken(from.supersedes); err != nil {
			return nil, err
		}
	} else if err := g.checkCallback(tenant, &c); err != nil {
		return nil, err
	}
	if c.TaskToken != "" {
		if g.config.Master == nil {
			return nil, unsupportedCallback(c.Type, "links.master_key")
		}
		sealed, err := g.config.Master.Seal([]byte(c.TaskToken), callbackAAD(tenant, id)...)
		if err != nil {
			return nil, err
		}
		c.Sealed = g.config.Master.ID() + ":" + base64.StdEncoding.EncodeToString(sealed)
		c.TaskTokenHash, c.TaskToken = gatehouse.HashTaskToken(c.TaskToken), ""
	}
	out := *p
	out.Callback = &c
	return &out, nil
}

func (g *Gate) checkCallback(tenant string, c *gatehouse.Callback) error {
	i := slices.IndexFunc(g.config.Callbacks, func(info CallbackInfo) bool { return info.Type == c.Type })
	switch {
	case i < 0:
		return unsupportedCallback(c.Type, "callbacks."+c.Type)
	case !slices.Contains(g.config.Callbacks[i].Tenants, tenant):
		return unsupportedCallback(c.Type, "callbacks.tenants")
	}
	return g.config.Callbacks[i].Check(c)
}

// unsupportedCallback names the missing configuration key.
func unsupportedCallback(kind, key string) error {
	return &gatehouse.Error{
		Code:   gatehouse.CodeUnsupported,
		Detail: "callbacks of type " + kind + " are not enabled on this server: see " + key + " in the configuration",
		Violations: gatehouse.Violations{{
			Pointer: "/callback/type", Detail: "is not enabled on this server: see " + key,
		}},
	}
}

// callbackAAD returns the associated data of an action's sealed task token.
func callbackAAD(tenant, action string) []string { return []string{tenant, "callback", action} }

// TaskToken opens the task token of an action's callback, "" where it has none.
func (g *Gate) TaskToken(a *gatehouse.Action) (string, error) {
	if a.Callback == nil || a.Callback.Sealed == "" {
		return "", nil
	}
	master, text, _ := strings.Cut(a.Callback.Sealed, ":")
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || g.config.Master == nil {
		return "", ring.ErrSealed
	}
	token, err := g.config.Master.Open(sealed, master, callbackAAD(a.Tenant, a.ID)...)
	return string(token), err
}

// WithdrawGone cancels a pending action whose proposer no longer waits for its
// callback. A held rejection takes effect at once. WithdrawGone changes nothing if the
// action is decided or has expired.
func (g *Gate) WithdrawGone(ctx context.Context, tenant, id, why string) error {
	moved := false
	err := g.Update(ctx, tenant, nil, func(tx gatehouse.Tx) error {
		a, err := tx.LockAction(id)
		moved = err == nil && a.Status == gatehouse.StatusPending && tx.Now().Before(a.Approval.End())
		if !moved {
			return err
		}
		if rejected, _ := a.HeldRejection(); rejected != nil {
			return rejectHeld(tx, a, rejected)
		}
		return cancelPending(tx, &gatehouse.Principal{ID: "system"}, a,
			&gatehouse.Failure{Code: gatehouse.FailureWorkflowGone, Detail: why})
	})
	if moved && err == nil {
		g.Hints.Notify(id)
	}
	return err
}

package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.EvaluationService = (*Gate)(nil)

// Evaluate stores the result of a registered evaluator for a pending action. It decides nothing.
// One evaluator has one result for each revision.
func (g *Gate) Evaluate(
	ctx context.Context, id string, n gatehouse.NewEvaluated,
) (*gatehouse.Evaluated, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	found, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleEvaluator); err != nil {
		return nil, err
	}
	if err := n.Validate(); err != nil {
		return nil, err
	}
	out, err := usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Evaluated, error) {
		a, err := tx.LockAction(found.ID)
		if err != nil {
			return nil, err
		}
		if a.Digest != n.Digest {
			return nil, gatehouse.E(gatehouse.CodeDigestMismatch, "this is not what you evaluated: the digest differs").
				With("digest", a.Digest)
		}
		if a.Status != gatehouse.StatusPending || !tx.Now().Before(a.Approval.End()) {
			a.See(tx.Now())
			return nil, tooLate(a)
		}
		list := a.Approval.Evaluated
		switch {
		case slices.ContainsFunc(list, func(e gatehouse.Evaluated) bool { return e.ByID == c.Principal.ID }):
			return nil, gatehouse.E(gatehouse.CodeAlreadyExists, "you have evaluated this action already")
		case len(list) >= gatehouse.MaxEvaluated:
			return nil, gatehouse.E(gatehouse.CodeAlreadyExists, "the action has the maximum of %d evaluations",
				gatehouse.MaxEvaluated)
		}
		e := gatehouse.Evaluated{ByID: c.Principal.ID, By: c.Principal.Name, NewEvaluated: n, At: tx.Now()}
		if err := tx.SetEvaluated(a.Approval.ID, append(slices.Clone(list), e)); err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(n.Text))
		return &e, record(tx, a, "hitl.evaluated", c.Principal.ID, gatehouse.StatusPending, gatehouse.StatusPending,
			map[string]any{
				"approval": a.Approval.ID, "by": e.By, "digest": n.Digest, "result": n.Result, "score": string(n.Score),
				"text_sha256": hex.EncodeToString(sum[:]),
			})
	})
	if err != nil {
		return nil, err
	}
	g.Hints.Notify(found.ID)
	return out, nil
}

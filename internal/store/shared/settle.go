package shared

import "github.com/gatehouse-dev/gatehouse"

// CheckSettlement refuses a settlement that is for another tenant, or whose leaf or push does not fit it.
func CheckSettlement(tenant string, d *gatehouse.Settlement) error {
	p := d.Push
	switch {
	case d.Leaf.Tenant != tenant || p != nil && p.Tenant != tenant:
		return gatehouse.ErrOtherTenant
	case d.Leaf.ActionID != d.ActionID:
		return gatehouse.ErrConflict
	case d.To == gatehouse.StatusRejected && p == nil:
		return nil
	case d.To == gatehouse.StatusApproved && p != nil && p.ActionID == d.ActionID &&
		p.Status == gatehouse.PushQueued && p.Attempts == 0 && p.Generation == 0 &&
		p.NextAttempt != nil && p.NextAttempt.Equal(p.NotBefore):
		return nil
	}
	return gatehouse.ErrConflict
}

// SettleByParts writes a decision by the methods for its parts.
func SettleByParts(tx gatehouse.Tx, d *gatehouse.Settlement) error {
	if err := tx.PutVote(d.ApprovalID, d.Vote); err != nil {
		return err
	}
	if err := tx.MoveApproval(d.ApprovalID, gatehouse.ApprovalStatus(d.To)); err != nil {
		return err
	}
	err := tx.MoveAction(gatehouse.ActionMove{
		ID: d.ActionID, From: gatehouse.StatusPending, To: d.To, DecidedBy: d.Vote.Name, DecidedVia: d.Vote.Via,
		Decided: true, DecidedAt: d.Vote.At, Finished: d.To.Finished(),
	})
	if err == nil && d.Push != nil {
		err = tx.InsertPush(d.Push)
	}
	if err == nil {
		err = tx.AppendLeaf(d.Leaf)
	}
	return err
}

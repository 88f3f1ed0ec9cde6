package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
)

// held is a transaction's knowledge of the action that it last read or wrote.
// It stays valid until the end of the transaction, except for the transaction's
// own writes, because nobody else writes. Later statements use the row number
// from held and need not find the row, or check its status, again.
type held struct {
	tenant, id, approval string
	seq                  int64
	status               gatehouse.Status
	approvalStatus       gatehouse.ApprovalStatus
	// voters are the persons who have voted.
	voters []string
}

func (t *tx) hold(seq int64, a *gatehouse.Action) {
	t.held = held{tenant: a.Tenant, id: a.ID, seq: seq, status: a.Status}
	if a.Approval != nil {
		t.held.approval, t.held.approvalStatus = a.Approval.ID, a.Approval.Status
		for _, v := range a.Approval.Votes {
			t.held.voters = append(t.held.voters, v.Person)
		}
	}
}

// holds returns held if it is about this action, else nil.
func (t *tx) holds(tenant, id string) *held {
	if h := &t.held; h.seq != 0 && h.id == id && h.tenant == tenant {
		return h
	}
	return nil
}

// holdsApproval is holds for an approval's id.
func (t *tx) holdsApproval(tenant, id string) *held {
	if h := &t.held; h.seq != 0 && id != "" && h.approval == id && h.tenant == tenant {
		return h
	}
	return nil
}

// pushOf identifies the push that was last locked or written, and its action.
type pushOf struct{ tenant, id, action string }

// rowOf returns the row number of an action; 0 when there is none. It is looked
// up once, and later statements use it.
func (t *tx) rowOf(tenant, id string) (int64, error) {
	if h := t.holds(tenant, id); h != nil {
		return h.seq, nil
	}
	seq, err := t.number(`SELECT seq FROM action WHERE tenant = ? AND id = ?`, tenant, id)
	if err == nil && seq != 0 {
		t.held = held{tenant: tenant, id: id, seq: seq}
	}
	return seq, err
}

// LockAction reads an action as it is stored: a pending action past its expiry
// is still pending here, as the guard of MoveAction sees it.
func (t *tx) LockAction(id string) (*gatehouse.Action, error) {
	t.stored = true
	defer func() { t.stored = false }()
	row, err := t.find(t.tenant, id)
	if err != nil {
		return nil, err
	}
	t.hold(row.seq, row.action)
	return row.action, nil
}

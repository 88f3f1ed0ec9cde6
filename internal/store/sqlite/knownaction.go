package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
)

// knownAction holds facts about the action that a transaction last locked or wrote. No other transaction
// writes meanwhile, so the facts stay true until this transaction writes the action, and each such write
// updates them. Later statements take the row number and the status from here instead of reading them
// again.
type knownAction struct {
	tenant, id, approval string
	seq                  int64
	status               gatehouse.Status
	approvalStatus       gatehouse.ApprovalStatus
	// voters are the people who have voted.
	voters []string
}

// remember sets t.known to the facts of an action with the row number seq.
func (t *tx) remember(seq int64, a *gatehouse.Action) {
	t.known = knownAction{tenant: a.Tenant, id: a.ID, seq: seq, status: a.Status}
	if a.Approval != nil {
		t.known.approval, t.known.approvalStatus = a.Approval.ID, a.Approval.Status
		for _, v := range a.Approval.Votes {
			t.known.voters = append(t.known.voters, v.Person)
		}
	}
}

// knownByID returns t.known if it is about the action with this id, else nil.
func (t *tx) knownByID(tenant, id string) *knownAction {
	if known := &t.known; known.seq != 0 && known.id == id && known.tenant == tenant {
		return known
	}
	return nil
}

// knownByApproval returns t.known if it is about the action whose approval has this id, else nil.
func (t *tx) knownByApproval(tenant, id string) *knownAction {
	if known := &t.known; known.seq != 0 && id != "" && known.approval == id && known.tenant == tenant {
		return known
	}
	return nil
}

// knownPush identifies the push that was last locked or written, and the action of that push.
type knownPush struct{ tenant, id, action string }

// rowOf returns the row number of an action; 0 when there is no such action. A transaction looks the
// number up once and keeps it in t.known.
func (t *tx) rowOf(tenant, id string) (int64, error) {
	if known := t.knownByID(tenant, id); known != nil {
		return known.seq, nil
	}
	seq, err := t.number(`SELECT seq FROM action WHERE tenant = ? AND id = ?`, tenant, id)
	if err == nil && seq != 0 {
		t.known = knownAction{tenant: tenant, id: id, seq: seq}
	}
	return seq, err
}

// LockAction reads an action with its stored status: an action past its expiry that the sweeper has not moved
// yet is still pending. MoveAction compares with the stored status too.
func (t *tx) LockAction(id string) (*gatehouse.Action, error) {
	t.asStored = true
	defer func() { t.asStored = false }()
	row, err := t.find(t.tenant, id)
	if err != nil {
		return nil, err
	}
	t.remember(row.seq, row.action)
	return row.action, nil
}

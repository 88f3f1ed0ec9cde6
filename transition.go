package gatehouse

import "slices"

// The transition tables. A store repeats them as CHECK constraints and guarded
// updates; nothing moves outside them. Keys are the states before the move.
var (
	actionMoves = map[Status][]Status{
		"":               {StatusPending, StatusApproved, StatusDenied},
		StatusPending:    {StatusApproved, StatusRejected, StatusExpired, StatusCanceled, StatusSuperseded},
		StatusApproved:   {StatusCanceled, StatusSuperseded, StatusPushing, StatusFailed},
		StatusPushing:    {StatusApplied, StatusFailed, StatusUnknown},
		StatusUnknown:    {StatusApplied, StatusFailed, StatusApproved},
		StatusFailed:     {StatusApproved},
		StatusApplied:    {StatusReversed},
		StatusRejected:   nil,
		StatusDenied:     nil,
		StatusExpired:    nil,
		StatusCanceled:   nil,
		StatusSuperseded: nil,
		StatusReversed:   nil,
	}
	approvalMoves = map[ApprovalStatus][]ApprovalStatus{
		"":                {ApprovalRequested},
		ApprovalRequested: {ApprovalApproved, ApprovalRejected, ApprovalExpired, ApprovalCanceled},
		ApprovalApproved:  nil,
		ApprovalRejected:  nil,
		ApprovalExpired:   nil,
		ApprovalCanceled:  nil,
	}
	pushMoves = map[PushStatus][]PushStatus{
		"":           {PushQueued},
		PushQueued:   {PushPicking, PushCanceled},
		PushPicking:  {PushSent, PushQueued, PushFailed},
		PushSent:     {PushApplied, PushFailed, PushUnknown, PushQueued},
		PushFailed:   {PushQueued},
		PushUnknown:  {PushApplied, PushFailed, PushQueued},
		PushApplied:  nil,
		PushCanceled: nil,
	}
)

// CanMove reports whether the table has the transition; an empty s is the
// state before creation.
func (s Status) CanMove(to Status) bool { return slices.Contains(actionMoves[s], to) }

// CanMove reports whether the table has the transition.
func (s ApprovalStatus) CanMove(to ApprovalStatus) bool { return slices.Contains(approvalMoves[s], to) }

// CanMove reports whether the table has the transition.
func (s PushStatus) CanMove(to PushStatus) bool { return slices.Contains(pushMoves[s], to) }

// Statuses lists the states of an action.
func Statuses() []Status {
	return []Status{
		StatusPending, StatusApproved, StatusRejected, StatusDenied, StatusExpired, StatusCanceled,
		StatusSuperseded, StatusPushing, StatusApplied, StatusFailed, StatusUnknown, StatusReversed,
	}
}

// PushStatuses lists the states of a push.
func PushStatuses() []PushStatus {
	return []PushStatus{PushQueued, PushPicking, PushSent, PushApplied, PushFailed, PushUnknown, PushCanceled}
}

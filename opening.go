package gatehouse

import "slices"

// Each frequent transition begins with one typed read, which costs PostgreSQL one round trip. It
// locks the rows that the transition changes, and returns all data for its rules.

// TransitionReader has the typed reads that lock nothing.
type TransitionReader interface {
	// OpenCaller returns the store's data about a caller; for nil, empty CallerFacts.
	OpenCaller(by *Caller) (CallerFacts, error)
	// FindDecision is OpenDecision without locks and voters. It ignores Approve, and reads the
	// policy's version and the proposer of each pending action. The action is as FindAction
	// returns it. The sponsor, and an action that is not pending, may be left out.
	FindDecision(q DecisionQuery) (*OpenedDecision, error)
	// OpenPage is ListActions with the caller's facts and, if views is true, the caller's saved
	// views. If the filter is invalid, OpenPage still returns the caller's facts.
	OpenPage(by *Caller, f ActionFilter, views bool) (*OpenedPage, error)
}

// TransitionWriter has the typed reads that begin a transition, and the typed write of a decision.
type TransitionWriter interface {
	// OpenDecision locks an action, as LockAction does. A missing action is not an error.
	OpenDecision(q DecisionQuery) (*OpenedDecision, error)
	// SettleDecision writes a decision: the vote, the approval and its action, the push, and
	// the leaf. It returns ErrConflict unless the action is pending. This transaction must have
	// locked or inserted the action.
	SettleDecision(s *Settlement) error
	// OpenProposal reads the data that a proposal is compared with.
	OpenProposal(q ProposalQuery) (*OpenedProposal, error)
	// OpenPush locks an action, then its push.
	OpenPush(q PushQuery) (*OpenedPush, error)
	// OpenStep is LockRun for the outcome of a leased step, whose transaction reads nothing
	// else and writes only rows of that run.
	OpenStep(runID, item string) (*Run, error)
}

// CallerFacts is the store's data about a caller.
type CallerFacts struct {
	// Principal and EditToken belong to the key of [Caller.Cached]. They are zero for a
	// caller without Cached, and for a key that is unknown or revoked.
	Principal *Principal
	// EditToken is the SHA-256 of the caller's edit token.
	EditToken [32]byte
	// Answer is the stored answer under the caller's Idempotency-Key; nil for none.
	Answer *IdempotencyRecord
}

// Rights is the data that the right to decide an action depends on.
type Rights struct {
	// PolicyVersion is the active version; 0 for none.
	PolicyVersion int
	// Voters are the people who approved the action, and the caller of a decision,
	// locked against changes. Some may be missing.
	Voters []*Principal
	// Proposer is who proposed the action, Sponsor the proposer's sponsor; nil if missing.
	Proposer, Sponsor *Principal
}

// Locked returns the voters with these ids; nil unless all of them are there.
func (r *Rights) Locked(ids []string) []*Principal {
	list := make([]*Principal, len(ids))
	for i, id := range ids {
		at := slices.IndexFunc(r.Voters, func(p *Principal) bool { return p.ID == id })
		if at < 0 {
			return nil
		}
		list[i] = r.Voters[at]
	}
	return list
}

// DecisionQuery opens a decision.
type DecisionQuery struct {
	By *Caller
	// ActionID is the action's id, or its approval's.
	ActionID string
	// Approve also reads the rights, if the action is pending.
	Approve bool
}

// OpenedDecision is the data for a decision.
type OpenedDecision struct {
	CallerFacts
	Rights
	// Action is nil if there is none.
	Action *Action
}

// Settlement is a decision that settles the question of a pending action. Voter, channel and time of the
// decision are those of Vote.
type Settlement struct {
	ActionID, ApprovalID string
	// Vote is the vote that settles the question.
	Vote Vote
	// To is approved or rejected.
	To Status
	// Push is the queued push of an approved action, due at NotBefore; nil for a rejected one.
	Push *Push
	// Leaf is the log entry of the decision.
	Leaf *Leaf
}

// ProposalQuery opens a proposal. Zero fields ask for nothing.
type ProposalQuery struct {
	By *Caller
	// Key is the idempotency key of the proposal.
	Key string
	// Supersedes is the action that the proposal revises. It is locked; ErrNotFound if it is
	// missing.
	Supersedes string
	// Effect is the hash that finds dead letters of the same change.
	Effect Hash
	// Names are the names or ids of people who cannot decide; Asked is the audience of the question.
	Names []string
	Asked *Audience
}

// OpenedProposal is the data for a proposal.
type OpenedProposal struct {
	CallerFacts
	// PolicyVersion is the number of the active version, 0 for none.
	PolicyVersion int
	// Same is the action with the key; nil for none.
	Same *Action
	// DeadLetter is the action of the tenant's newest dead letter with the effect; "" for
	// none.
	DeadLetter string
	// Named has an entry for each of the names; nil for an unknown one.
	Named map[string]*Principal
	// Answerers are up to [MaxFirstAnswerers] persons who may decide (see Principal.MayDecide),
	// by id: candidates for the audience. Some of them may be excluded, or not asked.
	Answerers []*Principal
}

// PushQuery opens a push.
type PushQuery struct {
	ActionID, PushID string
	// Rights also reads the rights, and ReceiptKey the receipt that SuccessReceipt finds.
	Rights     bool
	ReceiptKey string
}

// OpenedPush is the data for the last checks of a push.
type OpenedPush struct {
	Rights
	// Action is locked.
	Action *Action
	// Push is locked, with its lease as stored.
	Push    *Push
	Receipt *Receipt // nil for none
}

// OpenedPage is a page of actions for a caller.
type OpenedPage struct {
	CallerFacts
	Page Page[*Action]
	// Views are the caller's saved views, by name; nil unless asked for.
	Views []*SavedView
}

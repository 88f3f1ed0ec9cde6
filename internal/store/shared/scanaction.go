package shared

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// approvalWidth is the number of columns that scanApproval reads.
const approvalWidth = 23

// extra holds the rare parts of a proposal.
type extra struct {
	Evaluations  []gatehouse.Evaluation  `json:"evaluations,omitempty"`
	ArtifactDiff *gatehouse.ArtifactDiff `json:"artifact_diff,omitempty"`
	Callback     *Callback               `json:"callback,omitempty"`
	Ceilings     []ceilingClaim          `json:"ceilings,omitempty"`
	RiskName     string                  `json:"risk_name,omitempty"`
	Title        string                  `json:"title,omitempty"`
	Repeats      string                  `json:"repeats,omitempty"`
	RebasedBy    string                  `json:"rebased_by,omitempty"`
	UndoneBy     string                  `json:"undone_by,omitempty"`
	EditedBy     string                  `json:"edited_by,omitempty"`
	Edit         *gatehouse.Edit         `json:"edit,omitempty"`
	Editors      []string                `json:"editors,omitempty"`
	Declared     *gatehouse.Declared     `json:"declared,omitempty"`
}

// EncodeExtra encodes the rare parts of an action's proposal; "" for none.
func EncodeExtra(a *gatehouse.Action) (string, error) {
	if len(a.Evaluations) == 0 && a.ArtifactDiff == nil && a.Callback == nil && len(a.Ceilings) == 0 &&
		a.RiskName == "" && a.Title == "" && a.Repeats == "" && a.RebasedBy == "" && a.UndoneBy == "" &&
		len(a.Editors) == 0 && a.Declared.IsZero() {
		return "", nil
	}
	return EncodeJSON(&extra{
		a.Evaluations, a.ArtifactDiff, storeCallback(a.Callback), storeCeilings(a.Ceilings), a.RiskName, a.Title, a.Repeats,
		a.RebasedBy, a.UndoneBy,
		a.EditedBy, a.Edit, a.Editors, a.Declared,
	})
}

// ScanAction reads an action with its proposal and its approval.
func ScanAction(r Row) (a *gatehouse.Action, err error) {
	a = new(gatehouse.Action)
	a.Tenant, a.ID, a.Status = r.Text(), r.Text(), gatehouse.Status(r.Text())
	a.ActionType, a.RiskLevel, a.ProposerID = r.Text(), gatehouse.RiskLevel(r.Int()), r.Text()
	a.IdempotencyKey, a.ProposedAt = r.Text(), r.Time()
	a.DecidedBy, a.DecidedVia, a.DecidedAt, a.FinishedAt = r.Text(), gatehouse.Channel(r.Text()), r.TimePtr(),
		r.TimePtr()
	a.Failure = ScanFailure(r)
	a.Supersedes, a.Superseded, a.Reverses, a.ReversedBy = r.Text(), r.Text(), r.Text(), r.Text()
	a.Revision, a.Connector, a.Operation = int(r.Int()), r.Text(), r.Text()
	a.Target.EntityType, a.Target.EntityRef = r.Text(), r.Text()
	a.Target.EntityRefs, a.Target.Version = listAt[string](r, &err), r.Text()
	a.ClaimedRisk = gatehouse.RiskLevel(r.Int())
	if r.Null() {
		r.Skip(2)
	} else {
		a.Magnitude = &gatehouse.Magnitude{Amount: gatehouse.Decimal(r.Text()), Currency: r.Text()}
	}
	a.OnBehalfOf = r.Text()
	a.ExpiresIn, a.HoldFor = gatehouse.Span(r.Int()), gatehouse.Duration(r.Int())
	a.Digest, a.Fingerprint, a.ContentHash = gatehouse.Digest(r.Text()), r.Text(), r.Hash()
	a.Policy.Outcome, a.Policy.Version = gatehouse.Outcome(r.Text()), int(r.Int())
	a.Policy.Rules, a.Policy.Reasons = listAt[string](r, &err), listAt[string](r, &err)
	a.ProposedBy, a.Rationale = r.Text(), r.Text()
	a.ProposedChange, a.CurrentState, a.Context, a.Metadata = r.JSON(), r.JSON(), r.JSON(), r.JSON()
	if x := JSONAt[extra](r, &err); x != nil {
		a.Evaluations, a.ArtifactDiff, a.Callback, a.Ceilings = x.Evaluations, x.ArtifactDiff, x.Callback.Load(),
			loadCeilings(x.Ceilings)
		a.RiskName, a.Title, a.Repeats, a.RebasedBy = x.RiskName, x.Title, x.Repeats, x.RebasedBy
		a.UndoneBy, a.EditedBy, a.Edit, a.Editors, a.Declared = x.UndoneBy, x.EditedBy, x.Edit, x.Editors, x.Declared
	}
	if r.Null() {
		r.Skip(approvalWidth)
	} else {
		a.Approval = scanApproval(r, a.ID, &err)
	}
	return a, err
}

// scanApproval reads an approval without its votes.
func scanApproval(r Row, actionID string, err *error) *gatehouse.Approval {
	o := &gatehouse.Approval{
		ActionID: actionID, ID: r.Text(), Status: gatehouse.ApprovalStatus(r.Text()), Required: int(r.Int()),
		Roles: listAt[gatehouse.Role](r, err), People: listAt[string](r, err), Excluded: listAt[string](r, err),
		ExpiresAt: r.Time(), CreatedAt: r.Time(), Votes: []gatehouse.Vote{},
	}
	if r.Null() {
		r.Skip(2)
	} else {
		o.Confirm = &gatehouse.Confirm{Prompt: r.Text(), Value: r.Text()}
	}
	o.Groups = listAt[string](r, err)
	if timing := JSONAt[gatehouse.Timing](r, err); timing != nil {
		o.Timing = *timing
	}
	o.MomentsDone = int(r.Int())
	if at := r.TimePtr(); at != nil {
		o.TargetChanged = &gatehouse.TargetMark{At: *at, Version: r.Text(), By: r.Text()}
	} else {
		r.Skip(2)
	}
	o.About = JSONAt[gatehouse.About](r, err)
	o.Conversation = gatehouse.Conversation{Comments: int(r.Int()), Asked: int(r.Int()), Answered: int(r.Int())}
	if id, name := r.Text(), r.Text(); id != "" {
		o.Assignee = &gatehouse.Assignee{ID: id, Name: name}
	}
	if list := JSONAt[[]gatehouse.Evaluated](r, err); list != nil {
		o.Evaluated = *list
	}
	o.ExpiresAt = o.ExpiresAt.Add(-o.ExtendBy.D())
	return o
}

// ScanVote reads a vote.
func ScanVote(r Row) gatehouse.Vote {
	return gatehouse.Vote{
		Person: r.Text(), PrincipalID: r.Text(), Name: r.Text(), Decision: gatehouse.DecisionKind(r.Text()),
		Notes: r.Text(), Via: gatehouse.Channel(r.Text()), Digest: gatehouse.Digest(r.Text()), At: r.Time(),
		For: r.Text(), ForName: r.Text(), Grant: r.Text(),
	}
}

// SortVotes sorts votes by time, the oldest first.
func SortVotes(votes []gatehouse.Vote) {
	slices.SortFunc(votes, func(a, b gatehouse.Vote) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Person, b.Person))
	})
}

// ScanPush reads a push.
func ScanPush(r Row) *gatehouse.Push {
	p := &gatehouse.Push{
		Tenant: r.Text(), ID: r.Text(), ActionID: r.Text(), Connector: r.Text(), IdempotencyKey: r.Text(),
		Digest: gatehouse.Digest(r.Text()),
		Status: gatehouse.PushStatus(r.Text()), Attempts: int(r.Int()), AttemptBase: int(r.Int()), LastError: r.Text(),
		ErrorCode: r.Text(),
		NotBefore: r.Time(), CreatedAt: r.Time(), NextAttempt: r.TimePtr(), PickedAt: r.TimePtr(), SentAt: r.TimePtr(),
		AppliedAt: r.TimePtr(), FinishedAt: r.TimePtr(), Generation: int(r.Int()), LeaseOwner: r.Text(),
		LeaseUntil: r.TimePtr(),
		Replays:    int(r.Int()), Lane: r.Text(), TargetSays: r.Text(), ClosedAt: r.TimePtr(), ClosedBy: r.Text(),
		ClosedReason: r.Text(),
		PutBack:      int(r.Int()),
	}
	if p.Status != gatehouse.PushFailed && p.Status != gatehouse.PushUnknown {
		p.TargetSays = "" // it describes an end that a replay has undone
	}
	return p
}

// ScanPushFact reads a fact of a push.
func ScanPushFact(r Row) gatehouse.PushFact {
	f := gatehouse.PushFact{
		Connector: r.Text(), Status: gatehouse.PushStatus(r.Text()), ErrorCode: r.Text(), LastError: r.Text(),
		TargetSays: r.Text(), CreatedAt: r.Time(), NotBefore: r.Time(), SentAt: r.TimePtr(), AppliedAt: r.TimePtr(),
		FinishedAt: r.TimePtr(),
	}
	if f.Status != gatehouse.PushFailed && f.Status != gatehouse.PushUnknown {
		f.TargetSays = "" // left over from an outcome that a replay has undone
	}
	return f
}

// ScanReceipt reads a receipt.
func ScanReceipt(r Row, err *error) *gatehouse.Receipt {
	return &gatehouse.Receipt{
		Tenant: r.Text(), ID: r.Text(), ActionID: r.Text(), PushID: r.Text(), IdempotencyKey: r.Text(),
		Attempt: int(r.Int()), Generation: int(r.Int()), Outcome: gatehouse.ReceiptOutcome(r.Text()),
		ErrorCode: r.Text(), Error: r.Text(), ExternalID: r.Text(), Reversible: r.Bool(), Late: r.Bool(),
		Source: r.Text(), At: r.Time(),
		RequestMetadata: r.JSON(), ResponseMetadata: r.JSON(), Reversal: JSONAt[gatehouse.Reversal](r, err),
	}
}

// ScanMirror reads the mirror of an applied action.
func ScanMirror(r Row, err *error) *gatehouse.AppliedMirror {
	m := &gatehouse.AppliedMirror{Tenant: r.Text(), ActionID: r.Text(), ActionType: r.Text(), Connector: r.Text(),
		Operation: r.Text()}
	if target := JSONAt[gatehouse.Target](r, err); target != nil {
		m.Target = *target
	}
	m.Before, m.After, m.Digest = r.JSON(), r.JSON(), gatehouse.Digest(r.Text())
	m.ExternalID, m.ReceiptID, m.AppliedAt = r.Text(), r.Text(), r.Time()
	return m
}

// ScanArchived reads a row of the archive.
func ScanArchived(r Row) (*gatehouse.Archived, error) {
	a := &gatehouse.Archived{
		Tenant: r.Text(), ID: r.Text(), ApprovalID: r.Text(), PushID: r.Text(), IdempotencyKey: r.Text(),
		Status:     gatehouse.Status(r.Text()),
		ActionType: r.Text(), RiskLevel: gatehouse.RiskLevel(r.Int()), ProposerID: r.Text(), ProposedAt: r.Time(),
		EndedAt:    r.Time(),
		ArchivedAt: r.Time(), Batch: r.Text(), SHA256: r.Hash(),
	}
	var err error
	a.Document, err = Unpack(r.Blob())
	return a, err
}

func scanCandidate(r Row) (*ArchiveCandidate, error) {
	return &ArchiveCandidate{
		Seq: r.Int(), Tenant: r.Text(), ID: r.Text(), Status: gatehouse.Status(r.Text()), ProposedAt: r.Time(),
		EndedAt: r.Time(), Pinned: r.Bool(), Related: r.Bool(), Size: r.Int(),
	}, nil
}

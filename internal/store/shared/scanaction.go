package shared

import "github.com/gatehouse-dev/gatehouse"

// approvalWidth is the number of columns that ScanApproval reads.
const approvalWidth = 17

// extra holds the rare parts of a proposal.
type extra struct {
	Evaluations  []gatehouse.Evaluation   `json:"evaluations,omitempty"`
	ArtifactDiff *gatehouse.ArtifactDiff  `json:"artifact_diff,omitempty"`
	Callback     *Callback                `json:"callback,omitempty"`
	Ceilings     []gatehouse.CeilingClaim `json:"ceilings,omitempty"`
	RiskName     string                   `json:"risk_name,omitempty"`
	Title        string                   `json:"title,omitempty"`
	Repeats      string                   `json:"repeats,omitempty"`
	RebasedBy    string                   `json:"rebased_by,omitempty"`
	EditedBy     string                   `json:"edited_by,omitempty"`
	Edit         *gatehouse.Edit          `json:"edit,omitempty"`
	Editors      []string                 `json:"editors,omitempty"`
}

// EncodeExtra stores the rare parts; "" for none.
func EncodeExtra(a *gatehouse.Action) (string, error) {
	if len(a.Evaluations) == 0 && a.ArtifactDiff == nil && a.Callback == nil && len(a.Ceilings) == 0 &&
		a.RiskName == "" && a.Title == "" && a.Repeats == "" && a.RebasedBy == "" && len(a.Editors) == 0 {
		return "", nil
	}
	return EncodeJSON(&extra{
		a.Evaluations, a.ArtifactDiff, StoreCallback(a.Callback), a.Ceilings, a.RiskName, a.Title, a.Repeats, a.RebasedBy,
		a.EditedBy, a.Edit, a.Editors,
	})
}

// ScanAction reads an action with its proposal and its approval.
func ScanAction(r Row) (a *gatehouse.Action, err error) {
	a = new(gatehouse.Action)
	a.Tenant, a.ID, a.Status = r.Text(), r.Text(), gatehouse.Status(r.Text())
	a.ActionType, a.RiskLevel, a.ProposerID = r.Text(), gatehouse.RiskLevel(r.Int()), r.Text()
	a.IdempotencyKey, a.ProposedAt = r.Text(), r.Time()
	a.DecidedBy, a.DecidedVia, a.DecidedAt, a.FinishedAt = r.Text(), gatehouse.Channel(r.Text()), r.TimePtr(), r.TimePtr()
	if r.Null() {
		r.Skip(2)
	} else {
		a.Failure = &gatehouse.Failure{Code: r.Text(), Detail: r.Text()}
	}
	a.Supersedes, a.Superseded, a.Reverses, a.ReversedBy = r.Text(), r.Text(), r.Text(), r.Text()
	a.Revision, a.Connector, a.Operation = int(r.Int()), r.Text(), r.Text()
	a.Target.EntityType, a.Target.EntityRef = r.Text(), r.Text()
	a.Target.EntityRefs, a.Target.Version = ListAt[string](r, &err), r.Text()
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
	a.Policy.Rules, a.Policy.Reasons = ListAt[string](r, &err), ListAt[string](r, &err)
	a.ProposedBy, a.Rationale = r.Text(), r.Text()
	a.ProposedChange, a.CurrentState, a.Context, a.Metadata = r.JSON(), r.JSON(), r.JSON(), r.JSON()
	if x := JsonAt[extra](r, &err); x != nil {
		a.Evaluations, a.ArtifactDiff, a.Callback, a.Ceilings = x.Evaluations, x.ArtifactDiff, x.Callback.Load(), x.Ceilings
		a.RiskName, a.Title, a.Repeats, a.RebasedBy = x.RiskName, x.Title, x.Repeats, x.RebasedBy
		a.EditedBy, a.Edit, a.Editors = x.EditedBy, x.Edit, x.Editors
	}
	if r.Null() {
		r.Skip(approvalWidth)
	} else {
		a.Approval = ScanApproval(r, a.ID, &err)
	}
	return a, err
}

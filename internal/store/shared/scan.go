package shared

import (
	"encoding/json"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Row is the current row of a result. Its methods read the columns from left to right.
type Row interface {
	Text() string
	JSON() gatehouse.JSON
	Int() int64
	Bool() bool
	Time() time.Time
	// TimePtr is nil for NULL.
	TimePtr() *time.Time
	Hash() [32]byte
	Blob() []byte
	// Null reports whether the next column is NULL, without reading it.
	Null() bool
	Skip(n int)
}

// JSONAt is ListAt for a JSON value.
func JSONAt[T any](r Row, err *error) *T {
	v, e := DecodeJSON[T](r.Text())
	if e != nil && *err == nil {
		*err = e
	}
	return v
}

// ListAt reads a stored list from the next column. It keeps the first error in err.
func ListAt[T ~string](r Row, err *error) []T {
	list, e := DecodeList[T](r.Text())
	if e != nil && *err == nil {
		*err = e
	}
	return list
}

// MembershipsAt is ListAt for memberships.
func MembershipsAt(r Row, err *error) []gatehouse.Membership {
	list, e := DecodeMemberships(r.Text())
	if e != nil && *err == nil {
		*err = e
	}
	return list
}

// OrNull stores "" as NULL.
func OrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// OrNone turns ErrNotFound into no row.
func OrNone[T any](row *T, err error) (*T, error) {
	if err == gatehouse.ErrNotFound { //nolint:errorlint // the stores' own, unwrapped
		return nil, nil
	}
	return row, err
}

// FailureArgs returns the arguments for the columns that ScanFailure reads.
func FailureArgs(f *gatehouse.Failure) (code, detail any) {
	if f == nil {
		return nil, nil
	}
	return f.Code, f.Detail
}

// OpenFlag is 1 for an open row, else 0.
func OpenFlag(open bool) int {
	if open {
		return 1
	}
	return 0
}

// ScanCard reads [CardColumns].
func ScanCard(r Row) *gatehouse.PostedCard {
	return &gatehouse.PostedCard{
		Tenant: r.Text(), Channel: r.Text(), ActionID: r.Text(), Ref: r.Text(), Wanted: r.Int(), Shown: r.Text(),
		DueAt: r.TimePtr(), Attempts: int(r.Int()), Generation: int(r.Int()), LeaseOwner: r.Text(), LastError: r.Text(),
		UpdatedAt: r.Time(),
	}
}

// ScanChannelState reads the state of a channel.
func ScanChannelState(r Row) (*gatehouse.ChannelState, error) {
	s := &gatehouse.ChannelState{
		Tenant: r.Text(), Channel: r.Text(), Failures: int(r.Int()), FailingSince: r.TimePtr(), Flaky: r.Bool(),
	}
	minutes, err := DecodeJSON[[]gatehouse.ChannelMinute](r.Text())
	if minutes != nil {
		s.Minutes = *minutes
	}
	s.OffAt, s.LastError, s.LastOKAt = r.TimePtr(), r.Text(), r.TimePtr()
	return s, err
}

// ScanClick reads [ClickColumns].
func ScanClick(r Row) *gatehouse.SlackClick {
	return &gatehouse.SlackClick{
		Tenant: r.Text(), ID: r.Text(), CreatedAt: r.Time(), Key: r.Hash(), Channel: r.Text(), Place: r.Text(),
		TS: r.Text(), Issuer: r.Text(), User: r.Text(), ActionID: r.Text(), Digest: r.Text(),
		Choice: gatehouse.DecisionKind(r.Text()), Reason: r.Text(), Result: r.Text(), Said: r.Text(),
		Attempts: int(r.Int()), LastError: r.Text(), DueAt: r.TimePtr(), FinishedAt: r.TimePtr(),
		Generation: int(r.Int()), LeaseOwner: r.Text(),
	}
}

// ScanDelegation reads a delegation.
func ScanDelegation(r Row) (*gatehouse.Delegation, error) {
	d := &gatehouse.Delegation{
		Tenant: r.Text(), ID: r.Text(), From: r.Text(), FromName: r.Text(), To: r.Text(), ToName: r.Text(),
		Starts: r.Time(), Ends: r.Time(),
	}
	types := r.Text()
	d.Level, d.CreatedAt, d.CreatedBy = gatehouse.RiskLevel(r.Int()), r.Time(), r.Text()
	d.EndedAt, d.EndedBy = r.TimePtr(), r.Text()
	return d, json.Unmarshal([]byte(types), &d.Types)
}

// ScanDevice reads a device.
func ScanDevice(r Row) *gatehouse.Device {
	d := &gatehouse.Device{
		Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(),
		Subscription: gatehouse.Subscription{Endpoint: r.Text(), P256DH: r.Blob(), Auth: r.Blob()},
		Label:        r.Text(), CreatedAt: r.Time(), LastSentAt: r.TimePtr(), LastMessage: r.Text(),
		LastError: r.Text(),
	}
	d.Service = d.PushService()
	return d
}

// ScanFailure reads code and detail, which are either both NULL or both set.
func ScanFailure(r Row) *gatehouse.Failure {
	if r.Null() {
		r.Skip(2)
		return nil
	}
	return &gatehouse.Failure{Code: r.Text(), Detail: r.Text()}
}

// ScanGrant reads a grant.
func ScanGrant(r Row) (g *gatehouse.Grant, err error) {
	g = &gatehouse.Grant{
		Tenant: r.Text(), ID: r.Text(), Grantor: r.Text(), GrantorName: r.Text(), Agent: r.Text(), AgentName: r.Text(),
		Connector: r.Text(), Fingerprint: r.Text(), Operation: r.Text(), When: r.Text(),
		Level: gatehouse.RiskLevel(r.Int()),
	}
	g.Count = int(r.Int())
	if g.Amounts, err = DecodeAmounts(r.Text()); err != nil {
		return nil, err
	}
	g.Used = int(r.Int())
	if g.UsedAmounts, err = DecodeAmounts(r.Text()); err != nil {
		return nil, err
	}
	g.CreatedAt, g.ExpiresAt, g.EndedAt = r.Time(), r.Time(), r.TimePtr()
	g.EndedBy, g.EndReason = r.Text(), gatehouse.GrantEnd(r.Text())
	return g, nil
}

// ScanGroup reads [GroupColumns].
func ScanGroup(r Row) *gatehouse.Group {
	return &gatehouse.Group{Tenant: r.Text(), Name: r.Text(), CreatedAt: r.Time()}
}

// ScanIdentity reads [IdentityColumns].
func ScanIdentity(r Row) *gatehouse.ExternalIdentity {
	return &gatehouse.ExternalIdentity{
		Tenant: r.Text(), Issuer: r.Text(), Subject: r.Text(), PrincipalID: r.Text(), CreatedAt: r.Time(),
	}
}

// ScanKey reads [KeyColumns].
func ScanKey(r Row) *gatehouse.Key {
	return &gatehouse.Key{
		Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(), Hash: r.Hash(), CreatedAt: r.Time(),
		RevokedAt: r.TimePtr(),
	}
}

// ScanNamed reads a notification and then the name of its recipient.
func ScanNamed(r Row) *gatehouse.Notification {
	n := ScanNotification(r)
	n.RecipientName = r.Text()
	return n
}

// ScanNotification reads [NotificationColumns].
func ScanNotification(r Row) *gatehouse.Notification {
	return &gatehouse.Notification{
		Tenant: r.Text(), ID: r.Text(), CreatedAt: r.Time(), Kind: gatehouse.NotificationKind(r.Text()),
		ActionID: r.Text(),
		Entry:    r.Int(), Channel: r.Text(), Recipient: r.Text(), Status: gatehouse.NotificationStatus(r.Text()),
		Attempts:  int(r.Int()),
		LastError: r.Text(), DueAt: r.TimePtr(), FinishedAt: r.TimePtr(), Generation: int(r.Int()),
		LeaseOwner: r.Text(),
		Ref:        r.Text(), Data: gatehouse.JSON(r.Text()),
	}
}

// ScanPasskey reads [PasskeyColumns].
func ScanPasskey(r Row) *gatehouse.Passkey {
	return &gatehouse.Passkey{
		Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(), Name: r.Text(), CredentialID: r.Blob(),
		Credential: r.Blob(),
		SignCount:  uint32(r.Int()), CreatedAt: r.Time(), LastUsedAt: r.TimePtr(),
	}
}

// ScanPolicy reads [PolicyColumns].
func ScanPolicy(r Row) *gatehouse.PolicyVersion {
	return &gatehouse.PolicyVersion{
		Tenant: r.Text(), Version: int(r.Int()), SHA256: r.Text(), Active: r.Bool(), AppliedBy: r.Text(),
		AppliedAt: r.Time(), ActionID: r.Text(),
	}
}

// ScanConnectorVersion reads [ConnectorVersionColumns].
func ScanConnectorVersion(r Row) *gatehouse.ConnectorVersion {
	return &gatehouse.ConnectorVersion{
		Tenant: r.Text(), Version: int(r.Int()), SHA256: r.Text(), AppliedBy: r.Text(), AppliedAt: r.Time(),
		ActionID: r.Text(),
	}
}

// ScanPrincipal reads [PrincipalColumns].
func ScanPrincipal(r Row) (*gatehouse.Principal, error) {
	var err error
	p := &gatehouse.Principal{
		Tenant: r.Text(), ID: r.Text(), Name: r.Text(), Kind: gatehouse.Kind(r.Text()),
		Roles:  ListAt[gatehouse.Role](r, &err),
		Person: r.Text(), Sponsor: r.Text(), Disabled: r.Bool(), CreatedAt: r.Time(), ApproverSince: r.TimePtr(),
		Groups: MembershipsAt(r, &err),
	}
	return p, err
}

// ScanReview reads a review.
func ScanReview(r Row) *gatehouse.Review {
	return &gatehouse.Review{
		Tenant: r.Text(), ID: r.Text(), ActionID: r.Text(), ApprovalID: r.Text(), Recipient: r.Text(),
		CreatedAt: r.Time(),
		ExpiresAt: r.Time(), Tries: int(r.Int()), RecipientName: r.Text(),
	}
}

// ScanRingKey reads a key of a ring.
func ScanRingKey(r Row) *gatehouse.RingKey {
	return &gatehouse.RingKey{
		Tenant: r.Text(), ID: r.Text(), Number: uint32(r.Int()),
		Purpose: gatehouse.RingPurpose(r.Text()), Sealed: r.Blob(), Master: r.Text(), CreatedAt: r.Time(),
		CreatedBy: r.Text(),
		RetiredAt: r.TimePtr(), EndsAt: r.TimePtr(), RevokedAt: r.TimePtr(),
	}
}

// ScanSecret reads a secret.
func ScanSecret(r Row) *gatehouse.Secret {
	return &gatehouse.Secret{
		Tenant: r.Text(), Name: r.Text(), Version: int(r.Int()), SetAt: r.TimePtr(), SetBy: r.Text(),
		SetByName: r.Text(),
		RevokedAt: r.TimePtr(), RevokedBy: r.Text(), LastUsedAt: r.TimePtr(), Sealed: r.Blob(), RingKey: r.Text(),
	}
}

// ScanSession reads [SessionColumns].
func ScanSession(r Row) *gatehouse.Session {
	return &gatehouse.Session{
		Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(), Method: gatehouse.SignInMethod(r.Text()),
		Credential: r.Text(),
		UserAgent:  r.Text(), CreatedAt: r.Time(), LastSeenAt: r.Time(), ExpiresAt: r.Time(), RevokedAt: r.TimePtr(),
	}
}

// ScanSignal reads [SignalColumns].
func ScanSignal(r Row) *gatehouse.Signal {
	return &gatehouse.Signal{Tenant: r.Text(), RunID: r.Text(), ID: r.Text(), Name: r.Text(), Data: r.JSON(),
		By: r.Text(), At: r.Time()}
}

// ScanWorkflow reads [WorkflowColumns].
func ScanWorkflow(r Row) *gatehouse.Workflow {
	return &gatehouse.Workflow{
		Tenant: r.Text(), ID: r.Text(), Name: r.Text(), Version: int(r.Int()), Workspace: r.Text(),
		Description: r.Text(),
		Digest:      gatehouse.Digest(r.Text()), CreatedBy: r.Text(), CreatedAt: r.Time(),
	}
}

// ScanRun reads a run without its bodies.
func ScanRun(r Row) *gatehouse.Run {
	return &gatehouse.Run{
		Tenant: r.Text(), ID: r.Text(), Workflow: r.Text(), Version: int(r.Int()), Workspace: r.Text(),
		Status: gatehouse.RunStatus(r.Text()), Stop: gatehouse.RunStatus(r.Text()),
		Trigger: gatehouse.TriggerType(r.Text()), TriggerRef: r.Text(),
		StartedBy: r.Text(), StarterID: r.Text(), ParentRun: r.Text(), ParentStep: r.Text(), RetryOf: r.Text(),
		Writes:  int(r.Int()),
		Failure: ScanFailure(r), CreatedAt: r.Time(), StartedAt: r.TimePtr(), FinishedAt: r.TimePtr(),
		Deadline: r.TimePtr(), Evidence: r.Text(),
	}
}

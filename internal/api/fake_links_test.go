package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func testRingKey() *gatehouse.RingKey {
	return &gatehouse.RingKey{
		ID: "rgk_1", Number: 7, Tenant: "default", Purpose: gatehouse.RingLinks, Master: "m1", CreatedAt: testTime,
		CreatedBy: "init", State: gatehouse.RingKeyActive,
	}
}

func (f *fake) ListLinkKeys(ctx context.Context) ([]*gatehouse.RingKey, error) {
	return use[[]*gatehouse.RingKey](ctx, f, "ListLinkKeys", "")
}

func (f *fake) RotateLinkKeys(ctx context.Context) (*gatehouse.RingKey, error) {
	return use[*gatehouse.RingKey](ctx, f, "RotateLinkKeys", "")
}

func (f *fake) RevokeLinkKey(ctx context.Context, id string) (*gatehouse.RingKey, error) {
	return use[*gatehouse.RingKey](ctx, f, "RevokeLinkKey", id)
}

func testSecret() *gatehouse.Secret {
	return &gatehouse.Secret{
		Tenant: "default", Name: "shop-token", Version: 2, State: gatehouse.SecretSet, UsedBy: []string{"shop"},
		SetAt: &testTime, SetBy: "prn_1", SetByName: "root",
	}
}

func (f *fake) ListSecrets(ctx context.Context) ([]*gatehouse.Secret, error) {
	return use[[]*gatehouse.Secret](ctx, f, "ListSecrets", "")
}

func (f *fake) SetSecret(ctx context.Context, _ gatehouse.NewSecret) (*gatehouse.Secret, error) {
	return use[*gatehouse.Secret](ctx, f, "SetSecret", "")
}

func (f *fake) RotateSecret(ctx context.Context, n gatehouse.NewSecret) (*gatehouse.Secret, error) {
	return use[*gatehouse.Secret](ctx, f, "RotateSecret", n.Name)
}

func (f *fake) RevokeSecret(ctx context.Context, name string) (*gatehouse.Secret, error) {
	return use[*gatehouse.Secret](ctx, f, "RevokeSecret", name)
}

// internal/console tests links, with a real gate.
func (*fake) OpenReview(context.Context, string, string, string) (*gatehouse.OpenReview, error) {
	return nil, gatehouse.E(gatehouse.CodeBadToken, "the fake has no reviews")
}

func (*fake) ReviewOpened(context.Context, string, string, string) error {
	return gatehouse.E(gatehouse.CodeBadToken, "the fake has no reviews")
}

func (*fake) DecideReview(
	context.Context, string, string, gatehouse.ReviewDecision,
) (*gatehouse.Answer, error) {
	return nil, gatehouse.E(gatehouse.CodeBadToken, "the fake has no reviews")
}

func (*fake) ReviewNonce(context.Context, string, string, string) (string, error) { return "", nil }

func (*fake) TakeReviewNonce(context.Context, string, string, string, string) error { return nil }

func (*fake) DeviceToken(context.Context, *gatehouse.Session) (string, error) { return "", nil }

func testDelegation() *gatehouse.Delegation {
	return &gatehouse.Delegation{
		ID: "dlg_1", Tenant: "default", From: "prn_1", FromName: "ana", To: "prn_2", ToName: "ben", Starts: testTime,
		Ends:  testTime.Add(time.Hour),
		Types: []string{"price_change"}, Level: gatehouse.L3, CreatedAt: testTime, CreatedBy: "ana",
	}
}

func (f *fake) ListDelegations(ctx context.Context) ([]*gatehouse.Delegation, error) {
	return use[[]*gatehouse.Delegation](ctx, f, "ListDelegations", "")
}

func (f *fake) CreateDelegation(ctx context.Context, _ gatehouse.NewDelegation) (*gatehouse.Delegation, error) {
	return use[*gatehouse.Delegation](ctx, f, "CreateDelegation", "")
}

func (f *fake) EndDelegation(ctx context.Context, id string) (*gatehouse.Delegation, error) {
	return use[*gatehouse.Delegation](ctx, f, "EndDelegation", id)
}

func testGrant() *gatehouse.Grant {
	g := &gatehouse.Grant{
		ID: "grt_1", Tenant: "default", Grantor: "prn_1", GrantorName: "ana", Agent: "prn_2", AgentName: "bot",
		Connector: "shop", Fingerprint: "f1", Operation: "refund", When: "true", Level: gatehouse.L3,
		CreatedAt: testTime, ExpiresAt: testTime.Add(time.Hour),
	}
	g.Count, g.Amounts = 3, []gatehouse.Magnitude{{Amount: "10.00", Currency: "EUR"}}
	g.Worst = g.WorstCase()
	return g
}

func (f *fake) CreateGrant(ctx context.Context, _ gatehouse.NewGrant) (*gatehouse.Grant, error) {
	return use[*gatehouse.Grant](ctx, f, "CreateGrant", "")
}

func (f *fake) ListGrants(ctx context.Context) ([]*gatehouse.Grant, error) {
	return use[[]*gatehouse.Grant](ctx, f, "ListGrants", "")
}

func (f *fake) FindGrant(ctx context.Context, id string) (*gatehouse.Grant, error) {
	return use[*gatehouse.Grant](ctx, f, "FindGrant", id)
}

func (f *fake) RevokeGrant(ctx context.Context, id string) (*gatehouse.Grant, error) {
	return use[*gatehouse.Grant](ctx, f, "RevokeGrant", id)
}

func testDevice() *gatehouse.Device {
	return &gatehouse.Device{
		ID: "dev_1", Tenant: "default", PrincipalID: "prn_1", Label: "Firefox on Android", CreatedAt: testTime,
		Service: "push.example", LastSentAt: &testTime,
	}
}

func testNotification() *gatehouse.Notification {
	return &gatehouse.Notification{
		ID: "ntf_1", Tenant: "default", CreatedAt: testTime, Kind: gatehouse.NotifyTest, Entry: -1, Channel: "phones",
		Status: gatehouse.NotificationAccepted, Attempts: 1, FinishedAt: &testTime,
	}
}

func testPreference() *gatehouse.Preference {
	return &gatehouse.Preference{
		Tenant: "default", PrincipalID: "prn_1", Channel: "mail", Kind: "email", Reaches: true, ChangedAt: &testTime,
		Muted: []gatehouse.MessageTopic{gatehouse.TopicDigests},
		Quiet: &gatehouse.QuietHours{From: "20:00", To: "07:00", Zone: "Europe/Berlin"},
	}
}

func (f *fake) ListPreferences(ctx context.Context) ([]*gatehouse.Preference, error) {
	return use[[]*gatehouse.Preference](ctx, f, "ListPreferences", "")
}

func (f *fake) SetPreference(ctx context.Context, c gatehouse.PreferenceChange) (*gatehouse.Preference, error) {
	return use[*gatehouse.Preference](ctx, f, "SetPreference", "", c)
}

func (f *fake) ListDevices(ctx context.Context) ([]*gatehouse.Device, error) {
	return use[[]*gatehouse.Device](ctx, f, "ListDevices", "")
}

func (f *fake) RemoveDevice(ctx context.Context, id string) error {
	f.mu.Lock()
	f.values["RemoveDevice"] = struct{}{}
	f.mu.Unlock()
	_, err := use[struct{}](ctx, f, "RemoveDevice", id)
	return err
}

func (f *fake) TestDevice(ctx context.Context, id string) (*gatehouse.Notification, error) {
	return use[*gatehouse.Notification](ctx, f, "TestDevice", id)
}

func (f *fake) ReadTarget(ctx context.Context, id string) (*gatehouse.TargetState, error) {
	return use[*gatehouse.TargetState](ctx, f, "ReadTarget", id, id)
}

func (f *fake) Evaluate(
	ctx context.Context, id string, n gatehouse.NewEvaluated,
) (*gatehouse.Evaluated, error) {
	return use[*gatehouse.Evaluated](ctx, f, "Evaluate", id, n)
}

func (f *fake) Preview(ctx context.Context, id string) (*gatehouse.Preview, error) {
	return use[*gatehouse.Preview](ctx, f, "Preview", id, id)
}

func (f *fake) TargetChanged(ctx context.Context, t gatehouse.TargetChange) (*gatehouse.TargetChanges, error) {
	return use[*gatehouse.TargetChanges](ctx, f, "TargetChanged", "", t)
}

// ReportTarget stands in for the check of signatures, as Receive does.
func (f *fake) ReportTarget(
	ctx context.Context, source string, h http.Header, body []byte,
) (*gatehouse.TargetChanges, bool, error) {
	run, replayed, err := f.Receive(ctx, gatehouse.DefaultTenant, source, h, body)
	if run == nil || err != nil {
		return nil, false, err
	}
	return &gatehouse.TargetChanges{Marked: 3, ActionIDs: []string{"act_1"}}, replayed, nil
}

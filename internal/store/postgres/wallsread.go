package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Now is about nobody's rows.
func (w readWalls) Now() time.Time { return w.r.Now() }

func (w readWalls) Foresee(o gatehouse.Outlook) {
	w.in(o.Tenant).Foresee(o)
}

func (w readWalls) FindAction(tenant, id string) (*gatehouse.Action, error) {
	return w.in(tenant).FindAction(tenant, id)
}

func (w readWalls) FindIDs(tenant, prefix string, limit int) ([]string, error) {
	return w.in(tenant).FindIDs(tenant, prefix, limit)
}

func (w readWalls) FindActionByKey(tenant, idempotencyKey string) (*gatehouse.Action, error) {
	return w.in(tenant).FindActionByKey(tenant, idempotencyKey)
}

func (w readWalls) ListActions(tenant string, f gatehouse.ActionFilter) (gatehouse.Page[*gatehouse.Action], error) {
	return w.in(tenant).ListActions(tenant, f)
}

func (w readWalls) ExpiredActions(limit int) ([]gatehouse.ActionRef, error) {
	return w.all().ExpiredActions(limit)
}

func (w readWalls) TimelyActions(limit int) ([]gatehouse.ActionRef, error) {
	return w.all().TimelyActions(limit)
}

func (w readWalls) OpenReversal(tenant, actionID string) (string, error) {
	return w.in(tenant).OpenReversal(tenant, actionID)
}

func (w readWalls) FindPush(tenant, id string) (*gatehouse.Push, error) {
	return w.in(tenant).FindPush(tenant, id)
}

func (w readWalls) ListPushes(tenant string, f gatehouse.PushFilter) (gatehouse.Page[*gatehouse.Push], error) {
	return w.in(tenant).ListPushes(tenant, f)
}

func (w readWalls) SuccessReceipt(tenant, idempotencyKey string) (*gatehouse.Receipt, error) {
	return w.in(tenant).SuccessReceipt(tenant, idempotencyKey)
}

func (w readWalls) ListReceipts(tenant, actionID string) ([]*gatehouse.Receipt, error) {
	return w.in(tenant).ListReceipts(tenant, actionID)
}

func (w readWalls) NextPushAt(except ...string) (time.Time, error) {
	return w.all().NextPushAt(except...)
}

func (w readWalls) DueTenants(after string, limit, each int) ([]gatehouse.DueTenant, error) {
	return w.all().DueTenants(after, limit, each)
}

func (w readWalls) ExpiredLeases(limit int) ([]*gatehouse.Push, error) {
	return w.all().ExpiredLeases(limit)
}

func (w readWalls) ListMirror(tenant, readBy, cursor string, limit int) (gatehouse.Page[*gatehouse.AppliedMirror], error) {
	return w.in(tenant).ListMirror(tenant, readBy, cursor, limit)
}

func (w readWalls) ListCorpus(tenant, readBy, cursor string, limit int) (gatehouse.Page[*gatehouse.CorpusEntry], error) {
	return w.in(tenant).ListCorpus(tenant, readBy, cursor, limit)
}

func (w readWalls) PushCounts() (map[gatehouse.PushStatus]int, error) {
	return w.all().PushCounts()
}

func (w readWalls) Inherited(tenant, principalID, id string) (bool, error) {
	return w.in(tenant).Inherited(tenant, principalID, id)
}

func (w readWalls) CountDeadLetters(tenant string) (int, error) {
	if tenant == "" {
		return w.all().CountDeadLetters("")
	}
	return w.in(tenant).CountDeadLetters(tenant)
}

func (w readWalls) DeadLetterOf(tenant string, effect gatehouse.Hash) (string, error) {
	return w.in(tenant).DeadLetterOf(tenant, effect)
}

func (w readWalls) FindPrincipal(tenant, idOrName string) (*gatehouse.Principal, error) {
	return w.in(tenant).FindPrincipal(tenant, idOrName)
}

func (w readWalls) FindKey(hash [32]byte) (*gatehouse.Key, *gatehouse.Principal, error) {
	return w.all().FindKey(hash)
}

func (w readWalls) FindCredential(tenant string, hash [32]byte) (*gatehouse.Principal, [32]byte, error) {
	return w.in(tenant).FindCredential(tenant, hash)
}

func (w readWalls) FindEditToken(tenant, principalID string) ([32]byte, error) {
	return w.in(tenant).FindEditToken(tenant, principalID)
}

func (w readWalls) ListPrincipals(tenant, cursor string, limit int) (gatehouse.Page[*gatehouse.Principal], error) {
	return w.in(tenant).ListPrincipals(tenant, cursor, limit)
}

func (w readWalls) ListPeople(tenant string) ([]*gatehouse.Principal, error) {
	return w.in(tenant).ListPeople(tenant)
}

func (w readWalls) FirstAnswerers(tenant string, asked gatehouse.Audience) ([]*gatehouse.Principal, error) {
	return w.in(tenant).FirstAnswerers(tenant, asked)
}

func (w readWalls) FindGroup(tenant, name string) (*gatehouse.Group, error) {
	return w.in(tenant).FindGroup(tenant, name)
}

func (w readWalls) ListGroups(tenant string) ([]*gatehouse.Group, error) {
	return w.in(tenant).ListGroups(tenant)
}

func (w readWalls) ListKeys(tenant, principalID string) ([]*gatehouse.Key, error) {
	return w.in(tenant).ListKeys(tenant, principalID)
}

func (w readWalls) FindKeyByID(tenant, id string) (*gatehouse.Key, error) {
	return w.in(tenant).FindKeyByID(tenant, id)
}

func (w readWalls) FindTenant(id string) (*gatehouse.Tenant, error) {
	return w.in(id).FindTenant(id)
}

func (w readWalls) ListTenants() ([]*gatehouse.Tenant, error) {
	return w.all().ListTenants()
}

func (w readWalls) FindIdempotency(tenant, principalID, route, key string) (*gatehouse.IdempotencyRecord, error) {
	return w.in(tenant).FindIdempotency(tenant, principalID, route, key)
}

func (w readWalls) FindSession(hash [32]byte) (*gatehouse.Session, *gatehouse.Principal, error) {
	return w.all().FindSession(hash)
}

func (w readWalls) FindSessionByID(tenant, id string) (*gatehouse.Session, error) {
	return w.in(tenant).FindSessionByID(tenant, id)
}

func (w readWalls) ListSessions(tenant, principalID string, ended bool, cursor string, limit int) (gatehouse.Page[*gatehouse.Session], error) {
	return w.in(tenant).ListSessions(tenant, principalID, ended, cursor, limit)
}

func (w readWalls) FindSetupLink(hash [32]byte) (*gatehouse.SetupLink, error) {
	return w.all().FindSetupLink(hash)
}

func (w readWalls) FindIdentity(tenant, issuer, subject string) (*gatehouse.ExternalIdentity, error) {
	return w.in(tenant).FindIdentity(tenant, issuer, subject)
}

func (w readWalls) ListIdentities(tenant, principalID string) ([]*gatehouse.ExternalIdentity, error) {
	return w.in(tenant).ListIdentities(tenant, principalID)
}

func (w readWalls) FindPasskey(tenant, id string) (*gatehouse.Passkey, error) {
	return w.in(tenant).FindPasskey(tenant, id)
}

func (w readWalls) FindPasskeyByCredential(credentialID []byte) (*gatehouse.Passkey, error) {
	return w.all().FindPasskeyByCredential(credentialID)
}

func (w readWalls) ListPasskeys(tenant, principalID string) ([]*gatehouse.Passkey, error) {
	return w.in(tenant).ListPasskeys(tenant, principalID)
}

func (w readWalls) FindStepUp(tenant, sessionID, actionID string, digest gatehouse.Digest, since time.Time) (*gatehouse.StepUp, error) {
	return w.in(tenant).FindStepUp(tenant, sessionID, actionID, digest, since)
}

func (w readWalls) ActionFacts(tenant, readBy string, fn func(gatehouse.ActionFact) bool) error {
	return w.in(tenant).ActionFacts(tenant, readBy, fn)
}

func (w readWalls) DecisionCounts(tenant string, from time.Time) ([]gatehouse.DecisionCount, error) {
	return w.in(tenant).DecisionCounts(tenant, from)
}

func (w readWalls) ListViews(tenant, principalID string) ([]*gatehouse.SavedView, error) {
	return w.in(tenant).ListViews(tenant, principalID)
}

func (w readWalls) ListNotices(tenant, principalID string, since time.Time, f gatehouse.NoticeFilter) (gatehouse.Page[*gatehouse.Notice], error) {
	return w.in(tenant).ListNotices(tenant, principalID, since, f)
}

func (w readWalls) ActivePolicy(tenant string) (*gatehouse.PolicyVersion, error) {
	return w.in(tenant).ActivePolicy(tenant)
}

func (w readWalls) ActivePolicyVersion(tenant string) (int, error) {
	return w.in(tenant).ActivePolicyVersion(tenant)
}

func (w readWalls) FindPolicy(tenant string, version int) (*gatehouse.PolicyVersion, error) {
	return w.in(tenant).FindPolicy(tenant, version)
}

func (w readWalls) ListPolicies(tenant string) ([]*gatehouse.PolicyVersion, error) {
	return w.in(tenant).ListPolicies(tenant)
}

func (w readWalls) ListEntries(tenant string, from int64, limit int) ([]*gatehouse.Entry, error) {
	return w.in(tenant).ListEntries(tenant, from, limit)
}

func (w readWalls) ListActionEntries(tenant, actionID string) ([]*gatehouse.Entry, error) {
	return w.in(tenant).ListActionEntries(tenant, actionID)
}

func (w readWalls) LogSize(tenant string) (int64, error) {
	return w.in(tenant).LogSize(tenant)
}

func (w readWalls) LogHashes(tenant string, indexes []int64) ([]gatehouse.Hash, error) {
	return w.in(tenant).LogHashes(tenant, indexes)
}

func (w readWalls) UnnumberedLeaves(limit int) ([]*gatehouse.PendingLeaf, error) {
	return w.all().UnnumberedLeaves(limit)
}

func (w readWalls) FindArchived(tenant, id string) (*gatehouse.Archived, error) {
	return w.in(tenant).FindArchived(tenant, id)
}

func (w readWalls) PlanArchive(after int64, before time.Time, limit int) (*gatehouse.ArchivePlan, error) {
	return w.all().PlanArchive(after, before, limit)
}

func (w readWalls) ListCeilingUse(tenant, ceiling, scope string, since time.Time, limit int) ([]gatehouse.CeilingUse, error) {
	return w.in(tenant).ListCeilingUse(tenant, ceiling, scope, since, limit)
}

func (w readWalls) CeilingUses(tenant string, spans []gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	return w.in(tenant).CeilingUses(tenant, spans)
}

func (w readWalls) LogPosition(tenant string) (int64, error) {
	return w.in(tenant).LogPosition(tenant)
}

func (w readWalls) FindNotification(tenant, id string) (*gatehouse.Notification, error) {
	return w.in(tenant).FindNotification(tenant, id)
}

func (w readWalls) ListNotifications(
	tenant string, f gatehouse.NotificationFilter,
) (gatehouse.Page[*gatehouse.Notification], error) {
	return w.in(tenant).ListNotifications(tenant, f)
}

func (w readWalls) RecentNotifications(
	tenant, channel, recipient string, since time.Time,
) (int, *gatehouse.Notification, error) {
	return w.in(tenant).RecentNotifications(tenant, channel, recipient, since)
}

func (w readWalls) ChannelStates(tenant string) ([]*gatehouse.ChannelState, error) {
	return w.in(tenant).ChannelStates(tenant)
}

func (w readWalls) OpenNotifications() (int, error) {
	return w.all().OpenNotifications()
}

func (w readWalls) NextNotificationAt(channel string) (time.Time, error) {
	return w.all().NextNotificationAt(channel)
}

func (w readWalls) FindRingKey(number uint32) (*gatehouse.RingKey, error) {
	return w.all().FindRingKey(number)
}

func (w readWalls) ListRingKeys(tenant string, purpose gatehouse.RingPurpose) ([]*gatehouse.RingKey, error) {
	return w.in(tenant).ListRingKeys(tenant, purpose)
}

func (w readWalls) OldRingKeys(
	purpose gatehouse.RingPurpose, before time.Time, limit int,
) ([]*gatehouse.RingKey, error) {
	return w.all().OldRingKeys(purpose, before, limit)
}

func (w readWalls) FindReview(tenant, id string) (*gatehouse.Review, error) {
	return w.in(tenant).FindReview(tenant, id)
}

func (w readWalls) FindReviewOf(tenant, approvalID, recipient string) (*gatehouse.Review, error) {
	return w.in(tenant).FindReviewOf(tenant, approvalID, recipient)
}

func (w readWalls) FindSlackClick(tenant, id string) (*gatehouse.SlackClick, error) {
	return w.in(tenant).FindSlackClick(tenant, id)
}

func (w readWalls) OpenSlackClicks(tenant, actionID string) (int, error) {
	return w.in(tenant).OpenSlackClicks(tenant, actionID)
}

func (w readWalls) NextSlackClickAt() (time.Time, error) { return w.all().NextSlackClickAt() }

func (w readWalls) FindCard(tenant, channel, actionID string) (*gatehouse.PostedCard, error) {
	return w.in(tenant).FindCard(tenant, channel, actionID)
}

func (w readWalls) NextCardAt(channel string) (time.Time, error) { return w.all().NextCardAt(channel) }

func (w readWalls) ListDelegations(tenant, principal string, open bool, limit int) ([]*gatehouse.Delegation, error) {
	return w.in(tenant).ListDelegations(tenant, principal, open, limit)
}

func (w readWalls) FindDelegation(tenant, id string) (*gatehouse.Delegation, error) {
	return w.in(tenant).FindDelegation(tenant, id)
}

func (w readWalls) OpenOnTarget(tenant string, c gatehouse.TargetChange, limit int) ([]string, error) {
	return w.in(tenant).OpenOnTarget(tenant, c, limit)
}

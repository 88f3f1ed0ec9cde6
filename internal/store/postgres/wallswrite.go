package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (w walls) LockAction(tenant, id string) (*gatehouse.Action, error) {
	return w.in(tenant).LockAction(tenant, id)
}

func (w walls) RelockAction(known *gatehouse.Action) (*gatehouse.Action, error) {
	return w.in(known.Tenant).RelockAction(known)
}

func (w walls) InsertAction(a *gatehouse.Action) error {
	return w.in(a.Tenant).InsertAction(a)
}

func (w walls) MoveAction(m gatehouse.ActionMove) error {
	return w.in(m.Tenant).MoveAction(m)
}

func (w walls) MoveApproval(tenant, approvalID string, to gatehouse.ApprovalStatus) error {
	return w.in(tenant).MoveApproval(tenant, approvalID, to)
}

func (w walls) TellApproval(tenant, approvalID string, from, told int, next *time.Time) error {
	return w.in(tenant).TellApproval(tenant, approvalID, from, told, next)
}

func (w walls) PutVote(tenant, approvalID string, v gatehouse.Vote) error {
	return w.in(tenant).PutVote(tenant, approvalID, v)
}

func (w walls) LinkSuperseded(tenant, oldID, newID string) error {
	return w.in(tenant).LinkSuperseded(tenant, oldID, newID)
}

func (w walls) InsertMirror(m *gatehouse.AppliedMirror) error {
	return w.in(m.Tenant).InsertMirror(m)
}

func (w walls) ReserveCeiling(tenant, actionID string, c gatehouse.CeilingClaim) error {
	return w.in(tenant).ReserveCeiling(tenant, actionID, c)
}

func (w walls) CeilingUsed(tenant, ceiling, scope string, since time.Time) (gatehouse.Decimal, error) {
	return w.in(tenant).CeilingUsed(tenant, ceiling, scope, since)
}

func (w walls) ReleaseCeilings(tenant, actionID string) error {
	return w.in(tenant).ReleaseCeilings(tenant, actionID)
}

func (w walls) InsertPush(p *gatehouse.Push) error {
	return w.in(p.Tenant).InsertPush(p)
}

func (w walls) LockPush(tenant, id string) (*gatehouse.Push, error) {
	return w.in(tenant).LockPush(tenant, id)
}

func (w walls) ClaimLane(
	owner string, lease time.Duration, tenant, proposer string, lanes []string, limit int,
) ([]*gatehouse.Push, error) {
	return w.in(tenant).ClaimLane(owner, lease, tenant, proposer, lanes, limit)
}

func (w walls) ClaimPushes(owner string, lease time.Duration, shares ...gatehouse.PushShare) ([]*gatehouse.Push, error) {
	return w.all().ClaimPushes(owner, lease, shares...)
}

func (w walls) UpdatePush(p *gatehouse.Push, from gatehouse.PushStatus, generation int) error {
	return w.in(p.Tenant).UpdatePush(p, from, generation)
}

func (w walls) MarkDeadLetter(p *gatehouse.Push, effect gatehouse.Hash) error {
	return w.in(p.Tenant).MarkDeadLetter(p, effect)
}

func (w walls) ClosePush(tenant, id, by, reason string) error {
	return w.in(tenant).ClosePush(tenant, id, by, reason)
}

func (w walls) InsertReceipt(r *gatehouse.Receipt) error {
	return w.in(r.Tenant).InsertReceipt(r)
}

func (w walls) InsertTenant(t *gatehouse.Tenant) error {
	return w.in(t.ID).InsertTenant(t)
}

func (w walls) InsertPrincipal(p *gatehouse.Principal) error {
	return w.in(p.Tenant).InsertPrincipal(p)
}

func (w walls) UpdatePrincipal(p *gatehouse.Principal) error {
	return w.in(p.Tenant).UpdatePrincipal(p)
}

func (w walls) InsertKey(k *gatehouse.Key) error {
	return w.in(k.Tenant).InsertKey(k)
}

func (w walls) RevokeKey(tenant, keyID string) error {
	return w.in(tenant).RevokeKey(tenant, keyID)
}

func (w walls) PutEditToken(tenant, principalID string, hash [32]byte) error {
	return w.in(tenant).PutEditToken(tenant, principalID, hash)
}

func (w walls) PrincipalsForShare(tenant string, ids []string) ([]*gatehouse.Principal, error) {
	return w.in(tenant).PrincipalsForShare(tenant, ids)
}

func (w walls) InsertIdempotency(r *gatehouse.IdempotencyRecord) error {
	return w.in(r.Tenant).InsertIdempotency(r)
}

func (w walls) PurgeIdempotency(olderThan time.Time, limit int) (int, error) {
	return w.all().PurgeIdempotency(olderThan, limit)
}

func (w walls) PurgeSessions(olderThan time.Time, limit int) (int, error) {
	return w.all().PurgeSessions(olderThan, limit)
}

func (w walls) InsertSession(s *gatehouse.Session, hash [32]byte) error {
	return w.in(s.Tenant).InsertSession(s, hash)
}

func (w walls) TouchSession(tenant, id string, seen, expires time.Time) error {
	return w.in(tenant).TouchSession(tenant, id, seen, expires)
}

func (w walls) RevokeSession(tenant, id string) error {
	return w.in(tenant).RevokeSession(tenant, id)
}

func (w walls) RevokeSessions(tenant, principalID, credential string) ([]string, error) {
	return w.in(tenant).RevokeSessions(tenant, principalID, credential)
}

func (w walls) InsertSetupLink(l *gatehouse.SetupLink) error {
	return w.in(l.Tenant).InsertSetupLink(l)
}

func (w walls) UseSetupLink(tenant, id string) error {
	return w.in(tenant).UseSetupLink(tenant, id)
}

func (w walls) InsertGroup(g *gatehouse.Group) error {
	return w.in(g.Tenant).InsertGroup(g)
}

func (w walls) DeleteGroup(tenant, name string) error {
	return w.in(tenant).DeleteGroup(tenant, name)
}

func (w walls) InsertIdentity(i *gatehouse.ExternalIdentity) error {
	return w.in(i.Tenant).InsertIdentity(i)
}

func (w walls) DeleteIdentity(tenant, issuer, subject string) error {
	return w.in(tenant).DeleteIdentity(tenant, issuer, subject)
}

func (w walls) InsertPasskey(p *gatehouse.Passkey) error {
	return w.in(p.Tenant).InsertPasskey(p)
}

func (w walls) UsePasskey(tenant, id string, credential []byte, signCount, from uint32) error {
	return w.in(tenant).UsePasskey(tenant, id, credential, signCount, from)
}

func (w walls) DeletePasskey(tenant, id string) error {
	return w.in(tenant).DeletePasskey(tenant, id)
}

func (w walls) InsertCeremony(c *gatehouse.Ceremony) error {
	return w.all().InsertCeremony(c) // deletes what has expired, of anybody
}

func (w walls) TakeCeremony(hash [32]byte) (*gatehouse.Ceremony, error) {
	return w.all().TakeCeremony(hash)
}

func (w walls) InsertStepUp(u *gatehouse.StepUp) error {
	return w.in(u.Tenant).InsertStepUp(u)
}

func (w walls) UseStepUp(tenant, id string) error {
	return w.in(tenant).UseStepUp(tenant, id)
}

func (w walls) InsertNotice(n *gatehouse.Notice) error {
	return w.in(n.Tenant).InsertNotice(n)
}

func (w walls) DismissNotice(tenant, principalID, id string) (bool, error) {
	return w.in(tenant).DismissNotice(tenant, principalID, id)
}

func (w walls) Inherit(tenant, id, from string) error {
	return w.in(tenant).Inherit(tenant, id, from)
}

func (w walls) LockFirstPrincipal(tenant string) error {
	return w.in(tenant).LockFirstPrincipal(tenant)
}

func (w walls) LockBulkCalls(tenant, person string) ([]time.Time, error) {
	return w.in(tenant).LockBulkCalls(tenant, person)
}

func (w walls) PutBulkCalls(tenant, person string, times []time.Time) error {
	return w.in(tenant).PutBulkCalls(tenant, person, times)
}

func (w walls) AddDecisions(tenant string, day time.Time, endpoint string, result gatehouse.DecisionResult, n int64) error {
	return w.in(tenant).AddDecisions(tenant, day, endpoint, result, n)
}

func (w walls) PutView(v *gatehouse.SavedView) error {
	return w.in(v.Tenant).PutView(v)
}

func (w walls) DeleteView(tenant, principalID, name string) error {
	return w.in(tenant).DeleteView(tenant, principalID, name)
}

func (w walls) InsertPolicy(p *gatehouse.PolicyVersion) (int, error) {
	return w.in(p.Tenant).InsertPolicy(p)
}

func (w walls) ActivatePolicy(tenant string, version int) error {
	return w.in(tenant).ActivatePolicy(tenant, version)
}

func (w walls) AppendLeaf(l *gatehouse.Leaf) error {
	return w.in(l.Tenant).AppendLeaf(l)
}

func (w walls) NumberLeaves(tenant string, expectedSize int64, leaves []*gatehouse.NumberedLeaf, hashes []gatehouse.Hash) error {
	return w.in(tenant).NumberLeaves(tenant, expectedSize, leaves, hashes)
}

func (w walls) LockEnded(families []gatehouse.ActionFamily, before time.Time) ([]*gatehouse.Record, error) {
	if len(families) == 0 {
		return nil, nil
	}
	return w.in(families[0].Tenant).LockEnded(families, before)
}

func (w walls) PutArchived(list []*gatehouse.Archived) error {
	if len(list) == 0 {
		return nil
	}
	return w.in(list[0].Tenant).PutArchived(list)
}

func (w walls) MoveLogPosition(tenant string, from, to int64) error {
	return w.in(tenant).MoveLogPosition(tenant, from, to)
}

func (w walls) InsertNotifications(list []*gatehouse.Notification) error {
	if len(list) == 0 {
		return nil
	}
	return w.in(list[0].Tenant).InsertNotifications(list)
}

func (w walls) ClaimNotifications(
	channel, owner string, lease time.Duration, limit int,
) ([]*gatehouse.Notification, error) {
	w.all()
	return w.w.ClaimNotifications(channel, owner, lease, limit)
}

func (w walls) UpdateNotification(n *gatehouse.Notification, from gatehouse.NotificationStatus, generation int) error {
	return w.in(n.Tenant).UpdateNotification(n, from, generation)
}

func (w walls) HurryNotifications(tenant, channel string) error {
	return w.in(tenant).HurryNotifications(tenant, channel)
}

func (w walls) LockChannelState(tenant, channel string) (*gatehouse.ChannelState, error) {
	return w.in(tenant).LockChannelState(tenant, channel)
}

func (w walls) PutChannelState(s *gatehouse.ChannelState) error {
	return w.in(s.Tenant).PutChannelState(s)
}

func (w walls) PurgeNotifications(olderThan time.Time, limit int) (int, error) {
	w.all()
	return w.w.PurgeNotifications(olderThan, limit)
}

func (w walls) InsertRingKey(k *gatehouse.RingKey) error {
	return w.in(k.Tenant).InsertRingKey(k)
}

func (w walls) RetireRingKey(tenant, id string, ends time.Time) error {
	return w.in(tenant).RetireRingKey(tenant, id, ends)
}

func (w walls) RevokeRingKey(tenant, id string) error {
	return w.in(tenant).RevokeRingKey(tenant, id)
}

func (w walls) InsertReview(v *gatehouse.Review) error {
	return w.in(v.Tenant).InsertReview(v)
}

func (w walls) CountReviewTry(tenant, id string) error {
	return w.in(tenant).CountReviewTry(tenant, id)
}

func (w walls) PurgeReviews(olderThan time.Time, limit int) (int, error) {
	w.all()
	return w.w.PurgeReviews(olderThan, limit)
}

func (w walls) InsertSlackClick(c *gatehouse.SlackClick) error {
	return w.in(c.Tenant).InsertSlackClick(c)
}

func (w walls) ClaimSlackClicks(owner string, lease time.Duration, limit int) ([]*gatehouse.SlackClick, error) {
	w.all()
	return w.w.ClaimSlackClicks(owner, lease, limit)
}

func (w walls) UpdateSlackClick(c *gatehouse.SlackClick, generation int) error {
	return w.in(c.Tenant).UpdateSlackClick(c, generation)
}

func (w walls) PurgeSlackClicks(olderThan time.Time, limit int) (int, error) {
	w.all()
	return w.w.PurgeSlackClicks(olderThan, limit)
}

func (w walls) PutCard(c *gatehouse.PostedCard) error { return w.in(c.Tenant).PutCard(c) }

func (w walls) TouchCards(tenant, actionID string) error {
	return w.in(tenant).TouchCards(tenant, actionID)
}

func (w walls) ClaimCards(channel, owner string, lease time.Duration, limit int) ([]*gatehouse.PostedCard, error) {
	w.all()
	return w.w.ClaimCards(channel, owner, lease, limit)
}

func (w walls) ClaimCard(
	tenant, channel, actionID, owner string, lease time.Duration,
) (*gatehouse.PostedCard, error) {
	return w.in(tenant).ClaimCard(tenant, channel, actionID, owner, lease)
}

func (w walls) UpdateCard(c *gatehouse.PostedCard, generation int) error {
	return w.in(c.Tenant).UpdateCard(c, generation)
}

func (w walls) PurgeCards(olderThan time.Time, limit int) (int, error) {
	w.all()
	return w.w.PurgeCards(olderThan, limit)
}

func (w walls) InsertDelegation(d *gatehouse.Delegation) error {
	return w.in(d.Tenant).InsertDelegation(d)
}

func (w walls) EndDelegation(tenant, id, by string) error {
	return w.in(tenant).EndDelegation(tenant, id, by)
}

func (w walls) MarkTarget(tenant, approvalID string, m gatehouse.TargetMark) error {
	return w.in(tenant).MarkTarget(tenant, approvalID, m)
}

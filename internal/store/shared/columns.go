package shared

// The columns that the Scan functions read, in their order. The prefix is the table's alias.
const (
	ArchiveColumns = `tenant, id, approval_id, push_id, idempotency_key, status, action_type, risk, proposer_id, proposed_at, ended_at,
  archived_at, batch, sha256, document`
	CardColumns = `c.tenant, c.channel, c.action_id, c.ref, c.wanted, c.shown, c.due_at, c.attempts, c.generation,
c.lease_owner, c.last_error, c.updated_at`
	ClickColumns = `c.tenant, c.id, c.created_at, c.key, c.channel, c.place, c.ts, c.issuer, c.slack_user,
c.action_id, c.digest, c.choice, c.reason, c.result, c.said, c.attempts, c.last_error, c.due_at, c.finished_at,
c.generation, c.lease_owner`
	GroupColumns        = `SELECT tenant, name, created_at FROM principal_group `
	IdentityColumns     = `tenant, issuer, subject, principal_id, created_at`
	KeyColumns          = `k.tenant, k.id, k.principal_id, k.hash, k.created_at, k.revoked_at`
	NotificationColumns = `n.tenant, n.id, n.created_at, n.kind, n.action_id, n.entry, n.channel, n.recipient,
n.status, n.attempts,
n.last_error, n.due_at, n.finished_at, n.generation, n.lease_owner, n.ref, n.data`
	PasskeyColumns = `tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at`
	// ConnectorVersionColumns are read by [ScanConnectorVersion].
	ConnectorVersionColumns = `tenant, version, sha256, applied_by, applied_at, action_id`
	PolicyColumns           = `v.tenant, v.version, v.sha256, a.version IS NOT NULL,
v.applied_by, v.applied_at, v.action_id`
	PrincipalColumns = `p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled,
p.created_at, p.approver_since, p.groups`
	SessionColumns = `s.tenant, s.id, s.principal_id, s.method, s.credential, s.user_agent,
s.created_at, s.last_seen_at, s.expires_at, s.revoked_at`
	SignalColumns   = `tenant, run_id, id, name, data, sent_by, at`
	WorkflowColumns = `w.tenant, w.id, w.name, w.version, w.workspace, w.description, w.digest, w.created_by, w.created_at`
)

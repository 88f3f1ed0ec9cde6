package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// opening is what an Open method adds to the first batch of its transaction.
type opening struct {
	// queries go out after the locks and reads of that batch.
	queries []query
	// groups says that the transaction may join a group. keys are the lock keys of the rows that it
	// will lock or insert.
	groups bool
	keys   []lockKey
	// likelyOpen says that the action is probably open, so LockAction tries lockOpen first.
	likelyOpen bool
}

// lockVoters locks the people who approved an action, so that they cannot change.
var lockVoters = reads[idRow](`
SELECT r.n, p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups
FROM (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT * FROM principal
  WHERE tenant = r.tenant AND id = ANY (ARRAY(
    SELECT principal_id FROM vote
    WHERE seq = (SELECT seq FROM action WHERE tenant = r.tenant AND id = r.id) AND decision = 'approved'))
  ORDER BY id FOR SHARE /* SKIP LOCKED */
) p`)

// lockPeople locks people against changes.
var lockPeople = reads[idRow](`
SELECT r.n, p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups
FROM (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (SELECT * FROM principal WHERE tenant = r.tenant AND id = r.id FOR SHARE /* SKIP LOCKED */) p`)

// findRights finds what the right to decide an action depends on: the active policy, the action's proposer, and
// the proposer's sponsor (column sponsor). It finds the action by its id or its approval's id.
var findRights = reads[idRow](`
SELECT r.n, (SELECT version FROM policy_active WHERE tenant = r.tenant),
  p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups,
  s.tenant, s.id, s.name, s.kind, s.roles, s.person, s.sponsor, s.disabled, s.created_at,
  s.approver_since, s.groups
FROM (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT * FROM action
  WHERE seq = (
    SELECT seq FROM action WHERE tenant = r.tenant AND id = r.id
    UNION ALL SELECT seq FROM approval WHERE tenant = r.tenant AND id = r.id LIMIT 1)
  OFFSET 0
) a
LEFT JOIN LATERAL (
  SELECT * FROM principal WHERE tenant = a.tenant AND id = a.proposer_id OFFSET 0
) p ON true
LEFT JOIN LATERAL (
  SELECT * FROM principal WHERE tenant = p.tenant AND id = p.sponsor OFFSET 0
) s ON true`)

// findDecisions finds open actions as openActions does, without locks, with the active policy and the proposer.
var findDecisions = reads[idRow](`
SELECT r.n, a.tenant, a.id, a.status, a.action_type, a.risk, a.proposer_id, coalesce(a.idempotency_key, ''),
  a.proposed_at, a.decided_by, a.decided_via, a.decided_at, a.finished_at, a.failure_code, a.failure_detail,
  coalesce(a.supersedes, ''), coalesce(a.superseded_by, ''), coalesce(a.reverses, ''), coalesce(a.reversed_by, ''),
  p.revision, p.connector, p.operation, p.entity_type, p.entity_ref, p.entity_refs, p.target_version,
  p.claimed_risk, p.amount, p.currency, p.on_behalf_of, p.expires_in, p.hold, p.digest, p.fingerprint,
  p.content_hash, p.policy_outcome, p.policy_version, p.policy_rules, p.policy_reasons, p.proposed_by,
  p.rationale, p.proposed_change, p.current_state, p.context, p.metadata, p.extra,
  o.id, o.status, o.required, o.roles, o.people, o.excluded, o.expires_at, o.created_at,
  o.confirm_prompt, o.confirm_value, o.groups, o.timing, o.told, o.changed_at, o.changed_version, o.changed_by,
  o.about, o.comments, o.asked, o.answered, o.assignee_id, o.assignee, o.evaluated, NULL::text,
  (SELECT version FROM policy_active WHERE tenant = r.tenant),
  b.tenant, b.id, b.name, b.kind, b.roles, b.person, b.sponsor, b.disabled, b.created_at,
  b.approver_since, b.groups
FROM (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT * FROM approval
  WHERE approval.seq = (
    SELECT seq FROM action WHERE tenant = r.tenant AND id = r.id
    UNION ALL SELECT seq FROM approval WHERE tenant = r.tenant AND id = r.id LIMIT 1)
  OFFSET 0
) o
CROSS JOIN LATERAL (SELECT * FROM action WHERE action.seq = o.seq OFFSET 0) a
CROSS JOIN LATERAL (SELECT * FROM proposal WHERE proposal.seq = a.seq OFFSET 0) p
LEFT JOIN LATERAL (
  SELECT * FROM principal WHERE tenant = a.tenant AND id = a.proposer_id OFFSET 0
) b ON true`)

func (h *opening) add(q query) { h.queries = append(h.queries, q) }

// OpenCaller finds the caller's credential and stored answer.
func (t *readTx) OpenCaller(by *gatehouse.Caller) (facts gatehouse.CallerFacts, err error) {
	if t.openCaller(by, &facts, nil); len(t.opening.queries) > 0 {
		err = t.read()
	}
	t.dropOldAnswer(&facts)
	return facts, err
}

// openCaller adds the reads of a caller. If the caller's key is cached and voters is not nil,
// the caller is locked and added to voters; locked is true then.
func (t *readTx) openCaller(
	by *gatehouse.Caller, facts *gatehouse.CallerFacts, voters *[]*gatehouse.Principal,
) (locked bool) {
	if by == nil {
		return false
	}
	h := &t.opening
	if by.Cached != nil {
		key := findCredentials
		if locked = voters != nil; locked {
			key = lockCredentials
		}
		h.add(key.ask(func(r *row) (err error) {
			facts.Principal, err = shared.ScanPrincipal(r)
			facts.EditToken = r.Hash()
			if locked {
				*voters = append(*voters, facts.Principal)
			}
			return err
		}, credentialRow{t.tenant, by.Cached.Key}))
	}
	if a := by.Idempotency; a != nil {
		id := by.Principal.ID
		h.keys = append(h.keys, lockKey{"answer", t.tenant, id + "\x00" + a.Route + "\x00" + a.Key})
		h.add(findAnswers.ask(func(r *row) error { facts.Answer = scanAnswer(r); return nil },
			idempotencyName{t.tenant, id, a.Route, a.Key}))
	}
	return locked
}

// dropOldAnswer drops an answer past its window. It reads the clock only if there is an answer: the
// transaction may wait for locks after this, and its clock must be read after the wait.
func (t *readTx) dropOldAnswer(facts *gatehouse.CallerFacts) {
	if a := facts.Answer; a != nil && !a.CreatedAt.After(t.windowStart()) {
		facts.Answer = nil
	}
}

// openPolicy adds the read of the active version.
func (t *readTx) openPolicy(version *int) {
	t.opening.add(activeVersions.ask(func(r *row) error { *version = int(r.Int()); return nil }, tenantRow{t.tenant}))
}

// openRights adds the read of policy, proposer and sponsor.
func (t *readTx) openRights(id string, rights *gatehouse.Rights) {
	t.opening.add(findRights.ask(func(r *row) error {
		return scanRights(r, &rights.PolicyVersion, &rights.Proposer, &rights.Sponsor)
	}, idRow{t.tenant, id}))
}

// scanRights reads the active version, and then principals, up to the first that is missing.
func scanRights(r *row, version *int, people ...**gatehouse.Principal) (err error) {
	if r.Null() {
		r.Skip(1)
	} else {
		*version = int(r.Int())
	}
	for _, p := range people {
		if r.Null() {
			break
		}
		if *p, err = shared.ScanPrincipal(r); err != nil {
			return err
		}
	}
	return nil
}

// openVoters adds a query that locks people.
func (t *tx) openVoters(people statementOf[idRow], id string, rights *gatehouse.Rights) {
	t.opening.add(people.ask(func(r *row) error {
		p, err := shared.ScanPrincipal(r)
		rights.Voters = append(rights.Voters, p)
		return err
	}, idRow{t.tenant, id}))
}

// OpenDecision locks the action and reads the caller and, for an approval, the rights.
func (t *tx) OpenDecision(q gatehouse.DecisionQuery) (*gatehouse.OpenedDecision, error) {
	o := new(gatehouse.OpenedDecision)
	t.opening = opening{groups: true, likelyOpen: true, keys: []lockKey{{"id", t.tenant, q.ActionID}}}
	if q.Approve {
		t.openRights(q.ActionID, &o.Rights)
		if !t.openCaller(q.By, &o.CallerFacts, &o.Voters) {
			t.openVoters(lockPeople, q.By.Principal.ID, &o.Rights)
		}
	} else {
		t.openCaller(q.By, &o.CallerFacts, nil)
	}
	var err error
	o.Action, err = shared.OrNone(t.LockAction(q.ActionID))
	t.dropOldAnswer(&o.CallerFacts)
	return o, err
}

// FindDecision reads the caller and, of a pending action, what its decision depends on, in one round trip.
func (t *readTx) FindDecision(q gatehouse.DecisionQuery) (*gatehouse.OpenedDecision, error) {
	o := new(gatehouse.OpenedDecision)
	t.opening = opening{}
	t.openCaller(q.By, &o.CallerFacts, nil)
	var votes []gatehouse.Vote
	err := t.read(
		findDecisions.ask(func(r *row) (err error) {
			if o.Action, err = scanAction(r); err != nil {
				return err
			}
			r.Skip(1) // there is no push
			return scanRights(r, &o.PolicyVersion, &o.Proposer)
		}, idRow{t.tenant, q.ActionID}),
		findVotes.ask(func(r *row) error { votes = append(votes, shared.ScanVote(r)); return nil },
			actionName{Tenant: t.tenant, ID: q.ActionID}))
	t.dropOldAnswer(&o.CallerFacts)
	if a := o.Action; a != nil && a.Status != gatehouse.StatusPending {
		o.Action = nil // it may have a push, which was not read
	} else if a != nil {
		a.Approval.Votes = votes
		t.applyExpiry(a)
	}
	return o, err
}

// OpenProposal locks the revised action, if there is one, and reads the rows for the query.
func (t *tx) OpenProposal(q gatehouse.ProposalQuery) (*gatehouse.OpenedProposal, error) {
	o := &gatehouse.OpenedProposal{Named: make(map[string]*gatehouse.Principal, len(q.Names))}
	t.opening = opening{groups: q.Supersedes == ""} // a revision needs a write that groups do not support
	h := &t.opening
	var same byKey
	if q.Key != "" {
		h.keys = append(h.keys, lockKey{"key", t.tenant, q.Key})
		h.queries = append(h.queries, same.queries(t.tenant, q.Key)...)
	}
	t.openCaller(q.By, &o.CallerFacts, nil)
	t.openPolicy(&o.PolicyVersion)
	if q.Effect != (gatehouse.Hash{}) {
		h.add(findDeadLetters.ask(func(r *row) error { o.DeadLetter = r.Text(); return nil },
			effectRow{t.tenant, q.Effect}))
	}
	if q.Asked != nil {
		roles, people, groups := shared.EncodeAudience(*q.Asked)
		h.add(findAnswerers.ask(func(r *row) error {
			p, err := shared.ScanPrincipal(r)
			o.Answerers = append(o.Answerers, p)
			return err
		}, audienceRow{t.tenant, roles, people, groups}))
	}
	for _, name := range q.Names {
		var n named
		o.Named[name] = nil
		h.add(findNamed.ask(func(r *row) error {
			err := n.scan(r)
			o.Named[name] = n.principal
			return err
		}, nameRow{t.tenant, name}))
	}
	var err error
	if q.Supersedes != "" {
		h.keys = append(h.keys, lockKey{"id", t.tenant, q.Supersedes})
		_, err = t.LockAction(q.Supersedes)
	} else {
		err = t.read()
	}
	if err == nil && q.Key != "" {
		o.Same, err = shared.OrNone(t.sameKey(q.Key, &same))
	}
	t.dropOldAnswer(&o.CallerFacts)
	return o, err
}

// OpenPush locks the action and its push, and reads the receipt and the rights on request.
func (t *tx) OpenPush(q gatehouse.PushQuery) (*gatehouse.OpenedPush, error) {
	o := new(gatehouse.OpenedPush)
	t.opening = opening{groups: true, keys: []lockKey{{"id", t.tenant, q.ActionID}}}
	h := &t.opening
	h.add(lockPushes.ask(func(r *row) error { o.Push = shared.ScanPush(r); return nil }, idRow{t.tenant, q.PushID}))
	if q.ReceiptKey != "" {
		h.add(findSuccesses.ask(func(r *row) (err error) {
			o.Receipt = shared.ScanReceipt(r, &err)
			return err
		}, keyRow{t.tenant, q.ReceiptKey}))
	}
	if q.Rights {
		t.openRights(q.ActionID, &o.Rights)
		t.openVoters(lockVoters, q.ActionID, &o.Rights)
	}
	var err error
	if o.Action, err = t.LockAction(q.ActionID); err != nil {
		return nil, err
	}
	if o.Push == nil {
		o.Push, err = t.orArchivedPush(q.PushID, nil, t.tenant, gatehouse.ErrNotFound)
	}
	return o, err
}

// OpenStep is LockRun, in a group if possible.
func (t *tx) OpenStep(runID, item string) (*gatehouse.Run, error) {
	t.opening = opening{groups: true, keys: []lockKey{{"id", t.tenant, runID}}}
	return t.LockRun(runID, item)
}

// OpenPage lists actions, and reads the caller and the saved views in the same batch.
func (t *readTx) OpenPage(by *gatehouse.Caller, f gatehouse.ActionFilter, views bool) (*gatehouse.OpenedPage, error) {
	o := new(gatehouse.OpenedPage)
	t.opening = opening{}
	t.openCaller(by, &o.CallerFacts, nil)
	if views {
		id := by.Principal.ID
		t.opening.add(ask(`
SELECT tenant, principal_id, name, query, created_at FROM saved_view
WHERE tenant = $1 AND principal_id = $2 ORDER BY name`,
			rowsOf(shared.Append(&o.Views, shared.ScanView)), t.tenant, id))
	}
	page, err := t.ListActions(f)
	if len(t.opening.queries) > 0 && t.err == nil { // ListActions made no query
		if readErr := t.read(); readErr != nil {
			return nil, readErr
		}
	}
	t.dropOldAnswer(&o.CallerFacts)
	o.Page = page
	return o, err
}

// withOpening appends the queries of an Open method to a batch, once.
func (t *readTx) withOpening(batch []query) []query {
	batch = append(batch, t.opening.queries...)
	t.opening.queries = nil
	return batch
}

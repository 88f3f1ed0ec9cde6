package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// opening is what an Open method adds to the first batch of its transaction.
type opening struct {
	// queries go out after the locks and reads of that batch.
	queries []query
	// groups says that the transaction may join a group. keys are the lock keys of what it will
	// lock or insert.
	groups bool
	keys   []lockKey
	// likelyOpen says that the action that LockAction finds is probably open. tally holds the
	// votes on it that openRights reads.
	likelyOpen bool
	tally      *voteTally
}

const (
	// The people who approved the action.
	lockVoters = `SELECT ` + shared.PrincipalColumns + ` FROM principal p WHERE p.tenant = $1
AND p.id = ANY (ARRAY(SELECT principal_id FROM vote WHERE seq = ` + seqOfAction + ` AND decision = 'approved'))
ORDER BY p.id FOR SHARE`
	lockVoter = `SELECT ` + shared.PrincipalColumns + ` FROM principal p WHERE p.tenant = $1 AND p.id = $2 FOR SHARE`
	// The active policy, the votes on an action, its proposer, and the proposer's sponsor,
	// whose id is in sponsor. One row per vote, or a single row without votes.
	selectSides = `SELECT (SELECT version FROM policy_active WHERE tenant = $1), ` + joinedVotes + `, ` +
		shared.PrincipalColumns + `, ` + sponsorColumns + ` FROM `
	sideJoins = `
LEFT JOIN LATERAL (SELECT * FROM principal x
WHERE x.tenant = a.tenant AND x.id = a.proposer_id` + lateralEnd + ` p ON true
LEFT JOIN LATERAL (SELECT * FROM principal x WHERE x.tenant = p.tenant AND x.id = p.sponsor` + lateralEnd + ` s ON true
LEFT JOIN LATERAL (SELECT * FROM vote x WHERE x.seq = a.seq` + lateralEnd + ` v ON true`
	sidesByAction   = selectSides + theAction + sideJoins
	sidesByApproval = selectSides + theApproval + lateralEnd + ` o` + itsAction + sideJoins
	sponsorColumns  = `s.tenant, s.id, s.name, s.kind, s.roles, s.person, s.sponsor, s.disabled, s.created_at,
  s.approver_since, s.groups`
)

func (h *opening) ask(sql string, row func(*row) error, args ...any) {
	h.queries = append(h.queries, ask(sql, row, args...))
}

// OpenCaller finds the caller's credential and stored answer.
func (t *readTx) OpenCaller(by *gatehouse.Caller) (facts gatehouse.CallerFacts, err error) {
	if t.openCaller(by, &facts, nil); len(t.opening.queries) > 0 {
		err = t.read()
	}
	t.dropOldAnswer(&facts)
	return facts, err
}

// openCaller adds the reads of a caller. If the caller's key is cached and voters is not nil,
// the caller is locked and added to them; locked is true then.
func (t *readTx) openCaller(
	by *gatehouse.Caller, facts *gatehouse.CallerFacts, voters *[]*gatehouse.Principal,
) (locked bool) {
	if by == nil {
		return false
	}
	h := &t.opening
	if by.Presumed != nil {
		sql := findCredential
		if locked = voters != nil; locked {
			sql = lockCredential
		}
		h.ask(sql, func(r *row) (err error) {
			facts.Principal, err = shared.ScanPrincipal(r)
			facts.EditToken = r.Hash()
			if locked {
				*voters = append(*voters, facts.Principal)
			}
			return err
		}, t.tenant, by.Presumed.Key[:])
	}
	if a := by.Idempotency; a != nil {
		id := by.Principal.ID
		h.keys = append(h.keys, lockKey{"answer", t.tenant, id + "\x00" + a.Route + "\x00" + a.Key})
		h.ask(findAnswer, func(r *row) error { facts.Answer = scanAnswer(r); return nil }, t.tenant, id, a.Route, a.Key)
	}
	return locked
}

// dropOldAnswer drops an answer past its window. It reads the clock only if there is an answer:
// the caller may be read before the wait for locks.
func (t *readTx) dropOldAnswer(facts *gatehouse.CallerFacts) {
	if a := facts.Answer; a != nil && !a.CreatedAt.After(t.windowStart()) {
		facts.Answer = nil
	}
}

// openPolicy adds the read of the active version.
func (t *readTx) openPolicy(version *int) {
	t.opening.ask(activeVersion, func(r *row) error { *version = int(r.Int()); return nil }, t.tenant)
}

// openRights adds the reads of the rows beside an action: policy, votes, proposer, sponsor.
func (t *tx) openRights(id string, rights *gatehouse.Rights) {
	sql := sidesByAction
	if isApproval(id) {
		sql = sidesByApproval
	}
	c := &voteTally{tenant: t.tenant, id: id}
	t.opening.tally = c
	t.opening.ask(sql, func(r *row) error {
		if r.Null() {
			r.Skip(1)
		} else {
			rights.PolicyVersion = int(r.Int())
		}
		if r.Null() {
			r.Skip(voteWidth)
		} else if err := c.vote(r); err != nil {
			return err
		}
		if c.seen {
			return nil
		}
		c.seen = true
		for _, p := range []**gatehouse.Principal{&rights.Proposer, &rights.Sponsor} {
			if r.Null() {
				break
			}
			var err error
			if *p, err = shared.ScanPrincipal(r); err != nil {
				return err
			}
		}
		return nil
	}, t.tenant, id)
}

// openVoters adds a query that locks people.
func (t *tx) openVoters(sql, id string, rights *gatehouse.Rights) {
	t.opening.ask(sql, func(r *row) error {
		p, err := shared.ScanPrincipal(r)
		rights.Voters = append(rights.Voters, p)
		return err
	}, t.tenant, id)
}

// OpenDecision locks the action and reads the caller and, for an approval, the rights.
func (t *tx) OpenDecision(q gatehouse.DecisionQuery) (*gatehouse.OpenedDecision, error) {
	o := new(gatehouse.OpenedDecision)
	t.opening = opening{groups: true, likelyOpen: true, keys: []lockKey{{"id", t.tenant, q.ActionID}}}
	if q.Approve {
		t.openRights(q.ActionID, &o.Rights)
		if !t.openCaller(q.By, &o.CallerFacts, &o.Voters) {
			t.openVoters(lockVoter, q.By.Principal.ID, &o.Rights)
		}
	} else {
		t.openCaller(q.By, &o.CallerFacts, nil)
	}
	var err error
	o.Action, err = shared.OrNone(t.LockAction(q.ActionID))
	t.dropOldAnswer(&o.CallerFacts)
	return o, err
}

// FindDecision reads the action, the caller and the active policy version.
func (t *readTx) FindDecision(q gatehouse.DecisionQuery) (*gatehouse.OpenedDecision, error) {
	o := new(gatehouse.OpenedDecision)
	t.opening = opening{}
	t.openCaller(q.By, &o.CallerFacts, nil)
	t.openPolicy(&o.PolicyVersion)
	var err error
	o.Action, err = shared.OrNone(t.FindAction(q.ActionID))
	t.dropOldAnswer(&o.CallerFacts)
	return o, err
}

// OpenProposal locks the revised action, if there is one, and reads the rows for the query.
func (t *tx) OpenProposal(q gatehouse.ProposalQuery) (*gatehouse.OpenedProposal, error) {
	o := &gatehouse.OpenedProposal{Named: make(map[string]*gatehouse.Principal, len(q.Names))}
	t.opening = opening{groups: q.Supersedes == ""} // a revision writes what groups do not write
	h := &t.opening
	var same byKey
	if q.Key != "" {
		h.keys = append(h.keys, lockKey{"key", t.tenant, q.Key})
		h.queries = append(h.queries, same.queries(t.tenant, q.Key)...)
	}
	t.openCaller(q.By, &o.CallerFacts, nil)
	t.openPolicy(&o.PolicyVersion)
	if q.Effect != (gatehouse.Hash{}) {
		h.ask(deadLetterOf, func(r *row) error { o.DeadLetter = r.Text(); return nil }, t.tenant, q.Effect[:])
	}
	if q.Asked != nil {
		roles, people, groups := shared.EncodeAudience(*q.Asked)
		h.ask(firstAnswerers, func(r *row) error {
			p, err := shared.ScanPrincipal(r)
			o.Answerers = append(o.Answerers, p)
			return err
		}, t.tenant, roles, people, groups)
	}
	for _, name := range q.Names {
		var n named
		o.Named[name] = nil
		h.ask(byName, func(r *row) error {
			err := n.scan(r)
			o.Named[name] = n.principal
			return err
		}, t.tenant, name)
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
	h.ask(lockPush, func(r *row) error { o.Push = shared.ScanPush(r); return nil }, t.tenant, q.PushID)
	if q.ReceiptKey != "" {
		h.ask(findSuccess, func(r *row) (err error) {
			o.Receipt = shared.ScanReceipt(r, &err)
			return err
		}, t.tenant, q.ReceiptKey)
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
		t.opening.ask(listViews, func(r *row) error {
			o.Views = append(o.Views, t.scanView(r, id))
			return nil
		}, t.tenant, id)
	}
	page, err := t.ListActions(f)
	if len(t.opening.queries) > 0 && t.err == nil { // a page that needs no query
		if not := t.read(); not != nil {
			return nil, not
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

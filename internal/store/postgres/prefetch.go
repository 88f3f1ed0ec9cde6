package postgres

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// prefetch holds the reads that Prefetch announced. They go out with the first batch, after that
// batch's own locks and reads, and their rows answer later reads. The first write drops them,
// since a later read may concern what was written.
type prefetch struct {
	// tenant is the tenant of the reads: they go out only with a batch for this tenant.
	tenant  string
	queries []query
	// answers are raw rows, by statement and arguments.
	answers []fetchedRows
	// principals are by id; lockedPrincipals are those locked against change.
	principals, lockedPrincipals map[string]*gatehouse.Principal
	// keys are the lock keys of what the transaction will lock or insert.
	keys []lockKey
	// tally holds the votes on the action that fetchSides read.
	tally *voteTally
	// likelyOpen says that the action that LockAction finds is probably open.
	likelyOpen bool
}

type fetchedRows struct {
	sql  string
	args []any
	rows [][][]byte
}

func (h *prefetch) forget() { *h = prefetch{} }

const (
	// The people who approved the action.
	lockVoters = `SELECT ` + principalColumns + ` FROM principal p WHERE p.tenant = $1
AND p.id = ANY (ARRAY(SELECT principal_id FROM vote WHERE seq = ` + seqOfAction + ` AND decision = 'approved'))
ORDER BY p.id FOR SHARE`
	lockVoter = `SELECT ` + principalColumns + ` FROM principal p WHERE p.tenant = $1 AND p.id = $2 FOR SHARE`
	// The active policy, the votes on an action, its proposer, and the proposer's sponsor,
	// whose id is in sponsor. One row per vote, or a single row without votes.
	selectSides = `SELECT (SELECT version FROM policy_active WHERE tenant = $1), ` + joinedVotes + `, ` + principalColumns + `, ` + sponsorColumns + ` FROM `
	sideJoins   = `
LEFT JOIN LATERAL (SELECT * FROM principal x WHERE x.tenant = a.tenant AND x.id = a.proposer_id` + lateralEnd + ` p ON true
LEFT JOIN LATERAL (SELECT * FROM principal x WHERE x.tenant = p.tenant AND x.id = p.sponsor` + lateralEnd + ` s ON true
LEFT JOIN LATERAL (SELECT * FROM vote x WHERE x.seq = a.seq` + lateralEnd + ` v ON true`
	sidesByAction   = selectSides + theAction + sideJoins
	sidesByApproval = selectSides + theApproval + lateralEnd + ` o` + itsAction + sideJoins
	sponsorColumns  = `s.tenant, s.id, s.name, s.kind, s.roles, s.person, s.sponsor, s.disabled, s.created_at, s.approver_since, s.groups`
)

// Prefetch notes the reads to prefetch with the first batch.
func (t *readTx) Prefetch(o gatehouse.PrefetchPlan) {
	if t.begun || t.wrote {
		return
	}
	h := &t.prefetch
	h.forget()
	h.tenant = t.tenant
	h.keepKeys(o)
	h.likelyOpen = o.ActionID != "" && o.PushID == ""
	if o.PushID != "" {
		h.fetch(lockPush, t.tenant, o.PushID)
	}
	if o.ReceiptKey != "" {
		h.fetch(findSuccess, t.tenant, o.ReceiptKey)
	}
	if o.ActionKey != "" {
		h.fetch(selectAction+seqByKey, t.tenant, o.ActionKey)
		h.fetch(selectVotes+`= `+seqByKey+orderVotes, t.tenant, o.ActionKey)
		h.fetch(archivedByKey, t.tenant, o.ActionKey)
	}
	sides := o.Voters && o.ActionID != ""
	if sides {
		h.lockedPrincipals, h.principals = make(map[string]*gatehouse.Principal), make(map[string]*gatehouse.Principal)
		h.fetchSides(t.tenant, o.ActionID)
		switch {
		case o.PushID != "":
			h.queries = append(h.queries, ask(lockVoters, h.keepLocked, t.tenant, o.ActionID))
		case o.Voter != "" && o.Key == [32]byte{}:
			h.queries = append(h.queries, ask(lockVoter, h.keepLocked, t.tenant, o.Voter))
		}
	}
	if o.Effect != (gatehouse.Hash{}) {
		h.fetch(deadLetterOf, t.tenant, o.Effect[:])
	}
	if o.Policy && !sides {
		h.fetch(activeVersion, t.tenant)
	}
	if o.Key != [32]byte{} {
		h.fetch(findCredential, t.tenant, o.Key[:])
		if sides && o.Voter != "" { // one row answers both
			q := &h.queries[len(h.queries)-1]
			fetched := q.row
			q.sql = lockCredential
			q.row = func(r *row) error {
				if err := fetched(r); err != nil {
					return err
				}
				return h.keepLocked(r)
			}
		}
	}
	if a := o.Answer; a != nil {
		h.fetch(findAnswer, t.tenant, o.PrincipalID, a.Route, a.Key)
	}
	if o.Views {
		h.fetch(listViews, t.tenant, o.PrincipalID)
	}
	if o.Asked != nil {
		roles, people, groups := shared.EncodeAudience(*o.Asked)
		h.fetch(firstAnswerers, t.tenant, roles, people, groups)
	}
	for _, name := range o.Names {
		h.fetch(byName, t.tenant, name)
	}
}

// keepKeys notes the lock keys: no two members of a group share one.
func (h *prefetch) keepKeys(o gatehouse.PrefetchPlan) {
	key := func(kind, id string) {
		if h.keys == nil {
			h.keys = make([]lockKey, 0, 2)
		}
		h.keys = append(h.keys, lockKey{kind, h.tenant, id})
	}
	if o.ActionID != "" {
		key("id", o.ActionID)
	}
	if o.ActionKey != "" {
		key("key", o.ActionKey)
	}
	if a := o.Answer; a != nil {
		key("answer", strings.Join([]string{o.PrincipalID, a.Route, a.Key}, "\x00"))
	}
	if o.RunID != "" {
		key("id", o.RunID)
	}
}

// keepLocked notes a principal that is locked against change.
func (h *prefetch) keepLocked(r *row) error {
	p, err := scanPrincipal(r)
	h.lockedPrincipals[p.ID] = p
	return err
}

// fetchSides fetches the rows beside an action: policy, votes, proposer, sponsor.
func (h *prefetch) fetchSides(tenant, id string) {
	sql := sidesByAction
	if isApproval(id) {
		sql = sidesByApproval
	}
	c := &voteTally{tenant: tenant, id: id}
	h.tally = c
	h.queries = append(h.queries, ask(sql, func(r *row) error {
		version := bytes.Clone(r.next())
		if r.null() {
			r.skip(voteWidth)
		} else if err := c.vote(r); err != nil {
			return err
		}
		if c.seen {
			return nil
		}
		c.seen = true
		known := fetchedRows{sql: activeVersion, args: []any{tenant}}
		if version != nil {
			known.rows = [][][]byte{{version}}
		}
		h.answers = append(h.answers, known)
		for range 2 {
			if r.null() {
				return nil
			}
			p, err := scanPrincipal(r)
			h.principals[p.ID] = p
			if err != nil {
				return err
			}
		}
		return nil
	}, tenant, id))
}

// fetch adds a statement and keeps its rows.
func (h *prefetch) fetch(sql string, args ...any) {
	at := len(h.answers)
	q := ask(sql, func(r *row) error {
		raw := make([][]byte, len(r.raw))
		for i, b := range r.raw {
			raw[i] = bytes.Clone(b)
		}
		h.answers[at].rows = append(h.answers[at].rows, raw)
		return nil
	}, args...)
	h.queries = append(h.queries, q)
	h.answers = append(h.answers, fetchedRows{sql: sql, args: q.args})
}

func (h *prefetch) answer(sql string, args []any) *fetchedRows {
	for i := range h.answers {
		if a := &h.answers[i]; a.sql == sql && reflect.DeepEqual(a.args, args) {
			return a
		}
	}
	return nil
}

// withPrefetch appends the prefetch statements to a batch of the same tenant, once.
func (t *readTx) withPrefetch(batch []query) []query {
	h := &t.prefetch
	if len(h.queries) == 0 || t.tenant != h.tenant {
		return batch
	}
	batch = append(batch, h.queries...)
	h.queries = nil
	return batch
}

// answerPrefetched answers from the prefetched rows. known is false if they do not answer every
// query.
func (t *readTx) answerPrefetched(locks, queries []query) (known bool, err error) {
	h := &t.prefetch
	if len(h.answers) == 0 || len(h.queries) > 0 || t.tenant != h.tenant || len(locks)+len(queries) == 0 {
		return false, nil
	}
	asked := slices.Concat(locks, queries)
	found := make([]*fetchedRows, len(asked))
	for i, q := range asked {
		if found[i] = h.answer(q.sql, q.args); found[i] == nil {
			return false, nil
		}
	}
	for i, q := range asked {
		for _, raw := range found[i].rows {
			if q.row == nil || err != nil {
				break
			}
			t.r = row{raw: raw}
			err = q.row(&t.r)
		}
	}
	return true, err
}

// principal returns a prefetched principal by id; nil for none.
func (h *prefetch) principal(tenant, id string) *gatehouse.Principal {
	if tenant != h.tenant || len(h.queries) > 0 {
		return nil
	}
	return h.principals[id]
}

// allLocked returns locked principals by id, or nil unless all of them are locked.
func (h *prefetch) allLocked(tenant string, ids []string) []*gatehouse.Principal {
	if tenant != h.tenant || len(h.queries) > 0 || len(ids) == 0 {
		return nil
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	list := make([]*gatehouse.Principal, len(ids))
	for i, id := range ids {
		if list[i] = h.lockedPrincipals[id]; list[i] == nil {
			return nil
		}
	}
	return list
}

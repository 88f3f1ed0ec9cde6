package postgres

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ahead is what a transaction was told that it will be asked: it goes out with
// the first batch, after that batch's own locks and reads, and what came of it
// is the answer when it is asked for. It is forgotten with the first write: what
// is asked after that may be about what was written.
type ahead struct {
	// tenant is whose rows it is about: it goes out with a batch about those only.
	tenant  string
	queries []query
	// answers are rows as they came, by statement and arguments.
	answers []answer
	// people are principals by id; shared are those that are locked against
	// change.
	people, shared map[string]*gatehouse.Principal
	// keys are of what it is about to lock or to insert.
	keys []thing
	// count are the votes on the action that the sides are those of.
	count *count
	// open says that the action which LockAction finds is likely to be open.
	open bool
}

type answer struct {
	sql  string
	args []any
	rows [][][]byte
}

func (h *ahead) forget() { *h = ahead{} }

const (
	// Those who approved the action.
	lockVoters = `SELECT ` + principalColumns + ` FROM principal p WHERE p.tenant = $1
AND p.id = ANY (ARRAY(SELECT principal_id FROM vote WHERE seq = ` + seqOfAction + ` AND decision = 'approved'))
ORDER BY p.id FOR SHARE`
	lockVoter = `SELECT ` + principalColumns + ` FROM principal p WHERE p.tenant = $1 AND p.id = $2 FOR SHARE`
	// The active policy, the votes on an action, its proposer, and the proposer's
	// sponsor, who is kept by id. It has a row for each vote, or one.
	selectSides = `SELECT (SELECT version FROM policy_active WHERE tenant = $1), ` + joinedVotes + `, ` + principalColumns + `, ` + sponsorColumns + ` FROM `
	besideIt    = `
LEFT JOIN LATERAL (SELECT * FROM principal x WHERE x.tenant = a.tenant AND x.id = a.proposer_id` + kept + ` p ON true
LEFT JOIN LATERAL (SELECT * FROM principal x WHERE x.tenant = p.tenant AND x.id = p.sponsor` + kept + ` s ON true
LEFT JOIN LATERAL (SELECT * FROM vote x WHERE x.seq = a.seq` + kept + ` v ON true`
	sidesOfAction   = selectSides + theAction + besideIt
	sidesOfApproval = selectSides + theApproval + kept + ` o` + itsAction + besideIt
	sponsorColumns  = `s.tenant, s.id, s.name, s.kind, s.roles, s.person, s.sponsor, s.disabled, s.created_at, s.approver_since, s.groups`
)

// Foresee keeps what the next batch is to fetch besides.
func (t *readTx) Foresee(o gatehouse.Outlook) {
	if t.begun || t.wrote {
		return
	}
	h := &t.ahead
	h.forget()
	h.tenant = o.Tenant
	h.keep(o)
	h.open = o.ActionID != "" && o.PushID == ""
	if o.PushID != "" {
		h.fetch(lockPush, o.Tenant, o.PushID)
	}
	if o.ReceiptKey != "" {
		h.fetch(findSuccess, o.Tenant, o.ReceiptKey)
	}
	if o.ActionKey != "" {
		h.fetch(selectAction+seqByKey, o.Tenant, o.ActionKey)
		h.fetch(selectVotes+`= `+seqByKey+orderVotes, o.Tenant, o.ActionKey)
		h.fetch(archivedByKey, o.Tenant, o.ActionKey)
	}
	sides := o.Voters && o.ActionID != ""
	if sides {
		h.shared, h.people = make(map[string]*gatehouse.Principal), make(map[string]*gatehouse.Principal)
		h.sides(o.Tenant, o.ActionID)
		switch {
		case o.PushID != "":
			h.queries = append(h.queries, ask(lockVoters, h.lock, o.Tenant, o.ActionID))
		case o.Voter != "" && o.Key == [32]byte{}:
			h.queries = append(h.queries, ask(lockVoter, h.lock, o.Tenant, o.Voter))
		}
	}
	if o.Effect != (gatehouse.Hash{}) {
		h.fetch(deadLetterOf, o.Tenant, o.Effect[:])
	}
	if o.Policy && !sides {
		h.fetch(activeVersion, o.Tenant)
	}
	if o.Key != [32]byte{} {
		h.fetch(findCredential, o.Tenant, o.Key[:])
		if sides && o.Voter != "" { // the same row
			q := &h.queries[len(h.queries)-1]
			fetched := q.row
			q.sql = lockCredential
			q.row = func(r *row) error {
				if err := fetched(r); err != nil {
					return err
				}
				return h.lock(r)
			}
		}
	}
	if a := o.Answer; a != nil {
		h.fetch(findAnswer, o.Tenant, o.PrincipalID, a.Route, a.Key)
	}
	if o.Views {
		h.fetch(listViews, o.Tenant, o.PrincipalID)
	}
	if o.Asked != nil {
		roles, people, groups := shared.EncodeAudience(*o.Asked)
		h.fetch(firstAnswerers, o.Tenant, roles, people, groups)
	}
	for _, name := range o.Names {
		h.fetch(byName, o.Tenant, name)
	}
}

// keep keeps what no two members of a group have in common.
func (h *ahead) keep(o gatehouse.Outlook) {
	key := func(kind, id string) {
		if h.keys == nil {
			h.keys = make([]thing, 0, 2)
		}
		h.keys = append(h.keys, thing{kind, o.Tenant, id})
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

// lock keeps a principal that is locked against change.
func (h *ahead) lock(r *row) error {
	p, err := scanPrincipal(r)
	h.shared[p.ID] = p
	return err
}

// sides fetches what stands beside an action.
func (h *ahead) sides(tenant, id string) {
	sql := sidesOfAction
	if isApproval(id) {
		sql = sidesOfApproval
	}
	c := &count{tenant: tenant, id: id}
	h.count = c
	h.queries = append(h.queries, ask(sql, func(r *row) error {
		version := bytes.Clone(r.next())
		if r.null() {
			r.skip(voteWidth)
		} else if err := c.vote(r); err != nil {
			return err
		}
		if c.came {
			return nil
		}
		c.came = true
		known := answer{sql: activeVersion, args: []any{tenant}}
		if version != nil {
			known.rows = [][][]byte{{version}}
		}
		h.answers = append(h.answers, known)
		for range 2 {
			if r.null() {
				return nil
			}
			p, err := scanPrincipal(r)
			h.people[p.ID] = p
			if err != nil {
				return err
			}
		}
		return nil
	}, tenant, id))
}

// fetch adds a statement whose rows are kept.
func (h *ahead) fetch(sql string, args ...any) {
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
	h.answers = append(h.answers, answer{sql: sql, args: q.args})
}

func (h *ahead) answer(sql string, args []any) *answer {
	for i := range h.answers {
		if a := &h.answers[i]; a.sql == sql && reflect.DeepEqual(a.args, args) {
			return a
		}
	}
	return nil
}

// fetching appends to a batch about the same tenant what is still to be fetched.
func (t *readTx) fetching(batch []query) []query {
	h := &t.ahead
	if len(h.queries) == 0 || t.tenant != h.tenant {
		return batch
	}
	batch = append(batch, h.queries...)
	h.queries = nil
	return batch
}

// foreseen answers from what was fetched; known is false when that does not
// answer all of it.
func (t *readTx) foreseen(locks, queries []query) (known bool, err error) {
	h := &t.ahead
	if len(h.answers) == 0 || len(h.queries) > 0 || t.tenant != h.tenant || len(locks)+len(queries) == 0 {
		return false, nil
	}
	asked := slices.Concat(locks, queries)
	found := make([]*answer, len(asked))
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

// person returns a principal that was fetched by that id; nil for none.
func (h *ahead) person(tenant, id string) *gatehouse.Principal {
	if tenant != h.tenant || len(h.queries) > 0 {
		return nil
	}
	return h.people[id]
}

// locked returns principals that are locked, by id, if all of them are.
func (h *ahead) locked(tenant string, ids []string) []*gatehouse.Principal {
	if tenant != h.tenant || len(h.queries) > 0 || len(ids) == 0 {
		return nil
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	list := make([]*gatehouse.Principal, len(ids))
	for i, id := range ids {
		if list[i] = h.shared[id]; list[i] == nil {
			return nil
		}
	}
	return list
}

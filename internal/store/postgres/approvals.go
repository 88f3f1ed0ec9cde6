package postgres

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	insertApprovalOf = `, o AS (INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at,
confirm_prompt, confirm_value, groups, timing, told, next_at, about)
SELECT seq, $1, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61 FROM `

	insertApproval = insertApprovalOf + `a)
`
	insertApprovals = insertApprovalOf + `s u)
`
	approvalKinds = "tti tttii tt t tiit"
)

// insertWithApproval inserts an action with its approval; args are those of the action.
func (t *tx) insertWithApproval(a *gatehouse.Action, args []any) error {
	o := a.Approval
	if !gatehouse.ApprovalStatus("").CanMove(o.Status) {
		return gatehouse.ErrConflict
	}
	var prompt, value any
	if o.Confirm != nil {
		prompt, value = o.Confirm.Prompt, o.Confirm.Value
	}
	timing, err := shared.EncodeTiming(o)
	if err != nil {
		return err
	}
	err = t.write(insertAction+insertApproval+insertProposal, append(args,
		o.ID, string(o.Status), o.Required, shared.EncodeList(o.Roles), shared.EncodeList(o.People), shared.EncodeList(o.Excluded),
		o.End(), o.CreatedAt, prompt, value, shared.EncodeList(o.Groups), timing, o.Told, o.NextMoment(o.Told),
		shared.EncodeAbout(o.About))...)
	if err != nil {
		return err
	}
	for _, v := range o.Votes {
		if err := t.PutVote(o.ID, v); err != nil {
			return err
		}
	}
	return nil
}

// The condition on seq stands between selectVotes and orderVotes.
const (
	selectVotes = `SELECT person, principal_id, name, decision, notes, via, digest, at, for_id, for_name,
		grant_id FROM vote WHERE seq `
	orderVotes = ` ORDER BY at, person`
	// The columns of a joined vote, voteWidth of them.
	joinedVotes = `v.person, v.principal_id, v.name, v.decision, v.notes, v.via, v.digest, v.at, v.for_id,
		v.for_name, v.grant_id`
	voteWidth = 11
)

// voteTally collects the votes on an action, read after its lock.
type voteTally struct {
	tenant, id string
	seen       bool
	votes      []gatehouse.Vote
}

func (c *voteTally) vote(r *row) error {
	c.votes = append(c.votes, shared.ScanVote(r))
	return nil
}

// inOrder returns the votes in the order of orderVotes.
func (c *voteTally) inOrder() []gatehouse.Vote {
	sortVotes(c.votes)
	return c.votes
}

func sortVotes(votes []gatehouse.Vote) {
	slices.SortFunc(votes, func(a, b gatehouse.Vote) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Person, b.Person))
	})
}

const (
	approvalAsked = ` WHERE tenant = $2 AND id = $3 AND status = 'requested'`
	moveApproval  = guarded + `UPDATE approval SET status = $1` + approvalAsked + orConflict
	moveApprovals = `UPDATE approval SET status = $1 FROM u` + approvalAsked
)

// MoveApproval moves an approval on from requested.
func (t *tx) MoveApproval(approvalID string, to gatehouse.ApprovalStatus) error {
	if !gatehouse.ApprovalRequested.CanMove(to) {
		return gatehouse.ErrConflict
	}
	return t.write(moveApproval, string(to), t.tenant, approvalID)
}

const tellApproval = guarded + `UPDATE approval SET told = $1, next_at = $2
WHERE tenant = $3 AND id = $4 AND status = 'requested' AND told = $5` + orConflict

// TellApproval stores how many moments of an open approval are in the log, and the time of the
// next one.
func (t *tx) TellApproval(approvalID string, from, told int, next *time.Time) error {
	return t.write(tellApproval, told, next, t.tenant, approvalID, from)
}

const markTarget = guarded + `UPDATE approval SET changed_at = $1, changed_version = $2, changed_by = $3
WHERE tenant = $4 AND id = $5 AND status = 'requested'` + orConflict

// MarkTarget stores that the target changed after the proposal.
func (t *tx) MarkTarget(approvalID string, m gatehouse.TargetMark) error {
	return t.write(markTarget, m.At, m.Version, m.By, t.tenant, approvalID)
}

const setEvaluated = guarded + `UPDATE approval SET evaluated = $1
WHERE tenant = $2 AND id = $3 AND status = 'requested'` + orConflict

// SetEvaluated stores the evaluations of a waiting question.
func (t *tx) SetEvaluated(approvalID string, list []gatehouse.Evaluated) error {
	text, err := shared.EncodeJSON(&list)
	if err != nil {
		return err
	}
	return t.write(setEvaluated, text, t.tenant, approvalID)
}

const (
	voteColumns = `INSERT INTO vote (seq, tenant, person, principal_id, name, decision, notes, via, digest, at,
		for_id, for_name, grant_id)
SELECT seq, tenant, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 FROM `
	voteAsked   = `approval WHERE tenant = $1 AND id = $2 AND status = 'requested'`
	replaceVote = `
ON CONFLICT (seq, person) DO UPDATE SET principal_id = excluded.principal_id, name = excluded.name, decision = excluded.decision,
  notes = excluded.notes, via = excluded.via, digest = excluded.digest, at = excluded.at,
  for_id = excluded.for_id, for_name = excluded.for_name, grant_id = excluded.grant_id`
	insertVote = guarded + voteColumns + voteAsked + ` FOR NO KEY UPDATE` + replaceVote +
		unless + `SELECT 1 FROM approval WHERE tenant = $1 AND id = $2` + orSo
	insertVotes = voteColumns + ofEach + voteAsked + once + replaceVote
)

// PutVote stores a person's vote and replaces an earlier one. An approval that is decided takes
// no votes.
func (t *tx) PutVote(approvalID string, v gatehouse.Vote) error {
	return t.write(insertVote, t.tenant, approvalID, v.Person, v.PrincipalID, v.Name, string(v.Decision), v.Notes,
		string(v.Via), string(v.Digest), v.At, v.For, v.ForName, v.Grant)
}

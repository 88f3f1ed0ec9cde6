package invariants

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// checkProposed checks rule 23: the action's proposer, type and level match the log.
func (f *actionRows) checkProposed(say sayer) {
	for _, l := range f.leaves {
		if l.Type != "hitl.proposed" && l.Type != "hitl.denied" {
			continue
		}
		d := struct {
			Type     string              `json:"action_type"`
			Level    gatehouse.RiskLevel `json:"risk_level"`
			Proposer string              `json:"proposer"`
		}{Proposer: l.Actor}
		if l.Data == "" || json.Unmarshal([]byte(l.Data), &d) != nil {
			say(23, "the log's entry of its proposal is unreadable")
			return
		}
		differ := func(what string, stored, logged any) {
			if stored != logged {
				say(23, "its %s is %v, the log has %v", what, stored, logged)
			}
		}
		differ("type", f.actionType, d.Type)
		differ("level", f.risk, d.Level)
		differ("proposer", f.proposerID, d.Proposer)
		return
	}
}

// loggedVote is the last vote of a principal according to the log.
type loggedVote struct {
	Decision gatehouse.DecisionKind `json:"decision"`
	For      string                 `json:"for"`
	Grant    string                 `json:"grant"`
	Notes    string                 `json:"notes"`
	Via      gatehouse.Channel      `json:"via"`
	at       int64
	// final says that the vote decided the action.
	final bool
}

// loggedVotes are the votes of the log by principal.
func (f *actionRows) loggedVotes() map[string]loggedVote {
	votes := map[string]loggedVote{}
	for _, l := range f.leaves {
		if l.Type != "hitl.voted" && l.Type != "hitl.approved" && l.Type != "hitl.rejected" {
			continue
		}
		v := loggedVote{at: l.At.UnixMicro(), final: l.Type != "hitl.voted"}
		if l.Data == "" || json.Unmarshal([]byte(l.Data), &v) != nil || !strings.HasPrefix(l.Actor, "prn_") {
			continue
		}
		if held := votes[l.Actor]; l.Type == "hitl.rejected" && held.Decision == gatehouse.Reject {
			v.at = held.at // logged twice: when the person rejected, and at the end of the hold
		}
		votes[l.Actor] = v
	}
	return votes
}

// checkVotes checks rule 23: the votes in the table match the log, and the stored decision matches the vote that
// decided according to the log.
func (f *actionRows) checkVotes(say sayer) {
	logged := f.loggedVotes()
	for _, v := range f.votes {
		l := logged[v.principalID]
		switch {
		case l.Decision != v.decision:
			say(23, "%s has %s, the log says %q", v.name, v.decision, l.Decision)
		case l.For != v.delegator:
			say(23, "%s voted for %q, the log says for %q", v.name, v.delegator, l.For)
		case l.Grant != v.grant:
			say(23, "%s voted by the grant %q, the log says %q", v.name, v.grant, l.Grant)
		case l.Notes != v.notes:
			say(23, "the notes of %s differ from the log", v.name)
		case l.Via != v.via:
			say(23, "%s voted via %q, the log says %q", v.name, v.via, l.Via)
		case l.at != v.at:
			say(23, "%s voted at %d, the log says at %d", v.name, v.at, l.at)
		}
		if l.final && (f.decidedBy != v.name || f.decidedVia != l.Via || f.decidedAt.Int64 != l.at) {
			say(23, "decided by %s via %q at %d, the log says by %s via %q at %d", f.decidedBy, f.decidedVia,
				f.decidedAt.Int64, v.name, l.Via, l.at)
		}
		delete(logged, v.principalID)
	}
	for actor, l := range logged {
		say(23, "the log says that %s has %s, and there is no vote", actor, l.Decision)
	}
}

// checkWorkflows checks rule 23 for workflows: the versions in the table are those in the log.
func (c *checker) checkWorkflows(ctx context.Context, tx *sql.Tx, h *rightsHistory) error {
	const query = `SELECT tenant, id, name, version, digest, source FROM workflow`
	return each(ctx, tx, query, func(rows *sql.Rows) error {
		var at subject
		var row loggedWorkflow
		var source string
		if err := rows.Scan(&at.tenant, &at.id, &row.Name, &row.Version, &row.digest, &source); err != nil {
			return err
		}
		c.r.examined(23, 1)
		logged, known := h.workflows[at]
		switch {
		case !known:
			c.r.violated(23, at.tenant, at.id, "the log has no entry for version %d of the workflow %s", row.Version, row.Name)
		case logged != row:
			c.r.violated(23, at.tenant, at.id, "its name, version or digest differs from the log")
		case gatehouse.NewDigest(gatehouse.JSON(source)) != logged.digest:
			c.r.violated(23, at.tenant, at.id, "its text differs from the log")
		}
		return nil
	})
}

// loggedWorkflow is a version of a workflow according to its log entry.
type loggedWorkflow struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	digest  gatehouse.Digest
}

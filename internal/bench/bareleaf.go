package bench

import "github.com/gatehouse-dev/gatehouse"

// rowTexts are the lists that a proposal's rows hold, as JSON.
type rowTexts struct{ rules, reasons, excluded string }

func rowsOf(a *gatehouse.Action) rowTexts {
	return rowTexts{string(gatehouse.MustJSON(a.Policy.Rules)), string(gatehouse.MustJSON(a.Policy.Reasons)),
		string(gatehouse.MustJSON(a.Approval.Excluded))}
}

// The texts of the bare sides' leaves, as long as the gate's.
const (
	whoDecides  = "prn_01968f6e3a5b7c1d9e2f4a6b8c0d1e2f"
	nameDecides = "approver-0"
	whyDecided  = "checked against the supplier's list"
)

// proposedLeaf is a leaf of a proposal.
func proposedLeaf(a *gatehouse.Action, id string) string {
	rest := id[len("act"):]
	return `{"action_id":"` + id + `","actor":"` + a.ProposerID + `","at":"2026-11-20T12:00:00.000000Z","data":{` +
		`"action_type":"price_change","approval":"apr` + rest +
		`","expires_at":"2026-11-21T12:00:00.000000Z","outcome":"needs_approval",` +
		`"policy_version":1,"required":1,"revision":1,"risk_level":3,"rules":` + rowsOf(a).rules + `},"digest":"` +
		string(a.Digest) +
		`","id":"evt` + rest +
		`","subject":"` + id + `","tenant":"default","to":"pending","type":"hitl.proposed"}`
}

// decidedLeaf is a leaf of an approval.
func decidedLeaf(id, digest string) string {
	rest := id[len("act"):]
	return `{"action_id":"` + id + `","actor":"` + whoDecides +
		`","at":"2026-11-20T12:00:00.000000Z","data":{"approval":"apr` + rest +
		`","decision":"approved","not_before":"2026-11-20T13:00:00.000000Z","notes":"` + whyDecided + `","push":"psh` + rest +
		`","required":1,"via":"api","votes":1},"digest":"` + digest + `","from":"pending","id":"evt` + rest +
		`","subject":"` + id + `","tenant":"default","to":"approved","type":"hitl.approved"}`
}

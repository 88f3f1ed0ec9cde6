package invariants

import (
	"fmt"
)

// maxListed bounds the listed violations of one rule; all are counted.
const maxListed = 100

// Report is the result of a check.
type Report struct {
	// OK is true when nothing is violated.
	OK         bool         `json:"ok"`
	Violations int          `json:"violations"`
	Invariants []*Invariant `json:"invariants"`
	// lists is [Options.Tenant].
	lists string
}

// Invariant is one rule, by its number in docs/proof/README.md; 0 is the store
// itself.
type Invariant struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	// Examined counts the rows, or actions with their rows, that were checked.
	Examined int64 `json:"examined"`
	// NotChecked is the reason why the rule was not checked.
	NotChecked string      `json:"not_checked,omitempty"`
	Violations int         `json:"violations"`
	Listed     []Violation `json:"listed"`
}

// Violation is one violation of a rule.
type Violation struct {
	Tenant string `json:"tenant,omitempty"`
	ID     string `json:"id"`
	Detail string `json:"detail"`
}

// titles state the rules whose violations docs/proof/README.md lists.
var titles = map[int]string{
	0:  "the store's own structures",
	1:  "one terminal decision per approval",
	2:  "what clients were told stands",
	3:  "an approved action has exactly one push",
	4:  "no push without approval or allow",
	5:  "one effect per idempotency key, by the receipts",
	6:  "one digest, from what was shown to what was sent",
	7:  "no effect before its decision",
	8:  "enough distinct entitled voters, the proposer not among them",
	9:  "nothing decided at or after expiry",
	10: "no ceiling exceeded, no claim without its reason",
	11: "no transition outside the tables",
	12: "no receipt written under a lost lease",
	13: "everything unfinished is leased, scheduled or waits for a person",
	14: "the audit log has no gap, verifies, and gives the tables",
	15: "no call without a recorded intent",
	16: "no reference across tenants or to nothing",
	17: "every pending approval is in the queue",
	18: "a run's state follows from its steps, and it succeeded if and only if they all did",
	19: "every step under way is leased or due, or waits for something that will wake it",
	20: "an attempt for each lease, no more of them than leases, and no key held twice",
	21: "evidence is stored once, and its hash matches",
	22: "an archived action is complete, in the log, and not in the live tables",
	23: "who proposed, who may decide, who voted, and which policy holds is what the log says",
}

func newReport(tenant string) *Report {
	r := &Report{lists: tenant}
	for n := range len(titles) {
		r.Invariants = append(r.Invariants, &Invariant{Number: n, Title: titles[n], Listed: []Violation{}})
	}
	r.Invariants[2].NotChecked = "only the clients' own records can tell"
	return r
}

func (r *Report) examined(n int, rows int64) { r.Invariants[n].Examined += rows }

func (r *Report) violated(n int, tenant, id, format string, args ...any) {
	i := r.Invariants[n]
	i.Violations++
	r.Violations++
	if (r.lists == "" || tenant == "" || tenant == r.lists) && len(i.Listed) < maxListed {
		i.Listed = append(i.Listed, Violation{tenant, id, fmt.Sprintf(format, args...)})
	}
}

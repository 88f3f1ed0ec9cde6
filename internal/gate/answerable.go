package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// newApproval builds the approval of an action: the number of required approvals, the audience and the
// excluded people. why is the reason if too few people may approve; "" otherwise.
func newApproval(
	tx gatehouse.ReadTx, proposer *gatehouse.Principal, a *gatehouse.Action, v gatehouse.Verdict, from lineage,
) (ap *gatehouse.Approval, why string, err error) {
	find := from.find(tx)
	barred, err := exclude(find, proposer, a.OnBehalfOf, from.barred...)
	if err != nil {
		return nil, "", err
	}
	if old := from.supersedes; old != nil && old.Approval != nil {
		// A revision adds to those who cannot decide; it removes nobody.
		barred = union(barred, old.Approval.Excluded)
	}
	required := max(v.Required, from.required, 1)
	if a.RiskLevel == gatehouse.L5 {
		required = max(required, 2)
	}
	if from.corrects() || !gatehouse.EditorMayApprove(v.EditUpTo, a.RiskLevel, required) {
		barred = union(barred, a.Editors)
	}
	people := audience(v)
	expiry, timing := timing(v, a.ExpiresIn.D())
	ap = &gatehouse.Approval{
		Required: required, Roles: usecase.OrEmpty(people.Roles),
		People: people.People, Groups: people.Groups, Excluded: barred,
		CreatedAt: tx.Now(), ExpiresAt: tx.Now().Add(expiry), Timing: timing,
	}
	asker := ""
	if from.required > v.Required {
		asker = "the step of the run asks"
	}
	if ap.CountAnswerers(from.opened.Answerers) >= ap.Required {
		return ap, "", nil
	}
	// The answerers that OpenProposal returned may be incomplete, so check all people.
	why, err = unanswerable(tx, ap, v, exclusion{proposer, a.OnBehalfOf, find}, asker)
	return ap, why, err
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// timing returns how long the approval of a verdict stays open, and its stages and reminders.
// The proposer's expiry, in, can only shorten that time.
func timing(v gatehouse.Verdict, in time.Duration) (time.Duration, gatehouse.Timing) {
	expiry, t := v.Expiry, v.Timing
	if expiry <= 0 || expiry+t.ExtendBy.D() > gatehouse.MaxExpiry {
		expiry, t = 24*time.Hour, gatehouse.Timing{}
	}
	if in > 0 {
		t = t.Within(expiry, in)
		expiry = min(expiry, in)
	}
	return expiry, t
}

// fullAudience is the audience of a verdict in all stages together.
func fullAudience(v gatehouse.Verdict, in time.Duration) gatehouse.Audience {
	all := audience(v)
	_, t := timing(v, in)
	for _, s := range t.Stages {
		all = all.Or(s.Who)
	}
	return all
}

// audience is the people whom a verdict asks from the beginning.
func audience(v gatehouse.Verdict) gatehouse.Audience {
	out := gatehouse.Audience{Roles: v.Roles, People: v.People, Groups: v.Groups}
	if len(v.Roles) == 0 && len(v.People) == 0 && len(v.Groups) == 0 {
		out.Roles = []gatehouse.Role{gatehouse.RoleApprover}
	}
	return out
}

// unanswerable returns why fewer people may answer an approval than must approve; "" if enough
// may. An approver whose vote does not count yet is counted here: see [Gate.checkApproverDelay]. Proposers
// read the text, so it names only people whom the approval names, the proposer, its sponsor, and
// the person on whose behalf it is proposed. Others are only counted.
func unanswerable(
	tx gatehouse.IdentityReader, ap *gatehouse.Approval, v gatehouse.Verdict, e exclusion, asker string,
) (string, error) {
	people, err := tx.ListPeople()
	if err != nil {
		return "", err
	}
	n := ap.CountAnswerers(people)
	if n >= ap.Required {
		return "", nil
	}
	excluded, err := e.reasons(ap, people)
	if err != nil {
		return "", err
	}
	why := "nobody may answer"
	if n > 0 {
		why = "too few people may answer"
	}
	if asker == "" {
		asker = rulesAsk(v)
	}
	why += fmt.Sprintf(": %s %s (%s), and %d may answer", asker, persons(ap.Required),
		strings.Join(ap.Everybody().Words(), ", "), n)
	return strings.Join(append(append([]string{why}, excluded...), ineligible(ap, people)...), "; "), nil
}

// rulesAsk names the rules that ask people, else the policy.
func rulesAsk(v gatehouse.Verdict) string {
	switch {
	case v.Outcome != gatehouse.OutcomeNeedsApproval || len(v.Rules) == 0:
		return "the policy asks"
	case len(v.Rules) == 1:
		return "rule " + v.Rules[0] + " asks"
	}
	return "rules " + strings.Join(v.Rules, ", ") + " ask"
}

func persons(n int) string {
	if n == 1 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", n)
}

// exclusion has the input for the reasons why people are excluded.
type exclusion struct {
	proposer   *gatehouse.Principal
	onBehalfOf string
	find       finder
}

// reasons lists why people in the audience may not answer, for those who otherwise could.
func (e exclusion) reasons(
	ap *gatehouse.Approval, people []*gatehouse.Principal,
) (list []string, err error) {
	left := slices.DeleteFunc(slices.Clone(people), func(p *gatehouse.Principal) bool {
		return !p.MayDecide() || !ap.EverAsks(p) || !ap.Bars(p)
	})
	take := func(who []string) (taken int) {
		before := len(left)
		left = slices.DeleteFunc(left, func(p *gatehouse.Principal) bool { return excluded(who, p) })
		return before - len(left)
	}
	if p := e.proposer; take([]string{p.ID, p.Person, p.Name}) > 0 {
		list = append(list, p.Name+" is excluded as the proposer")
	}
	for _, named := range []struct{ who, as string }{
		{e.proposer.Sponsor, "the sponsor"}, {strings.TrimSpace(e.onBehalfOf), "the person on whose behalf it is proposed"},
	} {
		if named.who == "" {
			continue
		}
		known, err := identities(e.find, named.who)
		if err != nil {
			return nil, err
		}
		if take(known) > 0 {
			name := named.who
			for _, p := range people {
				if p.ID == name {
					name = p.Name
				}
			}
			list = append(list, name+" is excluded as "+named.as)
		}
	}
	if n := (&gatehouse.Approval{}).CountAnswerers(left); n > 0 {
		list = append(list, are(n)+" excluded for contributing to the content")
	}
	return list, nil
}

// ineligible counts the people in the audience who can answer no approval at all, and lists the
// groups and names that match nobody.
func ineligible(ap *gatehouse.Approval, people []*gatehouse.Principal) (list []string) {
	disabled, lacking := 0, 0
	for _, p := range people {
		switch {
		case !ap.EverAsks(p):
		case p.Disabled:
			disabled++
		case !p.MayDecide():
			lacking++
		}
	}
	if disabled > 0 {
		list = append(list, are(disabled)+" disabled")
	}
	if lacking > 0 {
		list = append(list, are(lacking)+" without the role approver")
	}
	everybody := ap.Everybody()
	for _, group := range everybody.Groups {
		if !slices.ContainsFunc(people, func(p *gatehouse.Principal) bool { return p.In(group) }) {
			list = append(list, "nobody is in group "+group)
		}
	}
	for _, name := range everybody.People {
		if !slices.ContainsFunc(people, func(p *gatehouse.Principal) bool { return p.ID == name || p.Name == name }) {
			list = append(list, "there is no person "+name)
		}
	}
	return list
}

func are(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}
